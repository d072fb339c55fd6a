// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Swift (Kumar et al., "Swift: Delay is Simple and Effective for Congestion Control in the Datacenter", SIGCOMM'20),
// for models alone. A NIC measures its delay, so that the window of the fabric is the only one here: the window of the
// endpoints, ecwnd, is left out.
#ifndef ROUNDABOUT_SWIFT_MODEL_H
#define ROUNDABOUT_SWIFT_MODEL_H

#include "delay_window.h"

#endif
