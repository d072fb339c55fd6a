// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// ECN marking at a switch's port, as a switch does it: by WRED thresholds on the backlog behind a departing packet
// (CoNEXT'16; HPCC's simulator). Marking on arrival would delay the congestion signal by the queueing delay.
//
// One of two programs counts a port's packets and records its backlog: `mark_by_backlog` reads the root qdisc (Linux
// 6.2 and later), `mark_by_virtual_queue` simulates a queue. `mark_departing` runs at the cable's far end. It marks by
// the recorded backlog, less what the link has drained since.
//
// The feedback delay is measured at the sender's own device, for one mark of each flow at a time. It is the time from
// the mark until an ACK with ECE that covers the marked packet.
//
// Where a port has several queues, a packet joins the queue of its DSCP, and is marked by the backlog of that queue.
// The drain rate of such a queue depends on the other queues, so its bytes are counted on arrival and on departure.
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
#define FOR_THIS_HOST 0 // PACKET_HOST
#define LONGEST_ACK (ETH_HLEN + 60 + 60)
#define TOS_OFFSET (ETH_HLEN + 1)
#define ECN_MASK 3
#define ECN_CE 3
#define MAX_PACKETS_LOG2 16 // of a super-packet: any probability marks one of more packets almost surely

// Only the members that are read here. CO-RE relocates them to the running kernel's layout.
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

struct noted_queue {
  struct bpf_spin_lock lock;
  __u64 noted_ns;
  __u64 backlog_bytes;
  __u64 waiting_bytes[ECN_QUEUES]; // of each queue, where there are several
};

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, MAX_PORTS);
  __type(key, __u32);
  __type(value, struct ecn_port);
} ports SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, MAX_PORTS);
  __type(key, __u32);
  __type(value, struct ecn_config);
} configs SEC(".maps");

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
  __type(value, struct noted_queue);
} queues SEC(".maps");

struct flow {
  __u32 from, to;
  __u16 from_port, to_port;
};

struct awaited_echo {
  __u64 marked_ns;
  __u32 seq; // of the marked packet, in host byte order
  __u32 ifindex;
};

// The marks whose echoes have not arrived, one of each flow at most.
struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, ECN_MAX_SOURCES);
  __type(key, struct flow);
  __type(value, struct awaited_echo);
} awaited SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, MAX_PORTS);
  __type(key, __u32);
  __type(value, struct ecn_echoes);
} echoes SEC(".maps");

// Maps the ifindex of the device at a cable's far end to the ifindex of the port.
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, MAX_PORTS);
  __type(key, __u32);
  __type(value, __u32);
} far_ends SEC(".maps");

extern void *bpf_cast_to_kern_ctx(void *ctx) __ksym __weak;

// Decides at random whether a super-packet of `segments` is marked. A segment may represent several packets of the real
// link. The super-packet is then marked if any of those would be, because one echo causes a CNP. With one decision per
// segment, a flow with fewer packets would get feedback from the same queue later.
static __always_inline int exceeds_thresholds(const struct ecn_config *config, __u64 backlog, __u32 segments) {
  if (backlog <= config->kmin_bytes)
    return 0;
  if (backlog >= config->kmax_bytes)
    return 1;
  __u64 share = config->pmax_of_65536 * (backlog - config->kmin_bytes) / (config->kmax_bytes - config->kmin_bytes);
  __u64 unmarked = ECN_CERTAIN - share, all_unmarked = ECN_CERTAIN;
  __u32 packets = config->packets ? config->packets * segments : 1;
  for (int i = 0; i < MAX_PACKETS_LOG2 && packets; i++, packets >>= 1) {
    if (packets & 1)
      all_unmarked = all_unmarked * unmarked / ECN_CERTAIN;
    unmarked = unmarked * unmarked / ECN_CERTAIN;
  }
  return (bpf_get_prandom_u32() & (ECN_CERTAIN - 1)) >= all_unmarked;
}

static __always_inline int reads_headers(struct __sk_buff *skb, struct iphdr *ip, struct tcphdr *tcp) {
  return skb->protocol == bpf_htons(ETH_P_IP) && !bpf_skb_load_bytes(skb, ETH_HLEN, ip, sizeof(*ip)) &&
         ip->protocol == IPPROTO_TCP && !bpf_skb_load_bytes(skb, ETH_HLEN + ip->ihl * 4, tcp, sizeof(*tcp));
}

static __always_inline int has_no_data(const struct iphdr *ip, const struct tcphdr *tcp) {
  return bpf_ntohs(ip->tot_len) == (ip->ihl + tcp->doff) * 4 && !tcp->syn && !tcp->fin && !tcp->rst;
}

// Returns true for an ACK without data. RFC 3168, section 6.1.4, forbids ECT on pure ACKs, but the kernel sets it for a
// congestion control that needs ECN. A mark on such an ACK is never echoed; on RoCE, marked ACKs cause no CNP.
static __always_inline int is_pure_ack(struct __sk_buff *skb) {
  struct iphdr ip;
  struct tcphdr tcp;

  return reads_headers(skb, &ip, &tcp) && has_no_data(&ip, &tcp);
}

// Records a packet that was just marked, unless an earlier mark of the flow still has no echo.
static __always_inline void await_echo(struct __sk_buff *skb, __u32 ifindex) {
  struct iphdr ip;
  struct tcphdr tcp;

  if (!reads_headers(skb, &ip, &tcp))
    return;
  struct flow flow = {ip.saddr, ip.daddr, tcp.source, tcp.dest};
  struct awaited_echo mark = {bpf_ktime_get_ns(), bpf_ntohl(tcp.seq), ifindex};
  bpf_map_update_elem(&awaited, &flow, &mark, BPF_NOEXIST);
}

// Counts the echo of a mark at the device of the flow's sender. On the path to it, packets are for another host. A SYN
// begins a new connection, so it discards marks of an earlier connection with the same ports.
static __always_inline void count_echo(struct __sk_buff *skb) {
  struct iphdr ip;
  struct tcphdr tcp;

  if (skb->pkt_type != FOR_THIS_HOST || skb->len > LONGEST_ACK || !reads_headers(skb, &ip, &tcp))
    return;
  struct flow flow = {ip.daddr, ip.saddr, tcp.dest, tcp.source};
  if (tcp.syn)
    bpf_map_delete_elem(&awaited, &flow);
  if (!tcp.ece || !has_no_data(&ip, &tcp))
    return;
  struct awaited_echo *mark = bpf_map_lookup_elem(&awaited, &flow);
  if (!mark || (__s32)(bpf_ntohl(tcp.ack_seq) - mark->seq) <= 0)
    return;
  struct ecn_echoes *sum = bpf_map_lookup_elem(&echoes, &mark->ifindex);
  if (sum) {
    __sync_fetch_and_add(&sum->count, 1);
    __sync_fetch_and_add(&sum->ns, bpf_ktime_get_ns() - mark->marked_ns);
  }
  bpf_map_delete_elem(&awaited, &flow);
}

static __always_inline void count_source(struct __sk_buff *skb, __u32 ifindex, __u32 segments) {
  struct ecn_source source = {.ifindex = ifindex};
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

static __always_inline __u32 segments_of(struct __sk_buff *skb) { return skb->gso_segs ? skb->gso_segs : 1; }

// Returns the ECN field, or 0 for packets without one.
static __always_inline __u8 ecn_of(struct __sk_buff *skb) {
  __u8 tos = 0;

  if (skb->protocol != bpf_htons(ETH_P_IP) || bpf_skb_load_bytes(skb, TOS_OFFSET, &tos, sizeof(tos)))
    return 0;
  return tos & ECN_MASK;
}

static __always_inline __u32 queue_of(struct __sk_buff *skb, const struct ecn_config *config) {
  __u8 tos = 0;

  if (skb->protocol != bpf_htons(ETH_P_IP) || bpf_skb_load_bytes(skb, TOS_OFFSET, &tos, sizeof(tos)))
    return 0;
  return config->queue_of_dscp[tos >> 2] & (ECN_QUEUES - 1);
}

// Returns true for packets that represent CNPs. They have their own class, and are in none of the queues.
static __always_inline int overtakes(struct __sk_buff *skb) { return ecn_of(skb) && is_pure_ack(skb); }

// Chooses a packet's class and adds its bytes to its queue. `most` limits the queue, which corrects counting errors.
static __always_inline void join_queue(struct __sk_buff *skb, const struct ecn_config *config,
                                       struct noted_queue *noted, __u64 most) {
  __u32 queue = queue_of(skb, config);
  __u64 length = skb->len;

  if (overtakes(skb)) {
    skb->priority = ECN_CLASS_CNPS;
    return;
  }
  skb->priority = queue ? ECN_CLASS_OF(queue) : ECN_CLASS_LAST;
  if (most > config->limit_bytes)
    most = config->limit_bytes;
  bpf_spin_lock(&noted->lock);
  __u64 waiting = noted->waiting_bytes[queue] + length;
  noted->waiting_bytes[queue] = waiting < most ? waiting : most;
  bpf_spin_unlock(&noted->lock);
}

// Removes a packet from its queue, and returns the queue's remaining bytes.
static __always_inline __u64 leave_queue(struct __sk_buff *skb, const struct ecn_config *config,
                                         struct noted_queue *noted) {
  __u32 queue = queue_of(skb, config);
  __u64 length = skb->len, left;

  if (overtakes(skb))
    return 0;
  bpf_spin_lock(&noted->lock);
  left = noted->waiting_bytes[queue] > length ? noted->waiting_bytes[queue] - length : 0;
  noted->waiting_bytes[queue] = left;
  bpf_spin_unlock(&noted->lock);
  return left;
}

static __always_inline void count(struct __sk_buff *skb, struct ecn_port *port) {
  __u32 segments = segments_of(skb);

  __sync_fetch_and_add(&port->packets, segments);
  __sync_fetch_and_add(&port->bytes, skb->wire_len);
  if (ecn_of(skb))
    __sync_fetch_and_add(&port->ect_packets, segments);
}

// Returns the present bytes of a queue, which has drained since it was recorded. Requires its lock.
static __always_inline __u64 left_of(const struct noted_queue *queue, __u64 now_ns, __u64 rate) {
  __u64 idle_ns = now_ns > queue->noted_ns ? now_ns - queue->noted_ns : 0;
  // Any queue drains within a second. The limit keeps the product from overflowing.
  __u64 drained = idle_ns < NS_PER_S ? idle_ns * rate / NS_PER_S : queue->backlog_bytes;

  return queue->backlog_bytes > drained ? queue->backlog_bytes - drained : 0;
}

SEC("tc")
int mark_by_backlog(struct __sk_buff *ctx) {
  __u32 ifindex = ctx->ifindex;
  struct ecn_port *port = bpf_map_lookup_elem(&ports, &ifindex);
  struct ecn_config *config = bpf_map_lookup_elem(&configs, &ifindex);
  struct noted_queue *queue = bpf_map_lookup_elem(&queues, &ifindex);

  if (port && config && queue) {
    struct sk_buff *skb = bpf_cast_to_kern_ctx(ctx);
    __u64 now_ns = bpf_ktime_get_ns(), backlog = skb->dev->qdisc->qstats.backlog, length = ctx->wire_len;

    count(ctx, port);
    if (config->queues > 1)
      join_queue(ctx, config, queue, backlog + length);
    bpf_spin_lock(&queue->lock);
    if (now_ns >= queue->noted_ns) { // another CPU may already have recorded a later packet
      queue->noted_ns = now_ns;
      queue->backlog_bytes = backlog + length;
    }
    bpf_spin_unlock(&queue->lock);
  }
  return TC_ACT_OK;
}

// An arriving packet joins the queue, unless a FIFO with this limit would drop it.
SEC("tc")
int mark_by_virtual_queue(struct __sk_buff *ctx) {
  __u32 ifindex = ctx->ifindex;
  struct ecn_port *port = bpf_map_lookup_elem(&ports, &ifindex);
  struct ecn_config *config = bpf_map_lookup_elem(&configs, &ifindex);
  struct noted_queue *queue = bpf_map_lookup_elem(&queues, &ifindex);

  if (port && config && queue) {
    __u64 rate = config->drain_bytes_per_s, limit = config->limit_bytes, length = ctx->wire_len;
    __u64 now_ns = bpf_ktime_get_ns();

    count(ctx, port);
    if (config->queues > 1)
      join_queue(ctx, config, queue, limit);
    bpf_spin_lock(&queue->lock);
    __u64 backlog = left_of(queue, now_ns, rate);
    queue->noted_ns = now_ns;
    queue->backlog_bytes = backlog + length <= limit ? backlog + length : backlog;
    bpf_spin_unlock(&queue->lock);
  }
  return TC_ACT_OK;
}

// Returns the backlog behind a packet that departs now.
static __always_inline __u64 left_behind(struct __sk_buff *skb, const struct ecn_config *config,
                                         struct noted_queue *noted) {
  __u64 rate = config->drain_bytes_per_s, now_ns = bpf_ktime_get_ns(), own = skb->len;

  bpf_spin_lock(&noted->lock);
  __u64 left = left_of(noted, now_ns, rate);
  bpf_spin_unlock(&noted->lock);
  return left > own ? left - own : 0;
}

// Marks ECT packets that carry no mark yet, so that marks of switches upstream are not counted twice. Later filters
// still run. HTB releases a packet before its transmission time, so the recorded queue still includes it.
SEC("tc")
int mark_departing(struct __sk_buff *ctx) {
  __u32 far = ctx->ifindex, segments = segments_of(ctx);
  __u32 *ifindex = bpf_map_lookup_elem(&far_ends, &far);
  struct ecn_port *port = ifindex ? bpf_map_lookup_elem(&ports, ifindex) : NULL;
  struct ecn_config *config = ifindex ? bpf_map_lookup_elem(&configs, ifindex) : NULL;
  struct noted_queue *queue = ifindex ? bpf_map_lookup_elem(&queues, ifindex) : NULL;
  __u8 ecn = ecn_of(ctx);

  if (!ifindex || !port || !config || !queue)
    return TC_ACT_UNSPEC;
  count_echo(ctx);
  __u64 left = config->queues > 1 ? leave_queue(ctx, config, queue) : 0;
  if (!ecn || ecn == ECN_CE)
    return TC_ACT_UNSPEC;
  if (config->queues <= 1)
    left = left_behind(ctx, config, queue);
  if (exceeds_thresholds(config, left, segments) && !is_pure_ack(ctx) &&
      !bpf_skb_pull_data(ctx, ETH_HLEN + sizeof(struct iphdr)) && // a tap may share the headers: get a private copy
      bpf_skb_ecn_set_ce(ctx) == 1) {
    __sync_fetch_and_add(&port->marks, segments);
    count_source(ctx, *ifindex, segments);
    await_echo(ctx, *ifindex);
  }
  return TC_ACT_UNSPEC;
}
