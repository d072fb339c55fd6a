// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Marks each EVERYth packet with data in it, and no other.
#include "transport.h"

char _license[] SEC("license") = "Dual BSD/GPL";

struct __sk_buff {
  __u32 len;
} __kernel_type;

static __u32 seen;

SEC("classifier")
int mark(struct __sk_buff *skb) {
  if (skb->len > 200 && ++seen % EVERY == 0)
    bpf_skb_ecn_set_ce(skb);
  return 0;
}
