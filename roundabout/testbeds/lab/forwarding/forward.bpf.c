// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Forwards packets from a switch's port by the route of their flow. A bridge has one path to a host, and would send
// unknown destinations around a loop forever. Packets are not changed: hosts have fixed tables of MAC addresses.
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/pkt_cls.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "forward.h"

char _license[] SEC("license") = "Dual BSD/GPL";

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, FORWARD_MAX_ROUTES);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __type(key, struct route_key);
  __type(value, struct route);
} routes SEC(".maps");

// Adds the ports of TCP and UDP, which both begin with them. A fragment would have none; hosts send no fragments.
static __always_inline void add_ports(struct __sk_buff *skb, const struct iphdr *ip, struct route_key *key) {
  __u16 ports[2];

  if ((ip->protocol == IPPROTO_TCP || ip->protocol == IPPROTO_UDP) &&
      !bpf_skb_load_bytes(skb, ETH_HLEN + ip->ihl * 4, ports, sizeof(ports))) {
    key->sender_port = ports[0];
    key->receiver_port = ports[1];
  }
}

SEC("tc")
int forward(struct __sk_buff *skb) {
  struct iphdr ip;

  if (skb->protocol != bpf_htons(ETH_P_IP) || bpf_skb_load_bytes(skb, ETH_HLEN, &ip, sizeof(ip)))
    return TC_ACT_SHOT;
  struct route_key key = {.ifindex = skb->ifindex, .sender = ip.saddr, .receiver = ip.daddr};
  add_ports(skb, &ip, &key);
  struct route *route = bpf_map_lookup_elem(&routes, &key);
  if (!route) {
    key.sender_port = key.receiver_port = 0;
    route = bpf_map_lookup_elem(&routes, &key);
  }
  if (!route)
    return TC_ACT_SHOT;
  __sync_fetch_and_add(&route->bytes, skb->wire_len);
  return bpf_redirect(route->ifindex, 0);
}
