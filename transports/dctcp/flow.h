// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// DCTCP (RFC 8257) as a TCP congestion control. Both ends of a connection must use it. What it leaves to TCP is Reno's,
// as the RFC has it: slow start, the increase, and what is done about losses (section 3.5).
#ifndef ROUNDABOUT_DCTCP_FLOW_H
#define ROUNDABOUT_DCTCP_FLOW_H

#include "../reduction/unasked.h"
#include "echo.h"
#include "marking.h"

// Fits into icsk_ca_priv.
struct dctcp_flow {
  __u64 host;
  struct marking marking;
  struct echo echo;
  __u32 delivered;
  __u32 delivered_ce;
};

static __always_inline struct dctcp_flow *dctcp_flow_of(struct sock *sk) { return private_area_of(sk); }

static __always_inline void dctcp_begin(struct sock *sk) {
  struct dctcp_flow *f = dctcp_flow_of(sk);
  struct tcp_sock *tp = tcp_of(sk);
  __builtin_memset(f, 0, sizeof(*f));
  f->host = host_of(sk);
  f->delivered = tp->delivered;
  f->delivered_ce = tp->delivered_ce;
  marking_begin(&f->marking, tp->delivered, tp->delivered_ce, tp->snd_nxt);
  echo_begin(&f->echo, sk);
}

static __always_inline void dctcp_hear(struct sock *sk, const struct dctcp_params *p, struct dctcp_counters *c) {
  struct dctcp_flow *f = dctcp_flow_of(sk);
  struct tcp_sock *tp = tcp_of(sk);
  c->acks++;
  c->segments += tp->delivered - f->delivered;
  c->segments_marked += tp->delivered_ce - f->delivered_ce;
  f->delivered = tp->delivered;
  f->delivered_ce = tp->delivered_ce;
  if (marking_on_ack(&f->marking, p, tp->snd_una, tp->snd_nxt, tp->delivered, tp->delivered_ce))
    c->windows++;
  c->alpha_q24 = f->marking.alpha_q24;
  c->cwnd = tp->snd_cwnd;
}

// The window after a loss: the kernel has asked for one after marks, as it does not say what it asks for.
static __always_inline void dctcp_lose(struct sock *sk, struct dctcp_counters *c) {
  __u32 half = tcp_of(sk)->snd_cwnd / 2;
  tcp_of(sk)->snd_ssthresh = half > LEAST_CWND ? half : LEAST_CWND;
  if (c)
    c->losses++;
}

#endif
