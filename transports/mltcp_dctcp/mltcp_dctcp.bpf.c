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

SEC("struct_ops/mltcp_dctcp_init")
void BPF_PROG(mltcp_dctcp_init, struct sock *sk) {
  struct mltcp_dctcp_params *p = entry_of(&params, host_of(sk));
  COUNT_FOR(host_of(sk), struct mltcp_dctcp_counters);
  dctcp_begin(sk);
  if (p)
    job_join(sk, &p->mltcp);
}

SEC("struct_ops/mltcp_dctcp_cong_control")
void CONG_CONTROL(mltcp_dctcp_cong_control, sk, rs) {
  struct dctcp_flow *f = dctcp_flow_of(sk);
  struct mltcp_dctcp_params *p = entry_of(&params, f->host);
  struct mltcp_dctcp_counters *c = entry_of(&counters, f->host);
  if (!p || !c)
    return;
  job_on_ack(sk, &p->mltcp, &c->mltcp);
  struct dctcp_news news = dctcp_on_ack(sk, rs, &p->dctcp, &c->dctcp);
  if (cwnd_must_reduce(&f->cwnd, news.reduction)) {
    __u64 base_q24 = cwnd_cut_q24(&f->cwnd, &f->marking, news.reduction);
    dctcp_reduce(sk, news.reduction, window_cut_of(sk, &p->mltcp, cwnd_q24(&f->cwnd), base_q24), &c->dctcp);
  } else if (dctcp_may_grow(sk)) {
    cwnd_add(&f->cwnd, window_acked(sk, &p->mltcp, cwnd_slow_start(&f->cwnd, news.acked)));
  }
  dctcp_put(sk);
}

SEC("struct_ops/mltcp_dctcp_cwnd_event")
void BPF_PROG(mltcp_dctcp_cwnd_event, struct sock *sk, enum tcp_ca_event ev) {
  echo_event(&dctcp_flow_of(sk)->echo, sk, ev);
}

SEC("struct_ops/mltcp_dctcp_ssthresh")
__u32 BPF_PROG(mltcp_dctcp_ssthresh, struct sock *sk) { return tcp_of(sk)->snd_ssthresh; }

SEC("struct_ops/mltcp_dctcp_undo_cwnd")
__u32 BPF_PROG(mltcp_dctcp_undo_cwnd, struct sock *sk) { return tcp_of(sk)->snd_cwnd; }

SEC("struct_ops/mltcp_dctcp_release")
void BPF_PROG(mltcp_dctcp_release, struct sock *sk) { job_leave(sk); }

SEC(".struct_ops")
struct tcp_congestion_ops mltcp_dctcp = {
    .init = (void *)mltcp_dctcp_init,
    .release = (void *)mltcp_dctcp_release,
    .cong_control = (void *)mltcp_dctcp_cong_control,
    .cwnd_event = (void *)mltcp_dctcp_cwnd_event,
    .ssthresh = (void *)mltcp_dctcp_ssthresh,
    .undo_cwnd = (void *)mltcp_dctcp_undo_cwnd,
    .flags = TCP_CONG_NON_RESTRICTED | TCP_CONG_NEEDS_ECN,
    .name = KERNEL_NAME(mltcp_dctcp),
};
