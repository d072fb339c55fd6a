// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// DCQCN's parameters and counters. Names follow Zhu et al., SIGCOMM'15. Values are NVIDIA's (rpg_*, dce_tcp_*) for a
// 50 Gbit/s line, where dce_tcp_g, 1019 of 1024, is 1 - g; T is that of HotNets'22's testbed.
#ifndef ROUNDABOUT_DCQCN_H
#define ROUNDABOUT_DCQCN_H

#include "declare.h"

STANDS_FOR(RDMA);
MEANT_FOR(thresholds);

struct dcqcn_params {
  PARAMETER(__u32, T_us, "us", experiment, 125, 1, 1e9, "period of the rate-increase timer");
  PARAMETER(__u32, F, "stages", testbed, 1, 1, 100, "stages of fast recovery");
  PARAMETER(__u64, byte_counter_bytes, "bytes", testbed, 32767, 0, 1e12,
            "between two increases of the byte counter, 0 for none");
  PARAMETER(__u64, R_AI, "bytes/s", testbed, 5, 0, 1e9, "step of an additive increase");
  PARAMETER(__u64, R_HAI, "bytes/s", testbed, 50, 0, 1e9, "step of a hyper increase");
  PARAMETER(__u64, R_min, "bytes/s", testbed, 1, 0.001, 1e9, "lowest rate of a flow");
  PARAMETER(__u64, R_max, "bytes/s", line_rate, 50000, 0.001, 1e9, "highest rate of a flow");
  PARAMETER(__u32, g_q24, "2^-24", testbed, 0.0048828125, 0, 1, "weight of a CNP in alpha");
  PARAMETER(__u32, alpha_timer_us, "us", testbed, 1, 1, 1e9, "without a CNP for so long, alpha shrinks");
  PARAMETER(__u32, cnp_gap_us, "us", testbed, 4, 0, 1e9, "least time between two CNPs of a flow");
  PARAMETER(__u32, cnp_delay_us, "us", network, 0, 0, 1e9, "from the echo of a mark to the cut, beside the round trip");
  PARAMETER(__u32, clamp_target, "0 or 1", testbed, 0, 0, 1,
            "1: the target follows at every cut; 0: at the first cut after an increase");
  PARAMETER(__u32, clamp_target_after_timer, "0 or 1", testbed, 1, 0, 1,
            "without clamp_target: 1: after an increase of the timer, too; 0: of the byte counter alone");
  PARAMETER(__u32, hyper_by_stage, "0 or 1", testbed, 1, 0, 1,
            "1: a hyper increase is R_HAI times the stages beyond F; 0: R_HAI");
  PARAMETER(__u32, alpha_by_timer, "0 or 1", testbed, 1, 0, 1,
            "1: alpha changes once a period, up if a CNP came; 0: up at each CNP, which restarts the timer");
  PARAMETER(__u32, alpha_initial_q24, "2^-24", testbed, 0, 0, 1,
            "alpha at the first CNP of a flow at R_max; 0: 1 for a new flow, else alpha as it has decayed");
  PARAMETER(__u64, rate_on_first_cnp, "bytes/s", testbed, 0, 0, 1e9,
            "rate and target before the first cut of a flow at R_max, 0 for R_max");
  NIC_CHOICE(cnp_scope, port, "qp host port",
             "what cnp_gap_us holds for: a queue pair, a sending host, or a NIC's port");
  NIC_CHOICE(retransmission, go_back_n, "go_back_n selective_repeat",
             "what is sent again after a loss: all from there on, or what is missing");
  RULE(rates_are_in_order, "R_min_mbps <= R_max_mbps");
  // NVIDIA, "DCQCN CC Parameters" (DOCA 3.4), and mstflint's mlxconfig_host.db: the narrower of the two.
  HARDWARE(T_us, 1, 131071, "rpg_time_reset");
  HARDWARE(F, 1, 31, "rpg_threshold");
  HARDWARE(byte_counter_bytes, 0, 32767, "rpg_byte_reset");
  HARDWARE(R_AI_mbps, 1, 131071, "rpg_ai_rate");
  HARDWARE(R_HAI_mbps, 1, 131071, "rpg_hai_rate");
  HARDWARE(R_min_mbps, 1, 131071, "rpg_min_rate");
  HARDWARE(alpha_timer_us, 1, 131071, "dce_tcp_rtt");
  HARDWARE(cnp_gap_us, 0, 131071, "min_time_between_cnps");
  HARDWARE(rate_on_first_cnp_mbps, 0, 131071, "rate_to_set_on_first_cnp");
};

struct dcqcn_counters {
  COUNTER(__u64, acks, "segments", "feedback instants");
  COUNTER(__u64, active_us, "us", "between feedback instants of flows that were sending");
  DERIVED(feedback_per_T, "acks * T_us / active_us", "feedback instants in a period of the timer");
  COUNTER(__u64, segments, "segments", "delivered");
  COUNTER(__u64, segments_marked, "segments", "delivered and echoed as CE");
  COUNTER(__u64, cnps, "events", "echoes that counted as CNPs: one rate cut each");
  COUNTER(__u64, held_us, "us", "from the echoes that counted as CNPs to their cuts, together");
  COUNTER(__u64, losses, "segments", "lost: each event counts as a CNP");
  COUNTER(__u64, asked_bytes, "bytes", "that R_C allowed while flows had data to send");
  COUNTER(__u64, paced_bytes, "bytes", "that were sent of those");
  DERIVED(paced_of_asked, "paced_bytes / asked_bytes", "share of what R_C allowed that was sent");
  COUNTER(__u64, fast_increases, "events", "increases of fast recovery");
  COUNTER(__u64, additive_increases, "events", "additive increases");
  COUNTER(__u64, hyper_increases, "events", "hyper increases");
  COUNTER(__u64, rate, "bytes/s", "R_C of the flow updated last");
  COUNTER(__u32, alpha_q24, "2^-24", "alpha of the flow updated last");
  COUNTER(__u32, stage, "stage", "the timer's, of the flow updated last");
};

#endif
