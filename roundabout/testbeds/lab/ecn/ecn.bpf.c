// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// ECN marking where a switch's port sends, as a switch does it: by WRED thresholds on the backlog that a packet leaves
// behind (CoNEXT'16; HPCC's simulator). Marked by what it finds when it comes, it would tell of the queue as
// late as that is long.
//
// What comes to a port is counted, and its queue noted, by one of two programs: `mark_by_backlog` reads the root qdisc
// (Linux 6.2 and later), `mark_by_virtual_queue` imitates it with a queue of its own. `mark_departing` sees packets
// where they arrive, at the cable's far end, and marks by that queue, which has drained at the link's rate meanwhile.
//
// How long a mark takes until its sender hears the echo is counted where the echo arrives: of each flow, for the first
// mark after an echo, until an ACK with ECE that covers the marked packet comes to the sender's own device.
//
// Where a port has several queues, each packet is put into that of its DSCP, and marked by what it leaves behind there.
// How fast such a queue drains is up to the others, so its bytes are counted as they come and as they arrive.
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
#define MOST_PACKETS_LOG2 16 // of a super-packet: more are marked almost surely by any probability

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

// Whose packets arrive at a far end: from that device's ifindex to the port's.
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, MAX_PORTS);
  __type(key, __u32);
  __type(value, __u32);
} far_ends SEC(".maps");

extern void *bpf_cast_to_kern_ctx(void *ctx) __ksym __weak;

// Returns whether a super-packet of `segments` is marked. Where a segment stands for several packets of the real link,
// it is if any of those would be: the echo of one mark makes a CNP. Marked by itself, whatever it stands for, a flow
// with fewer packets would hear of the same queue later.
static __always_inline int exceeds_thresholds(const struct ecn_config *config, __u64 backlog, __u32 segments) {
  if (backlog <= config->kmin_bytes)
    return 0;
  if (backlog >= config->kmax_bytes)
    return 1;
  __u64 share = config->pmax_of_65536 * (backlog - config->kmin_bytes) / (config->kmax_bytes - config->kmin_bytes);
  __u64 unmarked = ECN_CERTAIN - share, all_unmarked = ECN_CERTAIN;
  __u32 packets = config->packets ? config->packets * segments : 1;
  for (int i = 0; i < MOST_PACKETS_LOG2 && packets; i++, packets >>= 1) {
    if (packets & 1)
      all_unmarked = all_unmarked * unmarked / ECN_CERTAIN;
    unmarked = unmarked * unmarked / ECN_CERTAIN;
  }
  return (bpf_get_prandom_u32() & (ECN_CERTAIN - 1)) >= all_unmarked;
}

// An ACK without data, and nothing else. RFC 3168, 6.1.4, wants it not ECT, but the kernel makes it so for a congestion
// control that needs ECN; nobody echoes a mark on it, and on RoCE, marked ACKs give no CNP.
static __always_inline int reads_headers(struct __sk_buff *skb, struct iphdr *ip, struct tcphdr *tcp) {
  return skb->protocol == bpf_htons(ETH_P_IP) && !bpf_skb_load_bytes(skb, ETH_HLEN, ip, sizeof(*ip)) &&
         ip->protocol == IPPROTO_TCP && !bpf_skb_load_bytes(skb, ETH_HLEN + ip->ihl * 4, tcp, sizeof(*tcp));
}

static __always_inline int has_no_data(const struct iphdr *ip, const struct tcphdr *tcp) {
  return bpf_ntohs(ip->tot_len) == (ip->ihl + tcp->doff) * 4 && !tcp->syn && !tcp->fin && !tcp->rst;
}

static __always_inline int is_pure_ack(struct __sk_buff *skb) {
  struct iphdr ip;
  struct tcphdr tcp;

  return reads_headers(skb, &ip, &tcp) && has_no_data(&ip, &tcp);
}

// Notes a packet that was just marked, unless the flow awaits an echo already.
static __always_inline void await_echo(struct __sk_buff *skb, __u32 ifindex) {
  struct iphdr ip;
  struct tcphdr tcp;

  if (!reads_headers(skb, &ip, &tcp))
    return;
  struct flow flow = {ip.saddr, ip.daddr, tcp.source, tcp.dest};
  struct awaited_echo mark = {bpf_ktime_get_ns(), bpf_ntohl(tcp.seq), ifindex};
  bpf_map_update_elem(&awaited, &flow, &mark, BPF_NOEXIST);
}

// Counts the echo of a mark at the device of the flow's sender: on the way there, packets are for another host. A new
// connection begins with a SYN in each direction; the echo of a mark that was made before does not come any more.
static __always_inline void hear_echo(struct __sk_buff *skb) {
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

// The ECN field, or 0 where there is none.
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

// What overtakes all data, as CNPs do, is in none of the queues.
static __always_inline int overtakes(struct __sk_buff *skb) { return ecn_of(skb) && is_pure_ack(skb); }

// Chooses a packet's class and adds it to its queue, which holds no more than `most`: that mends what was miscounted.
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

// Takes a packet from its queue, and returns what it leaves behind there.
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

// What is left of a queue that was noted some time ago. Call it locked.
static __always_inline __u64 left_of(const struct noted_queue *queue, __u64 now_ns, __u64 rate) {
  __u64 idle_ns = now_ns > queue->noted_ns ? now_ns - queue->noted_ns : 0;
  // After a second anything has drained, and the product below cannot overflow.
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
    if (now_ns >= queue->noted_ns) { // another CPU may have come later, and been quicker
      queue->noted_ns = now_ns;
      queue->backlog_bytes = backlog + length;
    }
    bpf_spin_unlock(&queue->lock);
  }
  return TC_ACT_OK;
}

// A packet that comes is part of the queue, unless a FIFO of that limit would have dropped it.
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

// What a packet leaves behind that arrives now.
static __always_inline __u64 left_behind(struct __sk_buff *skb, const struct ecn_config *config,
                                         struct noted_queue *noted) {
  __u64 rate = config->drain_bytes_per_s, now_ns = bpf_ktime_get_ns(), own = skb->len;

  bpf_spin_lock(&noted->lock);
  __u64 left = left_of(noted, now_ns, rate);
  bpf_spin_unlock(&noted->lock);
  return left > own ? left - own : 0;
}

// Marks what can be marked and is not yet: a mark made upstream is not counted twice. Other filters go on behind it. A
// packet leaves HTB before its own time on the link, so it is still part of what has not drained.
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
  hear_echo(ctx);
  __u64 left = config->queues > 1 ? leave_queue(ctx, config, queue) : 0;
  if (!ecn || ecn == ECN_CE)
    return TC_ACT_UNSPEC;
  if (config->queues <= 1)
    left = left_behind(ctx, config, queue);
  if (exceeds_thresholds(config, left, segments) && !is_pure_ack(ctx) &&
      !bpf_skb_pull_data(ctx, ETH_HLEN + sizeof(struct iphdr)) && // a tap may still share the headers: they become ours
      bpf_skb_ecn_set_ce(ctx) == 1) {
    __sync_fetch_and_add(&port->marks, segments);
    count_source(ctx, *ifindex, segments);
    await_echo(ctx, *ifindex);
  }
  return TC_ACT_UNSPEC;
}
