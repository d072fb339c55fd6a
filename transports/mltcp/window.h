// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// MLTCP over a base transport with a window. The base grows its window by the number of acknowledged segments that it
// gets, so F times the segments mean F times the increase: cwnd += F(bytes_ratio) * additive increase. Slow start is
// unchanged.
#ifndef ROUNDABOUT_MLTCP_WINDOW_H
#define ROUNDABOUT_MLTCP_WINDOW_H

#include "job.h"

// Returns the number of acknowledged segments to pass to the base.
static __always_inline __u32 window_acked(struct sock *sk, const struct mltcp_params *p, __u32 acked) {
  struct member *m = member_of(sk);
  if (!m || p->acts_on == DECREASE || tcp_of(sk)->snd_cwnd < tcp_of(sk)->snd_ssthresh)
    return acked;
  return aggressiveness_increase(acked, m->F_q24, &m->carried_q24);
}

// Returns the window that remains after a cut, in the unit of `cwnd`, given what the base's cut leaves.
static __always_inline __u64 window_cut_of(struct sock *sk, const struct mltcp_params *p, __u64 cwnd, __u64 base) {
  struct member *m = member_of(sk);
  if (!m || p->acts_on != DECREASE || base > cwnd)
    return base;
  return aggressiveness_decrease(cwnd, base, m->F_q24);
}

// Returns what remains of the kernel's window after a cut, in segments, and at least 2.
static __always_inline __u32 window_cut(struct sock *sk, const struct mltcp_params *p, __u32 base) {
  __u32 kept = (__u32)window_cut_of(sk, p, tcp_of(sk)->snd_cwnd, base);
  return kept > 2 ? kept : 2;
}

#endif
