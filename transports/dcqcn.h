// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What the dcqcn program and the transport tool agree on: parameters and counters of one host (network namespace).
#ifndef ROUNDABOUT_DCQCN_H
#define ROUNDABOUT_DCQCN_H

#ifdef __bpf__
#include "kernel.h"
#else
#include <linux/types.h>
#endif

// Names follow DCQCN (SIGCOMM'15); units are the kernel's: bytes per second, microseconds.
struct dcqcn_params {
  __u64 R_AI;         // additive increase step, bytes/s
  __u64 R_HAI;        // hyper increase step, bytes/s, times the stage
  __u64 R_min;        // bytes/s
  __u64 R_max;        // line rate, bytes/s
  __u64 byte_counter; // bytes between byte-counter increases, 0 = off
  __u32 T_us;         // rate increase timer
  __u32 F;            // stages of fast recovery
  __u32 g_q24;        // weight of a CNP in alpha, times 2^24
  __u32 alpha_timer_us;
  __u32 cnp_gap_us; // least time between two CNPs of a flow
  __u32 unused;
};

struct dcqcn_counters {
  __u64 acks;            // feedback instants
  __u64 active_us;       // time between feedback instants of flows that were sending
  __u64 segments;        // segments delivered
  __u64 segments_marked; // of them echoed as CE
  __u64 cnps;            // echoes that counted as CNPs: one rate cut each
  __u64 losses;          // segments lost: each event counts as a CNP
  __u64 fast_increases;
  __u64 additive_increases;
  __u64 hyper_increases;
  __u64 rate; // R_C of the flow heard last, bytes/s
  __u32 alpha_q24;
  __u32 stage;
};

#endif
