// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// DCQCN (Zhu et al., SIGCOMM'15) as a TCP congestion control.
//
// The reaction point paces by R_C; its timers are evaluated when an ACK comes. The notification point is the receiver's
// half of DCTCP: each change of CE is echoed at once, so the share of echoes is the share of marks, and the sender
// counts at most one CNP per flow and cnp_gap_us. Both ends of a connection must use it.
#include "dcqcn.h"

char _license[] SEC("license") = "Dual BSD/GPL";

#define ONE_Q24 (1u << 24)
#define MANY_STAGES 64       // so many increases owed at once bring any flow to the line rate
#define UNLIMITED_CWND 20000 // the rate alone limits a flow, as on a NIC

PER_HOST(params, struct dcqcn_params);
PER_HOST(counters, struct dcqcn_counters);

// One flow's reaction point, and the notification point's last bit. Fits into icsk_ca_priv.
struct flow {
  __u64 R_C;
  __u64 R_T;
  __u64 host;
  __u32 alpha_q24;
  __u32 increased_us;
  __u32 alpha_us;
  __u32 cnp_us;
  __u32 ack_us;
  __u32 delivered;
  __u32 delivered_ce;
  __u32 bytes;
  __u32 prior_rcv_nxt;
  __u16 timer_stage;
  __u16 byte_stage;
  __u8 ce;
};

static __always_inline struct flow *flow_of(struct sock *sk) { return private_area_of(sk); }

SEC("struct_ops/dcqcn_init")
void BPF_PROG(dcqcn_init, struct sock *sk) {
  struct flow *f = flow_of(sk);
  struct tcp_sock *tp = tcp_of(sk);
  __u32 now = (__u32)tp->tcp_mstamp;

  __builtin_memset(f, 0, sizeof(*f));
  f->host = host_of(sk);
  COUNT_FOR(f->host, struct dcqcn_counters);
  struct dcqcn_params *p = entry_of(&params, f->host);
  f->R_C = f->R_T = p ? p->R_max : ~0u;
  f->alpha_q24 = ONE_Q24;
  f->increased_us = f->alpha_us = f->ack_us = now;
  f->cnp_us = now - (p ? p->cnp_gap_us : 0);
  f->delivered = tp->delivered;
  f->delivered_ce = tp->delivered_ce;
  f->prior_rcv_nxt = tp->rcv_nxt;
  sk->sk_pacing_status = SK_PACING_NEEDED;
  sk->sk_pacing_rate = f->R_C;
  tp->snd_cwnd = UNLIMITED_CWND;
}

// One increase event of the timer or of the byte counter.
static __always_inline void increase(struct flow *f, const struct dcqcn_params *p, struct dcqcn_counters *c) {
  // Without a byte counter the timer's stage stands for both, or there would be no hyper increase.
  __u32 byte_stage = p->byte_counter_bytes ? f->byte_stage : f->timer_stage;
  __u32 high = f->timer_stage > byte_stage ? f->timer_stage : byte_stage;
  __u32 low = f->timer_stage > byte_stage ? byte_stage : f->timer_stage;

  if (high < p->F) {
    c->fast_increases++;
  } else if (low <= p->F) {
    f->R_T += p->R_AI;
    c->additive_increases++;
  } else {
    f->R_T += (__u64)(low - p->F) * p->R_HAI;
    c->hyper_increases++;
  }
  if (f->R_T > p->R_max)
    f->R_T = p->R_max;
  f->R_C = (f->R_C + f->R_T) >> 1;
}

static __always_inline void on_cnp(struct flow *f, const struct dcqcn_params *p, __u32 now) {
  f->R_T = f->R_C;
  f->R_C -= (f->R_C * f->alpha_q24) >> 25;
  if (f->R_C < p->R_min)
    f->R_C = p->R_min;
  f->alpha_q24 += ((__u64)(ONE_Q24 - f->alpha_q24) * p->g_q24) >> 24;
  f->timer_stage = f->byte_stage = 0;
  f->bytes = 0;
  f->increased_us = f->alpha_us = f->cnp_us = now;
}

// What a NIC's timers would have done since the last ACK. They run on while a flow is idle: after a compute phase it
// starts at line rate with alpha near 0.
static __always_inline void run_timers(struct flow *f, const struct dcqcn_params *p, struct dcqcn_counters *c,
                                       __u32 now) {
  for (int i = 0; i < MANY_STAGES && now - f->alpha_us >= p->alpha_timer_us; i++) {
    f->alpha_q24 -= ((__u64)f->alpha_q24 * p->g_q24) >> 24;
    f->alpha_us += p->alpha_timer_us;
  }
  if (now - f->alpha_us >= p->alpha_timer_us) {
    f->alpha_q24 = 0;
    f->alpha_us = now;
  }
  for (int i = 0; i < MANY_STAGES && now - f->increased_us >= p->T_us; i++) {
    f->increased_us += p->T_us;
    if (f->timer_stage < 0xffff)
      f->timer_stage++;
    increase(f, p, c);
  }
  if (now - f->increased_us >= p->T_us) {
    f->R_C = f->R_T = p->R_max;
    f->increased_us = now;
  }
}

static __always_inline void count_bytes(struct flow *f, const struct dcqcn_params *p, struct dcqcn_counters *c,
                                        __u32 acked_bytes) {
  if (!p->byte_counter_bytes)
    return;
  f->bytes += acked_bytes;
  if (f->bytes < p->byte_counter_bytes)
    return;
  f->bytes = 0;
  if (f->byte_stage < 0xffff)
    f->byte_stage++;
  increase(f, p, c);
}

static __always_inline void on_ack(struct sock *sk, const struct rate_sample *rs) {
  struct flow *f = flow_of(sk);
  struct tcp_sock *tp = tcp_of(sk);
  struct dcqcn_params *p = entry_of(&params, f->host);
  struct dcqcn_counters *c = entry_of(&counters, f->host);
  if (!p || !c)
    return;

  __u32 now = (__u32)tp->tcp_mstamp;
  __u32 delivered = tp->delivered - f->delivered;
  __u32 marked = tp->delivered_ce - f->delivered_ce;
  __u32 since = now - f->ack_us;
  f->delivered += delivered;
  f->delivered_ce += marked;
  f->ack_us = now;

  run_timers(f, p, c, now);
  if ((marked || rs->losses > 0) && now - f->cnp_us >= p->cnp_gap_us) {
    on_cnp(f, p, now);
    c->cnps++;
  } else {
    count_bytes(f, p, c, rs->acked_sacked * tp->mss_cache);
  }

  c->acks++;
  if (since < MANY_STAGES * p->T_us)
    c->active_us += since;
  c->segments += delivered;
  c->segments_marked += marked;
  if (rs->losses > 0)
    c->losses += rs->losses;
  c->rate = f->R_C;
  c->alpha_q24 = f->alpha_q24;
  c->stage = f->timer_stage;
  sk->sk_pacing_rate = f->R_C;
  tp->snd_cwnd = UNLIMITED_CWND;
}

SEC("struct_ops/dcqcn_cong_control")
void CONG_CONTROL(dcqcn_cong_control, sk, rs) { on_ack(sk, rs); }

// The notification point: RFC 8257, section 3.2. An ACK owed for segments of the other kind leaves first.
SEC("struct_ops/dcqcn_cwnd_event")
void BPF_PROG(dcqcn_cwnd_event, struct sock *sk, enum tcp_ca_event ev) {
  struct flow *f = flow_of(sk);
  struct tcp_sock *tp = tcp_of(sk);
  struct inet_connection_sock *icsk = (struct inet_connection_sock *)sk;
  if (ev != CA_EVENT_ECN_IS_CE && ev != CA_EVENT_ECN_NO_CE)
    return;

  __u8 ce = ev == CA_EVENT_ECN_IS_CE;
  if (f->ce != ce) {
    if (icsk->icsk_ack.pending & ICSK_ACK_TIMER) {
      if (f->ce)
        tp->ecn_flags |= TCP_ECN_DEMAND_CWR;
      else
        tp->ecn_flags &= ~TCP_ECN_DEMAND_CWR;
      bpf_tcp_send_ack(tp, f->prior_rcv_nxt);
    }
    icsk->icsk_ack.pending |= ICSK_ACK_NOW;
  }
  f->prior_rcv_nxt = tp->rcv_nxt;
  f->ce = ce;
  if (ce)
    tp->ecn_flags |= TCP_ECN_DEMAND_CWR;
  else
    tp->ecn_flags &= ~TCP_ECN_DEMAND_CWR;
}

SEC("struct_ops/dcqcn_ssthresh")
__u32 BPF_PROG(dcqcn_ssthresh, struct sock *sk) { return tcp_of(sk)->snd_ssthresh; }

SEC("struct_ops/dcqcn_undo_cwnd")
__u32 BPF_PROG(dcqcn_undo_cwnd, struct sock *sk) { return tcp_of(sk)->snd_cwnd; }

// Pacing decides the bursts; a queue that marks by steps wants them small.
SEC("struct_ops/dcqcn_min_tso_segs")
__u32 BPF_PROG(dcqcn_min_tso_segs, struct sock *sk) { return 1; }

SEC(".struct_ops")
struct tcp_congestion_ops dcqcn = {
    .init = (void *)dcqcn_init,
    .cong_control = (void *)dcqcn_cong_control,
    .cwnd_event = (void *)dcqcn_cwnd_event,
    .ssthresh = (void *)dcqcn_ssthresh,
    .undo_cwnd = (void *)dcqcn_undo_cwnd,
    .min_tso_segs = (void *)dcqcn_min_tso_segs,
    .flags = TCP_CONG_NON_RESTRICTED | TCP_CONG_NEEDS_ECN,
    .name = KERNEL_NAME(dcqcn),
};
