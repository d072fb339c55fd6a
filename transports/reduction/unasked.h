// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Reductions of the window that the kernel began without calling the transport. Linux 6.18 on x86 sometimes begins a
// reduction without running the transport's programs (one in some hundreds). ssthresh is then a stale value of the
// stack, half of a kernel address, and the window follows it. So each ACK is checked, and the transport applies its own
// reduction.
#ifndef ROUNDABOUT_UNASKED_H
#define ROUNDABOUT_UNASKED_H

#include "reduction.h"
#include "transport.h"

#define TCP_INFINITE_SSTHRESH 0x7fffffff

// Returns true if the kernel began the last reduction without calling the transport, after restoring the window before
// it and counting the reduction.
static __always_inline bool reduction_was_unasked(struct sock *sk, struct reduction_counters *c) {
  struct tcp_sock *tp = tcp_of(sk);
  if (tp->snd_ssthresh <= TCP_INFINITE_SSTHRESH)
    return 0;
  tp->snd_cwnd = tp->prior_cwnd;
  c->unasked++;
  return 1;
}

// Sets window and ssthresh to `kept` segments.
static __always_inline void reduce_to(struct sock *sk, __u32 kept) {
  tcp_of(sk)->snd_ssthresh = kept;
  tcp_of(sk)->snd_cwnd = kept;
}

#endif
