// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Swift's parameters. Names follow Kumar et al., SIGCOMM'20 (Algorithm 1 and section 3.5). The paper prints few values;
// those here are csg-htsim's (sim/swift.cpp), which calls them guesses. rto_min is one, too: four drop-tail queues of 1
// ms, so that no queue alone causes a timeout.
#ifndef ROUNDABOUT_SWIFT_PARAMS_H
#define ROUNDABOUT_SWIFT_PARAMS_H

#include "declare.h"

STANDS_FOR(RDMA);
MEANT_FOR(drop_tail);

struct swift_params {
  PARAMETER(__u32, base_target_us, "us", experiment, 20, 0, 1e6, "target delay of a path without links");
  PARAMETER(__u32, hop_us, "us", experiment, 3, 0, 1e6, "added to the target delay for each link of the path");
  PARAMETER(__u32, fs_range_us, "us", experiment, 100, 0, 1e6, "largest addition to the target delay by flow scaling");
  PARAMETER(__u32, fs_min_cwnd_q24, "2^-24", experiment, 0.1, 0.01, 255, "packets: flow scaling adds all below");
  PARAMETER(__u32, fs_max_cwnd_q24, "2^-24", experiment, 100, 0.01, 255, "packets: flow scaling adds nothing above");
  PARAMETER(__u32, ai_q24, "2^-24", experiment, 1, 0.001, 100, "packets of additive increase in a round trip");
  PARAMETER(__u32, beta_q24, "2^-24", experiment, 0.8, 0, 1, "decrease for a delay far above the target");
  PARAMETER(__u32, max_mdf_q24, "2^-24", experiment, 0.5, 0.01, 0.99,
            "largest share of the window that a decrease takes");
  PARAMETER(__u32, min_cwnd_q24, "2^-24", experiment, 0.001, 0.0001, 255, "packets of the smallest window");
  PARAMETER(__u32, max_cwnd, "packets", experiment, 1000, 1, 60000, "of the largest window");
  PARAMETER(__u32, initial_cwnd, "packets", experiment, 10, 1, 60000, "of a new flow's window");
  PARAMETER(__u32, retx_reset, "timeouts", experiment, 5, 1, 1000, "in a row that set the smallest window");
  PARAMETER(__u32, rto_min_us, "us", experiment, 4000, 1, 1e6, "shortest retransmission timeout");
  PARAMETER(__u32, reordering, "packets", experiment, 3, 0, 60000,
            "sent later that arrive before a packet counts as lost, 0: 1.5 windows");
  RULE(flow_scaling_is_in_order, "fs_min_cwnd <= fs_max_cwnd");
  RULE(initial_window_is_allowed, "initial_cwnd <= max_cwnd");
};

struct swift_counters {
  COUNTER(__u64, increases, "events", "ACKs below the target delay");
  COUNTER(__u64, decreases, "events", "windows cut by delay");
  COUNTER(__u64, losses, "events", "windows cut by losses and timeouts");
};

#endif
