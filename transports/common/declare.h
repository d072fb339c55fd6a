// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The words in which a transport declares its parameters and counters, once:
//
//   STANDS_FOR(RDMA);                    what it is in the papers; TCP unless said
//   MEANT_FOR(step);                     the queue at switch ports that it works over; drop_tail unless said
//   struct mine_params {
//     PARAMETER(type, name, unit, chosen_by, value, least, most, meaning);
//     CHOICE(name, chosen_by, value, names, meaning);   a parameter whose values have names: "first second third"
//     RULE(name, rule);                                 "R_min_mbps <= R_max_mbps", or "this or that": not both 0
//   };
//   struct mine_counters {
//     COUNTER(type, name, unit, meaning);
//     DERIVED(name, formula, meaning);                  printed, not kept: counters and parameters joined by * and /
//   };
//   PER_HOST(params, struct mine_params);
//   PER_HOST(counters, struct mine_counters);
//
// `type` is __u32 or __u64, `unit` what a member is kept in: any word, of which two have another form for people, in
// which value and range are given and everything is printed: "bytes/s" as Mbit/s, called NAME_mbps, and "2^-24" as a
// fraction, called NAME without its _q24. `chosen_by` is who sets what nobody gave: `experiment` (`value` is part of
// what an experiment means, and recorded in it), `testbed` (one that is calibrated may put its own in place of `value`)
// or `line_rate` (the testbed puts the host's there). Each declaration is one statement with plain numbers and strings.
// A choice is kept as a __u32: 0 for the first name. A rule knows parameters by the names that people call them,
// and, of the jobs in an experiment, `compute_us`: how long each computes in an iteration.
//
// What several transports share stands in a structure of its own, in a header that they include from beside them, and
// is a member of theirs: its declarations are then theirs too.
//
// Tags in the object's BTF carry all this to the tool that loads it and to the sampler; roundabout/spec/transports
// reads the same lines.
#ifndef ROUNDABOUT_DECLARE_H
#define ROUNDABOUT_DECLARE_H

#include "numbers.h"

// Only eBPF's objects carry tags; elsewhere a declaration is a plain member.
#ifdef __bpf__
#define TAG(text) __attribute__((btf_decl_tag(text)))
#else
#define TAG(text)
#endif
#define STANDS_FOR(what) _Static_assert(1, #what)
#define MEANT_FOR(queue) _Static_assert(1, #queue)
#define PARAMETER(type, name, unit, chosen_by, value, least, most, meaning)                                            \
  type name TAG("parameter;" unit ";" #value ";" #least ";" #most)
#define CHOICE(name, chosen_by, value, names, meaning) __u32 name TAG("choice;" #value ";" names)
#define RULE(name, rule) char name[0] TAG("rule;" rule)
#define COUNTER(type, name, unit, meaning) type name TAG("counter;" unit)
#define DERIVED(name, formula, meaning) char name[0] TAG("derived;" formula)

#endif
