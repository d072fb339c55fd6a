// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// DCTCP (RFC 8257), for kernels that have none.
#include "flow.h"

char _license[] SEC("license") = "Dual BSD/GPL";

PER_HOST(params, struct dctcp_params);
PER_HOST(counters, struct dctcp_counters);

SEC("struct_ops/dctcp_init")
void BPF_PROG(dctcp_init, struct sock *sk) {
  COUNT_FOR(host_of(sk), struct dctcp_counters);
  dctcp_begin(sk);
}

SEC("struct_ops/dctcp_cong_control")
void CONG_CONTROL(dctcp_cong_control, sk, rs) {
  struct dctcp_flow *f = dctcp_flow_of(sk);
  struct dctcp_params *p = entry_of(&params, f->host);
  struct dctcp_counters *c = entry_of(&counters, f->host);
  if (!p || !c)
    return;
  struct dctcp_news news = dctcp_on_ack(sk, rs, p, c);
  if (cwnd_must_reduce(&f->cwnd, news.reduction))
    dctcp_reduce(sk, news.reduction, cwnd_cut_q24(&f->cwnd, &f->marking, news.reduction), c);
  else if (dctcp_may_grow(sk))
    cwnd_add(&f->cwnd, cwnd_slow_start(&f->cwnd, news.acked));
  dctcp_put(sk);
}

SEC("struct_ops/dctcp_cwnd_event")
void BPF_PROG(dctcp_cwnd_event, struct sock *sk, enum tcp_ca_event ev) { echo_event(&dctcp_flow_of(sk)->echo, sk, ev); }

SEC("struct_ops/dctcp_ssthresh")
__u32 BPF_PROG(dctcp_ssthresh, struct sock *sk) { return tcp_of(sk)->snd_ssthresh; }

SEC("struct_ops/dctcp_undo_cwnd")
__u32 BPF_PROG(dctcp_undo_cwnd, struct sock *sk) { return tcp_of(sk)->snd_cwnd; }

SEC(".struct_ops")
struct tcp_congestion_ops dctcp = {
    .init = (void *)dctcp_init,
    .cong_control = (void *)dctcp_cong_control,
    .cwnd_event = (void *)dctcp_cwnd_event,
    .ssthresh = (void *)dctcp_ssthresh,
    .undo_cwnd = (void *)dctcp_undo_cwnd,
    .flags = TCP_CONG_NON_RESTRICTED | TCP_CONG_NEEDS_ECN,
    .name = KERNEL_NAME(dctcp),
};
