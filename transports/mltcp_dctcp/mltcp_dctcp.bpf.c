// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// MLTCP over DCTCP.
#include "../dctcp/flow.h"
#include "../mltcp/window.h"

char _license[] SEC("license") = "Dual BSD/GPL";

struct mltcp_dctcp_params {
  struct dctcp_params dctcp;
  struct mltcp_params mltcp;
};

struct mltcp_dctcp_counters {
  struct dctcp_counters dctcp;
  struct mltcp_counters mltcp;
};

PER_HOST(params, struct mltcp_dctcp_params);
PER_HOST(counters, struct mltcp_dctcp_counters);

extern void tcp_reno_cong_avoid(struct sock *sk, __u32 ack, __u32 acked) __ksym;
extern __u32 tcp_reno_undo_cwnd(struct sock *sk) __ksym;

static __always_inline __u32 cut(struct sock *sk, const struct mltcp_dctcp_params *p) {
  __u32 base = marking_cut(&dctcp_flow_of(sk)->marking, tcp_of(sk)->snd_cwnd);
  return p ? window_cut(sk, &p->mltcp, base) : base;
}

SEC("struct_ops/mltcp_dctcp_init")
void BPF_PROG(mltcp_dctcp_init, struct sock *sk) {
  struct mltcp_dctcp_params *p = entry_of(&params, host_of(sk));
  COUNT_FOR(host_of(sk), struct mltcp_dctcp_counters);
  dctcp_begin(sk);
  if (p)
    job_join(sk, &p->mltcp);
}

SEC("struct_ops/mltcp_dctcp_pkts_acked")
void BPF_PROG(mltcp_dctcp_pkts_acked, struct sock *sk, const struct ack_sample *sample) {
  struct mltcp_dctcp_params *p = entry_of(&params, dctcp_flow_of(sk)->host);
  struct mltcp_dctcp_counters *c = entry_of(&counters, dctcp_flow_of(sk)->host);
  if (!p || !c)
    return;
  if (reduction_was_unasked(sk, &c->dctcp.reduction))
    reduce_to(sk, cut(sk, p));
  dctcp_hear(sk, &p->dctcp, &c->dctcp);
  job_hear(sk, &p->mltcp, &c->mltcp);
}

SEC("struct_ops/mltcp_dctcp_cong_avoid")
void BPF_PROG(mltcp_dctcp_cong_avoid, struct sock *sk, __u32 ack, __u32 acked) {
  struct mltcp_dctcp_params *p = entry_of(&params, dctcp_flow_of(sk)->host);
  tcp_reno_cong_avoid(sk, ack, p ? window_acked(sk, &p->mltcp, acked) : acked);
}

SEC("struct_ops/mltcp_dctcp_ssthresh")
__u32 BPF_PROG(mltcp_dctcp_ssthresh, struct sock *sk) {
  struct mltcp_dctcp_params *p = entry_of(&params, dctcp_flow_of(sk)->host);
  return cut(sk, p);
}

static __always_inline void lose(struct sock *sk) {
  struct mltcp_dctcp_params *p = entry_of(&params, dctcp_flow_of(sk)->host);
  struct mltcp_dctcp_counters *c = entry_of(&counters, dctcp_flow_of(sk)->host);
  dctcp_lose(sk, c ? &c->dctcp : NULL);
  if (p)
    tcp_of(sk)->snd_ssthresh = window_cut(sk, &p->mltcp, tcp_of(sk)->snd_ssthresh);
}

SEC("struct_ops/mltcp_dctcp_set_state")
void BPF_PROG(mltcp_dctcp_set_state, struct sock *sk, __u8 new_state) {
  if (new_state == TCP_CA_Recovery)
    lose(sk);
}

SEC("struct_ops/mltcp_dctcp_cwnd_event")
void BPF_PROG(mltcp_dctcp_cwnd_event, struct sock *sk, enum tcp_ca_event ev) {
  if (ev == CA_EVENT_LOSS)
    lose(sk);
  else
    echo_event(&dctcp_flow_of(sk)->echo, sk, ev);
}

SEC("struct_ops/mltcp_dctcp_undo_cwnd")
__u32 BPF_PROG(mltcp_dctcp_undo_cwnd, struct sock *sk) { return tcp_reno_undo_cwnd(sk); }

SEC(".struct_ops")
struct tcp_congestion_ops mltcp_dctcp = {
    .init = (void *)mltcp_dctcp_init,
    .pkts_acked = (void *)mltcp_dctcp_pkts_acked,
    .cong_avoid = (void *)mltcp_dctcp_cong_avoid,
    .ssthresh = (void *)mltcp_dctcp_ssthresh,
    .set_state = (void *)mltcp_dctcp_set_state,
    .cwnd_event = (void *)mltcp_dctcp_cwnd_event,
    .undo_cwnd = (void *)mltcp_dctcp_undo_cwnd,
    .flags = TCP_CONG_NON_RESTRICTED | TCP_CONG_NEEDS_ECN,
    .name = KERNEL_NAME(mltcp_dctcp),
};
