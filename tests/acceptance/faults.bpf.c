// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What goes wrong on a cable, as tc's classifiers: packets lost, late, or with another DSCP.
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/pkt_cls.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <stddef.h>

#ifndef ONE_IN
#define ONE_IN 100
#endif
#define LATE_NS 3000000
#define OTHER_TOS (8 << 2)

SEC("classifier/lose") int lose(struct __sk_buff *skb) {
  return bpf_get_prandom_u32() % ONE_IN ? TC_ACT_OK : TC_ACT_SHOT;
}

static long is_time(__u32 turn, void *until_ns) { return bpf_ktime_get_ns() >= *(__u64 *)until_ns; }

// Kernels may lack sch_netem: the CPU waits with the packet.
SEC("classifier/delay") int delay(struct __sk_buff *skb) {
  __u64 until_ns = bpf_ktime_get_ns() + LATE_NS;
  bpf_loop(1 << 20, is_time, &until_ns, 0);
  return TC_ACT_OK;
}

SEC("classifier/remark") int remark(struct __sk_buff *skb) {
  const int tos_at = ETH_HLEN + offsetof(struct iphdr, tos), sum_at = ETH_HLEN + offsetof(struct iphdr, check);
  __u8 tos, other;
  if (skb->protocol != bpf_htons(ETH_P_IP) || bpf_skb_load_bytes(skb, tos_at, &tos, 1))
    return TC_ACT_OK;
  other = OTHER_TOS | (tos & 3);
  bpf_l3_csum_replace(skb, sum_at, bpf_htons(tos), bpf_htons(other), 2);
  bpf_skb_store_bytes(skb, tos_at, &other, 1, 0);
  return TC_ACT_OK;
}

char _license[] SEC("license") = "Dual BSD/GPL";
