// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A counter of reductions that the kernel began without calling the transport (unasked.h).
#ifndef ROUNDABOUT_REDUCTION_H
#define ROUNDABOUT_REDUCTION_H

#include "declare.h"

struct reduction_counters {
  COUNTER(__u64, unasked, "events", "reductions of the window that the kernel began by itself");
};

#endif
