// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// DCTCP's parameter and counters. Names follow RFC 8257, section 3.3, and so does the value of g.
#ifndef ROUNDABOUT_DCTCP_H
#define ROUNDABOUT_DCTCP_H

#include "declare.h"

MEANT_FOR(step);

struct dctcp_params {
  PARAMETER(__u32, g_q24, "2^-24", experiment, 0.0625, 0.0001, 1, "weight of the newest window's marks in alpha");
};

struct dctcp_counters {
  COUNTER(__u64, acks, "segments", "ACKs of something new");
  COUNTER(__u64, segments, "segments", "delivered");
  COUNTER(__u64, segments_marked, "segments", "delivered and echoed as CE");
  COUNTER(__u64, windows, "events", "windows after which alpha was renewed");
  COUNTER(__u64, losses, "events", "windows with losses, and timeouts: the window is halved, or ssthresh");
  COUNTER(__u32, alpha_q24, "2^-24", "alpha of the flow updated last");
  COUNTER(__u32, cwnd, "segments", "window of the flow updated last");
};

#endif
