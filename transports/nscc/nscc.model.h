// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// NSCC, the sender's congestion control of Ultra Ethernet (Ultra Ethernet specification 1.0, 2025), for models alone.
// Its choice of paths and trimmed packets are no part of it.
#ifndef ROUNDABOUT_NSCC_MODEL_H
#define ROUNDABOUT_NSCC_MODEL_H

#include "network_window.h"

#endif
