// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Reductions of the window that the kernel began without asking. Linux 6.18 on x86 now and then enters one and runs
// none of a transport's programs for it (one in some hundreds, whatever they do): ssthresh is then what the stack held,
// half of a kernel address, and the window follows it. So at each ACK it is looked for, and cut as it would have been.
#ifndef ROUNDABOUT_UNASKED_H
#define ROUNDABOUT_UNASKED_H

#include "reduction.h"
#include "transport.h"

#define TCP_INFINITE_SSTHRESH 0x7fffffff

// Whether the last reduction was one. The window is then again what it was before.
static __always_inline bool reduction_was_unasked(struct sock *sk, struct reduction_counters *c) {
  struct tcp_sock *tp = tcp_of(sk);
  if (tp->snd_ssthresh <= TCP_INFINITE_SSTHRESH)
    return 0;
  tp->snd_cwnd = tp->prior_cwnd;
  c->unasked++;
  return 1;
}

static __always_inline void reduce_to(struct sock *sk, __u32 kept) {
  tcp_of(sk)->snd_ssthresh = kept;
  tcp_of(sk)->snd_cwnd = kept;
}

#endif
