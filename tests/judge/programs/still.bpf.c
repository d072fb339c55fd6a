// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// still: its window never grows.
#include "transport.h"

char _license[] SEC("license") = "Dual BSD/GPL";

SEC("struct_ops/still_cong_avoid")
void BPF_PROG(still_cong_avoid, struct sock *sk, __u32 ack, __u32 acked) { tcp_of(sk)->snd_cwnd = 1; }

SEC("struct_ops/still_ssthresh")
__u32 BPF_PROG(still_ssthresh, struct sock *sk) { return 2; }

SEC("struct_ops/still_undo_cwnd")
__u32 BPF_PROG(still_undo_cwnd, struct sock *sk) { return 2; }

SEC(".struct_ops")
struct tcp_congestion_ops still = {
    .ssthresh = (void *)still_ssthresh,
    .cong_avoid = (void *)still_cong_avoid,
    .undo_cwnd = (void *)still_undo_cwnd,
    .name = "still",
};
