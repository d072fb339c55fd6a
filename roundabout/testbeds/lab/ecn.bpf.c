// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// ECN marking where a switch's port sends, as a switch does it: by WRED thresholds on the backlog that a packet finds.
// Two programs, of which the loader takes one: `mark_by_backlog` reads the port's root qdisc (Linux 6.2 and later),
// `mark_by_virtual_queue` imitates it with a queue of its own that drains at the link's rate.
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/pkt_cls.h>
#include <linux/tcp.h>
#include <stddef.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "ecn.h"

char _license[] SEC("license") = "Dual BSD/GPL";

#define MAX_PORTS 4096
#define NS_PER_S 1000000000ULL
#define TOS_OFFSET (ETH_HLEN + 1)
#define ECN_MASK 3
#define ECN_CE 3

// Only what is read, relocated to the running kernel's layout by its BTF.
struct gnet_stats_queue {
  __u32 backlog;
} __attribute__((preserve_access_index));

struct Qdisc {
  struct gnet_stats_queue qstats;
} __attribute__((preserve_access_index));

struct net_device {
  struct Qdisc *qdisc;
} __attribute__((preserve_access_index));

struct sk_buff {
  struct net_device *dev;
} __attribute__((preserve_access_index));

struct virtual_queue {
  struct bpf_spin_lock lock;
  __u64 drained_ns;
  __u64 backlog_bytes;
};

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, MAX_PORTS);
  __type(key, __u32);
  __type(value, struct ecn_port);
} ports SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, ECN_MAX_SOURCES);
  __type(key, struct ecn_source);
  __type(value, __u64);
} sources SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, MAX_PORTS);
  __type(key, __u32);
  __type(value, struct virtual_queue);
} virtual_queues SEC(".maps");

extern void *bpf_cast_to_kern_ctx(void *ctx) __ksym __weak;

static __always_inline int exceeds_thresholds(const struct ecn_port *port, __u64 backlog) {
  if (backlog <= port->kmin_bytes)
    return 0;
  if (backlog >= port->kmax_bytes)
    return 1;
  __u64 share = port->pmax_of_65536 * (backlog - port->kmin_bytes) / (port->kmax_bytes - port->kmin_bytes);
  return (bpf_get_prandom_u32() & (ECN_CERTAIN - 1)) < share;
}

// A TCP segment without data. RFC 3168, 6.1.4, wants it not ECT, but the kernel makes it so for a congestion control
// that needs ECN; nobody echoes a mark on it, and on RoCE, marked ACKs give no CNP.
static __always_inline int is_pure_ack(struct __sk_buff *skb) {
  struct iphdr ip;
  struct tcphdr tcp;

  if (bpf_skb_load_bytes(skb, ETH_HLEN, &ip, sizeof(ip)) || ip.protocol != IPPROTO_TCP ||
      bpf_skb_load_bytes(skb, ETH_HLEN + ip.ihl * 4, &tcp, sizeof(tcp)))
    return 0;
  return bpf_ntohs(ip.tot_len) == (ip.ihl + tcp.doff) * 4;
}

static __always_inline void count_source(struct __sk_buff *skb, __u32 segments) {
  struct ecn_source source = {.ifindex = skb->ifindex};
  __u64 none = 0, *marks;

  if (bpf_skb_load_bytes(skb, ETH_HLEN + offsetof(struct iphdr, saddr), &source.address, sizeof(source.address)))
    return;
  marks = bpf_map_lookup_elem(&sources, &source);
  if (!marks) {
    bpf_map_update_elem(&sources, &source, &none, BPF_NOEXIST);
    marks = bpf_map_lookup_elem(&sources, &source);
  }
  if (marks)
    __sync_fetch_and_add(marks, segments);
}

// Counts the packet, and marks it if it can be marked and is not yet: a mark made upstream is not counted twice.
static __always_inline void count_and_mark(struct __sk_buff *skb, struct ecn_port *port, __u64 backlog) {
  __u32 segments = skb->gso_segs ? skb->gso_segs : 1;
  __u8 tos = 0;

  __sync_fetch_and_add(&port->packets, segments);
  __sync_fetch_and_add(&port->bytes, skb->wire_len);
  if (skb->protocol != bpf_htons(ETH_P_IP) || bpf_skb_load_bytes(skb, TOS_OFFSET, &tos, sizeof(tos)) ||
      !(tos & ECN_MASK))
    return;
  __sync_fetch_and_add(&port->ect_packets, segments);
  if ((tos & ECN_MASK) != ECN_CE && exceeds_thresholds(port, backlog) && !is_pure_ack(skb) &&
      !bpf_skb_pull_data(skb, ETH_HLEN + sizeof(struct iphdr)) && // a tap may still share the headers: they become ours
      bpf_skb_ecn_set_ce(skb) == 1) {
    __sync_fetch_and_add(&port->marks, segments);
    count_source(skb, segments);
  }
}

SEC("tc")
int mark_by_backlog(struct __sk_buff *ctx) {
  __u32 ifindex = ctx->ifindex;
  struct ecn_port *port = bpf_map_lookup_elem(&ports, &ifindex);

  if (port) {
    struct sk_buff *skb = bpf_cast_to_kern_ctx(ctx);

    count_and_mark(ctx, port, skb->dev->qdisc->qstats.backlog);
  }
  return TC_ACT_OK;
}

// The backlog found by a packet of `length` that arrives now, after which it is part of it, unless a FIFO of that limit
// would have dropped it.
static __always_inline __u64 pass_virtual_queue(struct virtual_queue *queue, const struct ecn_port *port,
                                                __u32 length) {
  __u64 now_ns = bpf_ktime_get_ns();
  __u64 rate = port->drain_bytes_per_s, limit = port->limit_bytes;

  bpf_spin_lock(&queue->lock);
  __u64 idle_ns = now_ns > queue->drained_ns ? now_ns - queue->drained_ns : 0;
  // After a second anything has drained, and the product below cannot overflow.
  __u64 drained = idle_ns < NS_PER_S ? idle_ns * rate / NS_PER_S : queue->backlog_bytes;
  __u64 backlog = queue->backlog_bytes > drained ? queue->backlog_bytes - drained : 0;

  queue->drained_ns = now_ns;
  queue->backlog_bytes = backlog + length <= limit ? backlog + length : backlog;
  bpf_spin_unlock(&queue->lock);
  return backlog;
}

SEC("tc")
int mark_by_virtual_queue(struct __sk_buff *ctx) {
  __u32 ifindex = ctx->ifindex;
  struct ecn_port *port = bpf_map_lookup_elem(&ports, &ifindex);
  struct virtual_queue *queue = bpf_map_lookup_elem(&virtual_queues, &ifindex);

  if (port && queue)
    count_and_mark(ctx, port, pass_virtual_queue(queue, port, ctx->wire_len));
  return TC_ACT_OK;
}
