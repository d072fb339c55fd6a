// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What every transport includes. Its parameters and counters are declared once, in these words:
//
//   STANDS_FOR(RDMA);                    what it is in the papers; TCP unless said
//   struct mine_params {
//     PARAMETER(type, name, unit, chosen_by, value, least, most, meaning);
//   };
//   struct mine_counters {
//     COUNTER(type, name, unit, meaning);
//     DERIVED(name, formula, meaning);   printed, not kept: counters and parameters joined by * and /
//   };
//   PER_HOST(params, struct mine_params);
//   PER_HOST(counters, struct mine_counters);
//
// `type` is __u32 or __u64, `unit` what a member is kept in: any word, of which two have another form for people, in
// which value and range are given and everything is printed: "bytes/s" as Mbit/s, called NAME_mbps, and "2^-24" as a
// fraction, called NAME without its _q24. `chosen_by` is who sets what nobody gave: `experiment` (`value` is part of
// what an experiment means, and recorded in it), `testbed` (one that is calibrated may put its own in place of `value`)
// or `line_rate` (the testbed puts the host's there). Each declaration is one statement with plain numbers and strings.
//
// Tags in the object's BTF carry all this to the tool that loads it and to the sampler; roundabout/spec/transports
// reads the same lines.
#ifndef ROUNDABOUT_TRANSPORT_H
#define ROUNDABOUT_TRANSPORT_H

#include "kernel.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#define TAG(text) __attribute__((btf_decl_tag(text)))
#define STANDS_FOR(what) _Static_assert(1, #what)
#define PARAMETER(type, name, unit, chosen_by, value, least, most, meaning)                                            \
  type name TAG("parameter;" unit ";" #value ";" #least ";" #most)
#define COUNTER(type, name, unit, meaning) type name TAG("counter;" unit)
#define DERIVED(name, formula, meaning) char name[0] TAG("derived;" formula)

// Keyed by the network namespace's cookie; 0 is the entry for namespaces that have none.
#define PER_HOST(map, type_of_values)                                                                                  \
  struct {                                                                                                             \
    __uint(type, BPF_MAP_TYPE_HASH);                                                                                   \
    __uint(max_entries, 4096);                                                                                         \
    __type(key, __u64);                                                                                                \
    __type(value, type_of_values);                                                                                     \
  } map SEC(".maps")

// How a congestion control is called in the kernel: of at most 15 letters, and no other's.
#define KERNEL_NAME(transport) "rb_" #transport

// The kernel's arguments of cong_control changed with Linux 6.10; every program is built for both.
#ifdef CONG_CONTROL_BEFORE_6_10
#define CONG_CONTROL(function, sk, rs) BPF_PROG(function, struct sock *sk, const struct rate_sample *rs)
#else
#define CONG_CONTROL(function, sk, rs)                                                                                 \
  BPF_PROG(function, struct sock *sk, __u32 ack, int flag, const struct rate_sample *rs)
#endif

static __always_inline struct tcp_sock *tcp_of(struct sock *sk) { return (struct tcp_sock *)sk; }

// A flow's private area, of at most 104 bytes.
static __always_inline void *private_area_of(struct sock *sk) {
  return ((struct inet_connection_sock *)sk)->icsk_ca_priv;
}

static __always_inline __u64 host_of(struct sock *sk) { return sk->__sk_common.skc_net.net->net_cookie; }

// A host's entry in `params` or `counters`, else the one for all others.
static __always_inline void *entry_of(void *map, __u64 host) {
  __u64 fallback = 0;
  void *entry = bpf_map_lookup_elem(map, &host);
  return entry ? entry : bpf_map_lookup_elem(map, &fallback);
}

// Gives `host` counters of its own, from its first flow on.
#define COUNT_FOR(host, type_of_values)                                                                                \
  ({                                                                                                                   \
    type_of_values zero;                                                                                               \
    __u64 key = host;                                                                                                  \
    __builtin_memset(&zero, 0, sizeof(zero));                                                                          \
    bpf_map_update_elem(&counters, &key, &zero, BPF_NOEXIST);                                                          \
  })

#endif
