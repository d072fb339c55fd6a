// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// MLTCP over Reno, which is the kernel's.
#include "../mltcp/window.h"
#include "../reduction/unasked.h"

char _license[] SEC("license") = "Dual BSD/GPL";

struct mltcp_reno_counters {
  struct mltcp_counters mltcp;
  struct reduction_counters reduction;
};

PER_HOST(params, struct mltcp_params);
PER_HOST(counters, struct mltcp_reno_counters);

extern void tcp_reno_cong_avoid(struct sock *sk, __u32 ack, __u32 acked) __ksym;
extern __u32 tcp_reno_ssthresh(struct sock *sk) __ksym;
extern __u32 tcp_reno_undo_cwnd(struct sock *sk) __ksym;

static __always_inline __u32 cut(struct sock *sk, const struct mltcp_params *p) {
  __u32 base = tcp_reno_ssthresh(sk);
  return p ? window_cut(sk, p, base) : base;
}

SEC("struct_ops/mltcp_reno_init")
void BPF_PROG(mltcp_reno_init, struct sock *sk) {
  COUNT_FOR(host_of(sk), struct mltcp_reno_counters);
  job_join(sk, entry_of(&params, host_of(sk)));
}

SEC("struct_ops/mltcp_reno_pkts_acked")
void BPF_PROG(mltcp_reno_pkts_acked, struct sock *sk, const struct ack_sample *sample) {
  struct mltcp_params *p = entry_of(&params, host_of(sk));
  struct mltcp_reno_counters *c = entry_of(&counters, host_of(sk));
  if (!p || !c)
    return;
  if (reduction_was_unasked(sk, &c->reduction))
    reduce_to(sk, cut(sk, p));
  job_on_ack(sk, p, &c->mltcp);
}

SEC("struct_ops/mltcp_reno_cong_avoid")
void BPF_PROG(mltcp_reno_cong_avoid, struct sock *sk, __u32 ack, __u32 acked) {
  struct mltcp_params *p = entry_of(&params, host_of(sk));
  tcp_reno_cong_avoid(sk, ack, p ? window_acked(sk, p, acked) : acked);
}

SEC("struct_ops/mltcp_reno_ssthresh")
__u32 BPF_PROG(mltcp_reno_ssthresh, struct sock *sk) {
  struct mltcp_params *p = entry_of(&params, host_of(sk));
  return cut(sk, p);
}

SEC("struct_ops/mltcp_reno_undo_cwnd")
__u32 BPF_PROG(mltcp_reno_undo_cwnd, struct sock *sk) { return tcp_reno_undo_cwnd(sk); }

SEC("struct_ops/mltcp_reno_release")
void BPF_PROG(mltcp_reno_release, struct sock *sk) { job_leave(sk); }

SEC(".struct_ops")
struct tcp_congestion_ops mltcp_reno = {
    .init = (void *)mltcp_reno_init,
    .release = (void *)mltcp_reno_release,
    .pkts_acked = (void *)mltcp_reno_pkts_acked,
    .cong_avoid = (void *)mltcp_reno_cong_avoid,
    .ssthresh = (void *)mltcp_reno_ssthresh,
    .undo_cwnd = (void *)mltcp_reno_undo_cwnd,
    .flags = TCP_CONG_NON_RESTRICTED,
    .name = KERNEL_NAME(mltcp_reno),
};
