// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The kernel types that the transports touch, and of them only the fields used. CO-RE relocates every access against
// the running kernel's BTF, so no vmlinux.h is generated and one object serves every kernel.
#ifndef ROUNDABOUT_KERNEL_H
#define ROUNDABOUT_KERNEL_H

#include "numbers.h"

enum { BPF_MAP_TYPE_HASH = 1, BPF_MAP_TYPE_SK_STORAGE = 24 };
enum { BPF_NOEXIST = 1 };
enum { BPF_F_NO_PREALLOC = 1 };
enum { BPF_SK_STORAGE_GET_F_CREATE = 1 };
enum { SK_PACING_NEEDED = 1 };
enum tcp_ca_event { CA_EVENT_ECN_NO_CE = 4, CA_EVENT_ECN_IS_CE = 5 };
enum { TCP_CONG_NON_RESTRICTED = 1, TCP_CONG_NEEDS_ECN = 2 };
enum { TCP_ECN_DEMAND_CWR = 4 };
enum { ICSK_ACK_TIMER = 2, ICSK_ACK_NOW = 16 };

#define __kernel_type __attribute__((preserve_access_index))

struct net {
  __u64 net_cookie;
} __kernel_type;

typedef struct {
  struct net *net;
} __kernel_type possible_net_t;

struct sock_common {
  possible_net_t skc_net;
} __kernel_type;

struct kernfs_node {
  __u64 id;
} __kernel_type;

struct cgroup {
  struct kernfs_node *kn;
} __kernel_type;

struct sock_cgroup_data {
  struct cgroup *cgroup;
} __kernel_type;

struct sock {
  struct sock_common __sk_common;
  struct sock_cgroup_data sk_cgrp_data;
  unsigned long sk_pacing_rate;
  __u32 sk_pacing_status;
  __u32 sk_gso_max_size;
} __kernel_type;

struct inet_connection_sock {
  struct {
    __u8 pending;
  } icsk_ack;
  __u64 icsk_ca_priv[13];
} __kernel_type;

struct tcp_sock {
  __u64 tcp_mstamp;
  __u64 bytes_acked;
  __u32 rcv_nxt;
  __u32 snd_nxt;
  __u32 write_seq;
  __u32 snd_una;
  __u32 snd_cwnd;
  __u32 snd_cwnd_clamp;
  __u32 snd_ssthresh;
  __u32 prior_cwnd;
  __u32 max_packets_out;
  __u32 mss_cache;
  __u32 delivered;
  __u32 delivered_ce;
  __u8 ecn_flags;
  __u8 is_cwnd_limited : 1;
} __kernel_type;

struct rate_sample {
  __s32 losses;
  __u32 acked_sacked;
} __kernel_type;

struct ack_sample {
  __u32 pkts_acked;
} __kernel_type;

// libbpf matches these members to the kernel's by name.
struct tcp_congestion_ops {
  __u32 flags;
  __u32 (*ssthresh)(struct sock *sk);
  void (*cong_avoid)(struct sock *sk, __u32 ack, __u32 acked);
  void (*set_state)(struct sock *sk, __u8 new_state);
  void (*cwnd_event)(struct sock *sk, enum tcp_ca_event ev);
  void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
  __u32 (*min_tso_segs)(struct sock *sk);
#ifdef CONG_CONTROL_BEFORE_6_10
  void (*cong_control)(struct sock *sk, const struct rate_sample *rs);
#else
  void (*cong_control)(struct sock *sk, __u32 ack, int flag, const struct rate_sample *rs);
#endif
  __u32 (*undo_cwnd)(struct sock *sk);
  char name[16];
  void (*init)(struct sock *sk);
  void (*release)(struct sock *sk);
};

#endif
