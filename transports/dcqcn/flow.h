// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// DCQCN as a TCP congestion control. The reaction point paces by R_C; its timers are evaluated when an ACK comes. The
// notification point is the receiver's half of DCTCP, and the sender counts at most one CNP per flow and cnp_gap_us. A
// CNP acts cnp_delay_us later.
// Both ends of a connection must use it.
#ifndef ROUNDABOUT_DCQCN_FLOW_H
#define ROUNDABOUT_DCQCN_FLOW_H

#include "../dctcp/echo.h"
#include "burst_rate.h"
#include "held_cnps.h"
#include "pacing_debt.h"

#define UNLIMITED_CWND 20000 // the rate alone limits a flow, as on a NIC
#define IDLE_STAGES 64       // periods of the timer without an ACK: a flow that is silent for longer does not send

// The state of a flow, which must fit into icsk_ca_priv.
struct dcqcn_flow {
  struct reaction_point rp;
  __u64 host;
  struct held_cnps held;
  __u32 ack_us;
  __u32 delivered;
  __u32 delivered_ce;
  struct echo echo;
  struct pacing_debt debt;
};

static __always_inline struct dcqcn_flow *dcqcn_flow_of(struct sock *sk) { return private_area_of(sk); }

// Sets the pacing rate to R_C, corrected by the pacing debt, and a window that does not limit the flow.
static __always_inline void dcqcn_pace(struct sock *sk, const struct dcqcn_flow *f, const struct dcqcn_params *p) {
  struct reaction_point ahead = f->rp;
  __u64 rate = burst_rate(&ahead, p, f->ack_us, sk->sk_gso_max_size);
  sk->sk_pacing_rate = pacing_debt_rate(&f->debt, rate, p->R_max);
  tcp_of(sk)->snd_cwnd = UNLIMITED_CWND;
}

// Initializes the state of a new flow.
static __always_inline void dcqcn_begin(struct sock *sk, const struct dcqcn_params *p) {
  struct dcqcn_flow *f = dcqcn_flow_of(sk);
  struct tcp_sock *tp = tcp_of(sk);

  __builtin_memset(f, 0, sizeof(*f));
  if (!p)
    return;
  f->host = host_of(sk);
  f->ack_us = (__u32)tp->tcp_mstamp;
  f->delivered = tp->delivered;
  f->delivered_ce = tp->delivered_ce;
  echo_begin(&f->echo, sk);
  reaction_point_begin(&f->rp, p, f->ack_us);
  held_cnps_begin(&f->held, p, f->ack_us);
  pacing_debt_begin(&f->debt, tp->snd_nxt);
  sk->sk_pacing_status = SK_PACING_NEEDED;
  dcqcn_pace(sk, f, p);
}

// Copies the flow's rate, alpha and stage to the counters.
static __always_inline void dcqcn_show(const struct dcqcn_flow *f, struct dcqcn_counters *c) {
  c->rate = f->rp.R_C;
  c->alpha_q24 = f->rp.alpha_q24;
  c->stage = f->rp.timer_stage;
}

// Applies an ACK to the flow's rate and counters. Returns the rate before the cut if a CNP acted, else 0.
static __always_inline __u64 dcqcn_hear(struct sock *sk, const struct rate_sample *rs, const struct dcqcn_params *p,
                                        struct dcqcn_counters *c) {
  struct dcqcn_flow *f = dcqcn_flow_of(sk);
  struct tcp_sock *tp = tcp_of(sk);
  __u32 now = (__u32)tp->tcp_mstamp;
  __u32 delivered = tp->delivered - f->delivered;
  __u32 marked = tp->delivered_ce - f->delivered_ce;
  __u32 since = now - f->ack_us;
  f->delivered += delivered;
  f->delivered_ce += marked;
  f->ack_us = now;
  pacing_debt_on_ack(&f->debt, c, f->rp.R_C, since, tp->snd_nxt, tp->write_seq != tp->snd_nxt);

  // Pointers into a socket cannot be passed to what is followed once.
  struct reaction_point rp = f->rp;
  struct held_cnps held = f->held;
  struct ack ack = {
      .bytes = (__u64)rs->acked_sacked * tp->mss_cache,
      .now = now,
      .spacing = since,
      .is_marked = marked || rs->losses > 0,
  };
  __u64 before = reaction_point_on_ack(&rp, &held, p, c, &ack);
  f->rp = rp;
  f->held = held;

  c->acks++;
  if (since < (__u64)IDLE_STAGES * p->T_us)
    c->active_us += since;
  c->segments += delivered;
  c->segments_marked += marked;
  if (rs->losses > 0)
    c->losses += rs->losses;
  return before;
}

#endif
