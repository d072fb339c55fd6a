// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Macros with which a transport declares its parameters and counters, in one place:
//
//   STANDS_FOR(RDMA);                    what it is in the papers; TCP unless said
//   MEANT_FOR(step);                     the queue at switch ports that it works over; drop_tail unless said
//   struct mine_params {
//     PARAMETER(type, name, unit, chosen_by, value, least, most, meaning);
//     CHOICE(name, chosen_by, value, names, meaning);   a parameter whose values have names: "first second third"
//     NIC_CHOICE(name, value, names, meaning);          the same of NICs alone: no program has it, and no member
//     RULE(name, rule);                                 "R_min_mbps <= R_max_mbps", or "this or that": not both 0
//     HARDWARE(name, least, most, register);            what NICs take for a parameter; other values get a warning
//   };
//   struct mine_counters {
//     COUNTER(type, name, unit, meaning);
//     DERIVED(name, formula, meaning);                  printed, not kept: counters and parameters joined by * and /
//   };
//   PER_HOST(params, struct mine_params);
//   PER_HOST(counters, struct mine_counters);
//
// `type` is __u32 or __u64, and `unit` is the unit of the stored value, which may be any word. Two units have another
// form for people, in which values and ranges are declared and printed: "bytes/s" is Mbit/s, with the name NAME_mbps,
// and "2^-24" is a fraction, with the name NAME without its _q24. `chosen_by` says where a value comes from that is not
// given: `experiment` (`value` belongs to the experiment, and is recorded in it), `testbed` (a calibrated testbed may
// replace `value`), `line_rate` (the testbed sets the host's line rate) or `network` (the testbed alone sets it, by the
// topology's feedback delay). Each declaration is one statement with plain numbers and strings. A choice is stored as a
// __u32, 0 for the first name. A rule uses the names for people, and `compute_us`, the time that each job of an
// experiment computes in an iteration.
//
// Declarations that several transports share are in a structure of their own, in a header that the transports include.
// A transport that has the structure as a member has its declarations too.
//
// Tags in the object's BTF carry all this to the tool that loads it and to the sampler; roundabout/spec/transports
// reads the same lines.
#ifndef ROUNDABOUT_DECLARE_H
#define ROUNDABOUT_DECLARE_H

#include "numbers.h"

// Only eBPF objects have tags; in other programs a declaration is a plain member.
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
#define NIC_CHOICE(name, value, names, meaning) _Static_assert(1, names)
#define RULE(name, rule) char name[0] TAG("rule;" rule)
#define HARDWARE(name, least, most, what) _Static_assert((least) <= (most), what)
#define COUNTER(type, name, unit, meaning) type name TAG("counter;" unit)
#define DERIVED(name, formula, meaning) char name[0] TAG("derived;" formula)

#endif
