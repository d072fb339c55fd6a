// SPDX-License-Identifier: Apache-2.0
// A transport's parameters and counters as its header declares them (transport.h), read from BTF.
#ifndef ROUNDABOUT_DECLARATIONS_H
#define ROUNDABOUT_DECLARATIONS_H

#include <linux/types.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct btf;

enum declared_as { PARAMETER, COUNTER, DERIVED };

// One member of the structure that a map holds for each host.
struct declared {
  enum declared_as as;
  char kept_name[64]; // the member's own
  char name[64];      // what people call it
  char unit[24];      // what the member is kept in
  double one;         // what one of people's units is in the member
  int decimals;       // of a counter as it is printed
  size_t offset;
  size_t size;               // 4 or 8; 0 if derived
  double value, least, most; // of a parameter, in people's unit; of a choice, places in `names`
  char names[128];           // of a choice's values: "first second"; empty for numbers
  char formula[128];         // of what is derived
};

// `left or right`: not both are 0. `left <= right`, where both are known.
struct rule {
  char left[64], right[64];
  int either;
};

struct declarations {
  struct declared *members;
  int count;
  struct rule rules[8];
  int rule_count;
  size_t entry_bytes;
  char error[256]; // why there are none
};

// What the structure `type` of `btf` declares, and the structures in it; free it with declarations_free. Returns 0, or
// -1 and sets `error`.
int declarations_read(const struct btf *btf, __u32 type, struct declarations *found);

// The same of the values of an open map.
int declarations_of_map(int map, struct declarations *found);

void declarations_free(struct declarations *found);

// The member of that name (people's), or NULL.
const struct declared *declarations_find(const struct declarations *in, const char *name, size_t length);

// A choice's value of that name, or -1.
int declared_place(const struct declared *choice, const char *name);

// A member of one host's entry as it is kept.
__u64 declared_kept(const struct declared *member, const void *entry);

#ifdef __cplusplus
}
#endif

#endif
