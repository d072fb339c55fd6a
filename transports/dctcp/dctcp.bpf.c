// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// DCTCP (RFC 8257), for kernels that have none.
#include "flow.h"

char _license[] SEC("license") = "Dual BSD/GPL";

PER_HOST(params, struct dctcp_params);
PER_HOST(counters, struct dctcp_counters);

extern void tcp_reno_cong_avoid(struct sock *sk, __u32 ack, __u32 acked) __ksym;
extern __u32 tcp_reno_undo_cwnd(struct sock *sk) __ksym;

SEC("struct_ops/dctcp_init")
void BPF_PROG(dctcp_init, struct sock *sk) {
  COUNT_FOR(host_of(sk), struct dctcp_counters);
  dctcp_begin(sk);
}

SEC("struct_ops/dctcp_pkts_acked")
void BPF_PROG(dctcp_pkts_acked, struct sock *sk, const struct ack_sample *sample) {
  struct dctcp_params *p = entry_of(&params, dctcp_flow_of(sk)->host);
  struct dctcp_counters *c = entry_of(&counters, dctcp_flow_of(sk)->host);
  if (!p || !c)
    return;
  if (reduction_was_unasked(sk, &c->reduction))
    reduce_to(sk, marking_cut(&dctcp_flow_of(sk)->marking, tcp_of(sk)->snd_cwnd));
  dctcp_hear(sk, p, c);
}

SEC("struct_ops/dctcp_cong_avoid")
void BPF_PROG(dctcp_cong_avoid, struct sock *sk, __u32 ack, __u32 acked) { tcp_reno_cong_avoid(sk, ack, acked); }

SEC("struct_ops/dctcp_ssthresh")
__u32 BPF_PROG(dctcp_ssthresh, struct sock *sk) {
  return marking_cut(&dctcp_flow_of(sk)->marking, tcp_of(sk)->snd_cwnd);
}

SEC("struct_ops/dctcp_set_state")
void BPF_PROG(dctcp_set_state, struct sock *sk, __u8 new_state) {
  if (new_state == TCP_CA_Recovery)
    dctcp_lose(sk, entry_of(&counters, dctcp_flow_of(sk)->host));
}

SEC("struct_ops/dctcp_cwnd_event")
void BPF_PROG(dctcp_cwnd_event, struct sock *sk, enum tcp_ca_event ev) {
  if (ev == CA_EVENT_LOSS)
    dctcp_lose(sk, entry_of(&counters, dctcp_flow_of(sk)->host));
  else
    echo_event(&dctcp_flow_of(sk)->echo, sk, ev);
}

SEC("struct_ops/dctcp_undo_cwnd")
__u32 BPF_PROG(dctcp_undo_cwnd, struct sock *sk) { return tcp_reno_undo_cwnd(sk); }

SEC(".struct_ops")
struct tcp_congestion_ops dctcp = {
    .init = (void *)dctcp_init,
    .pkts_acked = (void *)dctcp_pkts_acked,
    .cong_avoid = (void *)dctcp_cong_avoid,
    .ssthresh = (void *)dctcp_ssthresh,
    .set_state = (void *)dctcp_set_state,
    .cwnd_event = (void *)dctcp_cwnd_event,
    .undo_cwnd = (void *)dctcp_undo_cwnd,
    .flags = TCP_CONG_NON_RESTRICTED | TCP_CONG_NEEDS_ECN,
    .name = KERNEL_NAME(dctcp),
};
