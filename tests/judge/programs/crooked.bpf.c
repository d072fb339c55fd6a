// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// crooked: reads what may not be there, which the verifier refuses.
#include "transport.h"

char _license[] SEC("license") = "Dual BSD/GPL";

PER_HOST(windows, __u32);

SEC("struct_ops/crooked_cong_avoid")
void BPF_PROG(crooked_cong_avoid, struct sock *sk, __u32 ack, __u32 acked) {
  __u64 host = host_of(sk);
  __u32 *window = bpf_map_lookup_elem(&windows, &host);
  tcp_of(sk)->snd_cwnd = *window;
}

SEC("struct_ops/crooked_ssthresh")
__u32 BPF_PROG(crooked_ssthresh, struct sock *sk) { return 2; }

SEC("struct_ops/crooked_undo_cwnd")
__u32 BPF_PROG(crooked_undo_cwnd, struct sock *sk) { return 2; }

SEC(".struct_ops")
struct tcp_congestion_ops crooked = {
    .ssthresh = (void *)crooked_ssthresh,
    .cong_avoid = (void *)crooked_cong_avoid,
    .undo_cwnd = (void *)crooked_undo_cwnd,
    .name = "crooked",
};
