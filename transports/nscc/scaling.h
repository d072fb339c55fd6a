// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// NSCC's constants, scaled from a reference network of 100 Gbit/s and 12 us to the present one (uet-htsim,
// initNsccParams). Times are in ns, sizes in bytes.
#ifndef ROUNDABOUT_NSCC_SCALING_H
#define ROUNDABOUT_NSCC_SCALING_H

#include "nscc_params.h"

#define NS_PER_S 1000000000
#define REFERENCE_RTT_NS 12000
#define REFERENCE_BDP 150000 // 100 Gbit/s for 12 us

// Multiples of a packet in a reference network.
#define PROPORTIONAL_PACKETS 4
#define FAIR_PACKETS 5
#define ETA_Q24 2516582  // 0.15
#define FAST_Q24 4194304 // 0.25 of the acknowledged bytes

struct nscc_scaling {
  __u64 rtt;    // of the network
  __u64 target; // of the queuing delay
  __u64 proportional, fair, eta;
  __u32 fast_q24;
  __u32 packet_bytes;
};

static __always_inline __u64 bytes_in(__u64 rate, __u64 ns) {
  return rate / NS_PER_S * ns + rate % NS_PER_S * ns / NS_PER_S;
}

// Returns a product of a size and a factor in 2^-16, for factors above the range of 2^-24.
static __always_inline __u64 times_q16(__u64 size, __u64 factor_q16) { return size * factor_q16 >> 16; }

// `path_rtt` is the round trip of the flow's path without queues.
static __always_inline void nscc_scale(struct nscc_scaling *s, const struct nscc_params *p, __u32 packet_bytes,
                                       __u64 path_rtt) {
  s->rtt = p->network_rtt_us ? p->network_rtt_us : path_rtt;
  s->target = p->target_us ? p->target_us : s->rtt;
  __u64 a_q16 = (bytes_in(p->line, s->rtt) << 16) / REFERENCE_BDP;
  __u64 b_q16 = (s->target << 16) / REFERENCE_RTT_NS;
  s->proportional = times_q16(times_q16((__u64)PROPORTIONAL_PACKETS * packet_bytes, a_q16), b_q16);
  s->fair = times_q16((__u64)FAIR_PACKETS * packet_bytes, a_q16);
  s->eta = times_q16(times_q24(packet_bytes, ETA_Q24), a_q16);
  s->fast_q24 = (__u32)times_q16(FAST_Q24, a_q16);
  s->packet_bytes = packet_bytes;
}

#endif
