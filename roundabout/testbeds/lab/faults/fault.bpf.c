// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Loses packets where they arrive over a link, so that their sender does not notice. A super-packet is lost as a whole.
#include <linux/bpf.h>
#include <linux/pkt_cls.h>

#include <bpf/bpf_helpers.h>

#include "fault.h"

char _license[] SEC("license") = "Dual BSD/GPL";

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, FAULT_MAX_DEVICES);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __type(key, __u32);
  __type(value, struct fault);
} faults SEC(".maps");

SEC("tc")
int lose(struct __sk_buff *skb) {
  __u32 ifindex = skb->ifindex;
  struct fault *fault = bpf_map_lookup_elem(&faults, &ifindex);

  if (!fault || (bpf_get_prandom_u32() & (FAULT_CERTAIN - 1)) >= fault->loss)
    return TC_ACT_UNSPEC;
  __sync_fetch_and_add(&fault->lost, skb->gso_segs ? skb->gso_segs : 1);
  return TC_ACT_SHOT;
}
