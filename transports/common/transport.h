// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The header of every transport: the kernel's types, the macros for declarations, and access to flows' and hosts'
// entries.
#ifndef ROUNDABOUT_TRANSPORT_H
#define ROUNDABOUT_TRANSPORT_H

#include "declare.h"
#include "kernel.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

// Defines a map with an entry for each host, keyed by the network namespace's cookie; key 0 is the entry for all other
// namespaces.
#define PER_HOST(map, type_of_values)                                                                                  \
  struct {                                                                                                             \
    __uint(type, BPF_MAP_TYPE_HASH);                                                                                   \
    __uint(max_entries, 4096);                                                                                         \
    __type(key, __u64);                                                                                                \
    __type(value, type_of_values);                                                                                     \
  } map SEC(".maps")

// The name of a congestion control in the kernel, which has at most 15 letters and must be unique.
#define KERNEL_NAME(transport) "rb_" #transport

// The kernel's arguments of cong_control changed with Linux 6.10; every program is built for both.
#ifdef CONG_CONTROL_BEFORE_6_10
#define CONG_CONTROL(function, sk, rs) BPF_PROG(function, struct sock *sk, const struct rate_sample *rs)
#else
#define CONG_CONTROL(function, sk, rs)                                                                                 \
  BPF_PROG(function, struct sock *sk, __u32 ack, int flag, const struct rate_sample *rs)
#endif

static __always_inline struct tcp_sock *tcp_of(struct sock *sk) { return (struct tcp_sock *)sk; }

// Returns a flow's private area, which has 104 bytes.
static __always_inline void *private_area_of(struct sock *sk) {
  return ((struct inet_connection_sock *)sk)->icsk_ca_priv;
}

// Returns the cookie of a socket's network namespace, which identifies its host.
static __always_inline __u64 host_of(struct sock *sk) { return sk->__sk_common.skc_net.net->net_cookie; }

// Returns a host's entry in `params` or `counters`, or else the entry for all other hosts.
static __always_inline void *entry_of(void *map, __u64 host) {
  __u64 fallback = 0;
  void *entry = bpf_map_lookup_elem(map, &host);
  return entry ? entry : bpf_map_lookup_elem(map, &fallback);
}

// Creates counters of its own for `host`, if it has none, at its first flow.
#define COUNT_FOR(host, type_of_values)                                                                                \
  ({                                                                                                                   \
    type_of_values zero;                                                                                               \
    __u64 key = host;                                                                                                  \
    __builtin_memset(&zero, 0, sizeof(zero));                                                                          \
    bpf_map_update_elem(&counters, &key, &zero, BPF_NOEXIST);                                                          \
  })

#endif
