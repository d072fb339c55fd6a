// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Parameters of NSCC, the network-signaled congestion control of the Ultra Ethernet specification 1.0. Values are those
// that uet-htsim (htsim/sim/uec.cpp, initNsccParams) sets, which scales others by the network's bandwidth-delay
// product. rto_min is a guess, as Swift's is.
#ifndef ROUNDABOUT_NSCC_PARAMS_H
#define ROUNDABOUT_NSCC_PARAMS_H

#include "declare.h"

STANDS_FOR(RDMA);
MEANT_FOR(thresholds);

struct nscc_params {
  PARAMETER(__u64, line, "bytes/s", line_rate, 50000, 0.001, 1e9, "rate of the sender's port");
  PARAMETER(__u32, network_rtt_us, "us", experiment, 0, 0, 1e6,
            "longest round trip of the network without queues, 0: that of the flow's path");
  PARAMETER(__u32, target_us, "us", experiment, 0, 0, 1e6, "target of the queuing delay, 0: network_rtt_us");
  PARAMETER(__u32, qa_gate, "power of 2", experiment, 3, 0, 31,
            "quick adapt acts on flows that achieve less than the largest window over 2^qa_gate");
  PARAMETER(__u32, gamma_q24, "2^-24", experiment, 0.8, 0, 1, "decrease for an average delay far above the target");
  PARAMETER(__u32, initial_cwnd, "packets", experiment, 0, 0, 1e6, "of a new flow's window, 0: the largest window");
  PARAMETER(__u32, rto_min_us, "us", experiment, 4000, 1, 1e6, "shortest retransmission timeout");
  PARAMETER(__u32, reordering, "packets", experiment, 0, 0, 60000,
            "sent later that arrive before a packet counts as lost, 0: 1.5 windows");
};

struct nscc_counters {
  COUNTER(__u64, fair_increases, "events", "ACKs without a mark, with a queuing delay of the target or more");
  COUNTER(__u64, proportional_increases, "events", "ACKs without a mark, with less");
  COUNTER(__u64, fast_increases, "events", "ACKs without a mark, after a window without queues");
  COUNTER(__u64, decreases, "events", "windows cut by marks and delay");
  COUNTER(__u64, quick_adapts, "events", "windows set to what arrived in a round trip");
  COUNTER(__u64, losses, "packets", "lost");
};

#endif
