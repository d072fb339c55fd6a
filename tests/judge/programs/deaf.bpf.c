// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// deaf: Reno that takes no notice of marks, nor of losses.
#include "transport.h"

char _license[] SEC("license") = "Dual BSD/GPL";

SEC("struct_ops/deaf_cong_control")
void CONG_CONTROL(deaf_cong_control, sk, rs) {
  struct tcp_sock *tp = tcp_of(sk);
  if (rs->acked_sacked && tp->snd_cwnd < 4000)
    tp->snd_cwnd += 1;
}

SEC("struct_ops/deaf_ssthresh")
__u32 BPF_PROG(deaf_ssthresh, struct sock *sk) { return tcp_of(sk)->snd_cwnd; }

SEC("struct_ops/deaf_undo_cwnd")
__u32 BPF_PROG(deaf_undo_cwnd, struct sock *sk) { return tcp_of(sk)->snd_cwnd; }

SEC(".struct_ops")
struct tcp_congestion_ops deaf = {
    .ssthresh = (void *)deaf_ssthresh,
    .cong_control = (void *)deaf_cong_control,
    .undo_cwnd = (void *)deaf_undo_cwnd,
    .flags = TCP_CONG_NEEDS_ECN,
    .name = "deaf",
};
