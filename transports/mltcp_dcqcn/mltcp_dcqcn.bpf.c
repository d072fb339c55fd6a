// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// MLTCP over DCQCN: F scales R_AI and R_HAI. Adaptive unfairness (HotNets'22, section 4), R_AI (1 + sent / total), is
// acts_on additive with slope 1 and intercept 1.
#include "../dcqcn/flow.h"
#include "../mltcp/job.h"

char _license[] SEC("license") = "Dual BSD/GPL";

struct mltcp_dcqcn_params {
  struct dcqcn_params dcqcn;
  struct mltcp_params mltcp;
};

struct mltcp_dcqcn_counters {
  struct dcqcn_counters dcqcn;
  struct mltcp_counters mltcp;
};

PER_HOST(params, struct mltcp_dcqcn_params);
PER_HOST(counters, struct mltcp_dcqcn_counters);

SEC("struct_ops/mltcp_dcqcn_init")
void BPF_PROG(mltcp_dcqcn_init, struct sock *sk) {
  struct mltcp_dcqcn_params *p = entry_of(&params, host_of(sk));
  COUNT_FOR(host_of(sk), struct mltcp_dcqcn_counters);
  if (!p)
    return;
  dcqcn_begin(sk, &p->dcqcn);
  job_join(sk, &p->mltcp);
}

// DCQCN's parameters as F scales them.
static __always_inline struct dcqcn_params scaled(const struct mltcp_dcqcn_params *p, __u32 F_q24) {
  struct dcqcn_params to = p->dcqcn;
  if (p->mltcp.acts_on != DECREASE)
    to.R_AI = times_q24(to.R_AI, F_q24);
  if (p->mltcp.acts_on == INCREASE)
    to.R_HAI = times_q24(to.R_HAI, F_q24);
  return to;
}

// Lessens a cut from the rate `before`.
static __always_inline void soften(struct reaction_point *rp, const struct mltcp_dcqcn_params *p, __u64 before,
                                   __u32 F_q24) {
  __u64 kept = aggressiveness_decrease(before, rp->R_C < before ? rp->R_C : before, F_q24);
  rp->R_C = kept > p->dcqcn.R_min ? kept : p->dcqcn.R_min;
}

SEC("struct_ops/mltcp_dcqcn_cong_control")
void CONG_CONTROL(mltcp_dcqcn_cong_control, sk, rs) {
  struct dcqcn_flow *f = dcqcn_flow_of(sk);
  struct mltcp_dcqcn_params *p = entry_of(&params, f->host);
  struct mltcp_dcqcn_counters *c = entry_of(&counters, f->host);
  struct member *m = member_of(sk);
  if (!p || !c)
    return;
  job_on_ack(sk, &p->mltcp, &c->mltcp);
  __u32 F_q24 = m ? m->F_q24 : ONE_Q24;
  struct dcqcn_params now = scaled(p, F_q24);
  __u64 before = dcqcn_hear(sk, rs, &now, &c->dcqcn);
  if (before && p->mltcp.acts_on == DECREASE)
    soften(&f->rp, p, before, F_q24);
  dcqcn_show(f, &c->dcqcn);
  dcqcn_pace(sk, f, &p->dcqcn);
}

SEC("struct_ops/mltcp_dcqcn_cwnd_event")
void BPF_PROG(mltcp_dcqcn_cwnd_event, struct sock *sk, enum tcp_ca_event ev) {
  echo_event(&dcqcn_flow_of(sk)->echo, sk, ev);
}

SEC("struct_ops/mltcp_dcqcn_ssthresh")
__u32 BPF_PROG(mltcp_dcqcn_ssthresh, struct sock *sk) { return tcp_of(sk)->snd_ssthresh; }

SEC("struct_ops/mltcp_dcqcn_undo_cwnd")
__u32 BPF_PROG(mltcp_dcqcn_undo_cwnd, struct sock *sk) { return tcp_of(sk)->snd_cwnd; }

// Allows bursts of one segment, as in dcqcn.
SEC("struct_ops/mltcp_dcqcn_min_tso_segs")
__u32 BPF_PROG(mltcp_dcqcn_min_tso_segs, struct sock *sk) { return 1; }

SEC("struct_ops/mltcp_dcqcn_release")
void BPF_PROG(mltcp_dcqcn_release, struct sock *sk) { job_leave(sk); }

SEC(".struct_ops")
struct tcp_congestion_ops mltcp_dcqcn = {
    .init = (void *)mltcp_dcqcn_init,
    .release = (void *)mltcp_dcqcn_release,
    .cong_control = (void *)mltcp_dcqcn_cong_control,
    .cwnd_event = (void *)mltcp_dcqcn_cwnd_event,
    .ssthresh = (void *)mltcp_dcqcn_ssthresh,
    .undo_cwnd = (void *)mltcp_dcqcn_undo_cwnd,
    .min_tso_segs = (void *)mltcp_dcqcn_min_tso_segs,
    .flags = TCP_CONG_NON_RESTRICTED | TCP_CONG_NEEDS_ECN,
    .name = KERNEL_NAME(mltcp_dcqcn),
};
