// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// DCQCN (Zhu et al., SIGCOMM'15).
#include "flow.h"

char _license[] SEC("license") = "Dual BSD/GPL";

PER_HOST(params, struct dcqcn_params);
PER_HOST(counters, struct dcqcn_counters);

SEC("struct_ops/dcqcn_init")
void BPF_PROG(dcqcn_init, struct sock *sk) {
  COUNT_FOR(host_of(sk), struct dcqcn_counters);
  dcqcn_begin(sk, entry_of(&params, host_of(sk)));
}

SEC("struct_ops/dcqcn_cong_control")
void CONG_CONTROL(dcqcn_cong_control, sk, rs) {
  struct dcqcn_flow *f = dcqcn_flow_of(sk);
  struct dcqcn_params *p = entry_of(&params, f->host);
  struct dcqcn_counters *c = entry_of(&counters, f->host);
  if (!p || !c)
    return;
  dcqcn_hear(sk, rs, p, c);
  dcqcn_show(f, c);
  dcqcn_pace(sk, f, p);
}

SEC("struct_ops/dcqcn_cwnd_event")
void BPF_PROG(dcqcn_cwnd_event, struct sock *sk, enum tcp_ca_event ev) { echo_event(&dcqcn_flow_of(sk)->echo, sk, ev); }

SEC("struct_ops/dcqcn_ssthresh")
__u32 BPF_PROG(dcqcn_ssthresh, struct sock *sk) { return tcp_of(sk)->snd_ssthresh; }

SEC("struct_ops/dcqcn_undo_cwnd")
__u32 BPF_PROG(dcqcn_undo_cwnd, struct sock *sk) { return tcp_of(sk)->snd_cwnd; }

// Allows bursts of one segment, because a large burst would exceed a step threshold by itself.
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
