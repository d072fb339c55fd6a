// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// DCTCP (RFC 8257) as a TCP congestion control. Both ends of a connection must use it. The flow has its own window,
// because the kernel sometimes reduces its window without calling the program's ssthresh (docs/results/mltcp.md).
#ifndef ROUNDABOUT_DCTCP_FLOW_H
#define ROUNDABOUT_DCTCP_FLOW_H

#include "cwnd.h"
#include "echo.h"
#include <bpf/bpf_core_read.h>

// The state of a flow, which must fit into icsk_ca_priv.
struct dctcp_flow {
  __u64 host;
  struct marking marking;
  struct cwnd cwnd;
  struct echo echo;
  __u32 delivered;
  __u32 delivered_ce;
};

// The content of an ACK: newly delivered segments, and the reduction that it requires.
struct dctcp_news {
  __u32 acked; // segments
  enum reduction reduction;
};

static __always_inline struct dctcp_flow *dctcp_flow_of(struct sock *sk) { return private_area_of(sk); }

// Initializes the state of a new flow.
static __always_inline void dctcp_begin(struct sock *sk) {
  struct dctcp_flow *f = dctcp_flow_of(sk);
  struct tcp_sock *tp = tcp_of(sk);
  __builtin_memset(f, 0, sizeof(*f));
  f->host = host_of(sk);
  f->delivered = tp->delivered;
  f->delivered_ce = tp->delivered_ce;
  marking_begin(&f->marking, tp->delivered, tp->delivered_ce, tp->snd_nxt);
  cwnd_begin(&f->cwnd, tp->snd_cwnd, tp->snd_ssthresh);
  echo_begin(&f->echo, sk);
}

// Copies the flow's window and ssthresh to the kernel.
static __always_inline void dctcp_put(struct sock *sk) {
  struct cwnd *w = &dctcp_flow_of(sk)->cwnd;
  struct tcp_sock *tp = tcp_of(sk);
  if (w->segments > tp->snd_cwnd_clamp)
    w->segments = tp->snd_cwnd_clamp;
  tp->snd_cwnd = w->segments;
  tp->snd_ssthresh = w->ssthresh;
}

// Updates alpha, timeouts and counters at an ACK, and returns its content.
static __always_inline struct dctcp_news dctcp_on_ack(struct sock *sk, const struct rate_sample *rs,
                                                      const struct dctcp_params *p, struct dctcp_counters *c) {
  struct dctcp_flow *f = dctcp_flow_of(sk);
  struct tcp_sock *tp = tcp_of(sk);
  __u32 acked = tp->delivered - f->delivered;
  __u32 marked = tp->delivered_ce - f->delivered_ce;
  f->delivered += acked;
  f->delivered_ce += marked;
  c->acks += acked > 0;
  c->segments += acked;
  c->segments_marked += marked;
  c->windows += marking_on_ack(&f->marking, p, tp->snd_una, tp->snd_nxt, tp->delivered, tp->delivered_ce);
  c->losses += cwnd_on_ack(&f->cwnd, tp->snd_una, tp->snd_nxt, tp->snd_cwnd);
  c->alpha_q24 = f->marking.alpha_q24;
  c->cwnd = f->cwnd.segments;
  struct dctcp_news news = {.acked = acked, .reduction = rs->losses > 0 ? LOSS : marked ? MARKS : NOTHING};
  return news;
}

// Reduces the flow's window to `kept_q24`.
static __always_inline void dctcp_reduce(struct sock *sk, enum reduction by, __u64 kept_q24, struct dctcp_counters *c) {
  cwnd_reduce(&dctcp_flow_of(sk)->cwnd, by, kept_q24, tcp_of(sk)->snd_nxt);
  c->losses += by == LOSS;
}

// Returns true if the window may grow. As in the kernel it must be in use; in slow start, half of it is enough.
static __always_inline bool dctcp_may_grow(struct sock *sk) {
  const struct cwnd *w = &dctcp_flow_of(sk)->cwnd;
  struct tcp_sock *tp = tcp_of(sk);
  if (!cwnd_may_grow(w))
    return 0;
  return BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited) ||
         (cwnd_in_slow_start(w) && w->segments < 2 * tp->max_packets_out);
}

#endif
