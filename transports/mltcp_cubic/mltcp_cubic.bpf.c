// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// MLTCP over CUBIC, which is the kernel's, and keeps its state in the private area.
#include "../mltcp/window.h"
#include "../reduction/unasked.h"

char _license[] SEC("license") = "Dual BSD/GPL";

struct mltcp_cubic_counters {
  struct mltcp_counters mltcp;
  struct reduction_counters reduction;
};

PER_HOST(params, struct mltcp_params);
PER_HOST(counters, struct mltcp_cubic_counters);

extern void cubictcp_init(struct sock *sk) __ksym;
extern void cubictcp_cong_avoid(struct sock *sk, __u32 ack, __u32 acked) __ksym;
extern __u32 cubictcp_recalc_ssthresh(struct sock *sk) __ksym;
extern void cubictcp_state(struct sock *sk, __u8 new_state) __ksym;
extern void cubictcp_cwnd_event(struct sock *sk, enum tcp_ca_event event) __ksym;
extern void cubictcp_acked(struct sock *sk, const struct ack_sample *sample) __ksym;
extern __u32 tcp_reno_undo_cwnd(struct sock *sk) __ksym;

static __always_inline __u32 cut(struct sock *sk, const struct mltcp_params *p) {
  __u32 base = cubictcp_recalc_ssthresh(sk);
  return p ? window_cut(sk, p, base) : base;
}

SEC("struct_ops/mltcp_cubic_init")
void BPF_PROG(mltcp_cubic_init, struct sock *sk) {
  COUNT_FOR(host_of(sk), struct mltcp_cubic_counters);
  job_join(sk, entry_of(&params, host_of(sk)));
  cubictcp_init(sk);
}

SEC("struct_ops/mltcp_cubic_pkts_acked")
void BPF_PROG(mltcp_cubic_pkts_acked, struct sock *sk, const struct ack_sample *sample) {
  struct mltcp_params *p = entry_of(&params, host_of(sk));
  struct mltcp_cubic_counters *c = entry_of(&counters, host_of(sk));
  if (p && c) {
    if (reduction_was_unasked(sk, &c->reduction))
      reduce_to(sk, cut(sk, p));
    job_on_ack(sk, p, &c->mltcp);
  }
  cubictcp_acked(sk, sample);
}

SEC("struct_ops/mltcp_cubic_cong_avoid")
void BPF_PROG(mltcp_cubic_cong_avoid, struct sock *sk, __u32 ack, __u32 acked) {
  struct mltcp_params *p = entry_of(&params, host_of(sk));
  cubictcp_cong_avoid(sk, ack, p ? window_acked(sk, p, acked) : acked);
}

SEC("struct_ops/mltcp_cubic_ssthresh")
__u32 BPF_PROG(mltcp_cubic_ssthresh, struct sock *sk) {
  struct mltcp_params *p = entry_of(&params, host_of(sk));
  return cut(sk, p);
}

SEC("struct_ops/mltcp_cubic_set_state")
void BPF_PROG(mltcp_cubic_set_state, struct sock *sk, __u8 new_state) { cubictcp_state(sk, new_state); }

SEC("struct_ops/mltcp_cubic_cwnd_event")
void BPF_PROG(mltcp_cubic_cwnd_event, struct sock *sk, enum tcp_ca_event ev) { cubictcp_cwnd_event(sk, ev); }

SEC("struct_ops/mltcp_cubic_undo_cwnd")
__u32 BPF_PROG(mltcp_cubic_undo_cwnd, struct sock *sk) { return tcp_reno_undo_cwnd(sk); }

SEC("struct_ops/mltcp_cubic_release")
void BPF_PROG(mltcp_cubic_release, struct sock *sk) { job_leave(sk); }

SEC(".struct_ops")
struct tcp_congestion_ops mltcp_cubic = {
    .init = (void *)mltcp_cubic_init,
    .release = (void *)mltcp_cubic_release,
    .pkts_acked = (void *)mltcp_cubic_pkts_acked,
    .cong_avoid = (void *)mltcp_cubic_cong_avoid,
    .ssthresh = (void *)mltcp_cubic_ssthresh,
    .set_state = (void *)mltcp_cubic_set_state,
    .cwnd_event = (void *)mltcp_cubic_cwnd_event,
    .undo_cwnd = (void *)mltcp_cubic_undo_cwnd,
    .flags = TCP_CONG_NON_RESTRICTED,
    .name = KERNEL_NAME(mltcp_cubic),
};
