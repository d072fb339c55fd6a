// SPDX-License-Identifier: Apache-2.0
// The parameters and counters that a transport's header declares (declare.h), read from BTF.
#ifndef ROUNDABOUT_DECLARATIONS_H
#define ROUNDABOUT_DECLARATIONS_H

#include <linux/types.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct btf;

// The key of the entry that hosts without an entry of their own use.
static const __u64 default_host = 0;

enum declared_as { PARAMETER, COUNTER, DERIVED };

// One member of the structure that a map holds for each host.
struct declared {
  enum declared_as as;
  char kept_name[64]; // name of the member
  char name[64];      // name for people
  char unit[24];      // unit of the member's value
  double one;         // one unit for people, in the member's unit
  int decimals;       // decimals of a printed counter
  size_t offset;
  size_t size;               // 4 or 8; 0 if derived
  double value, least, most; // of a parameter, in the unit for people; of a choice, indices in `names`
  char names[128];           // names of a choice's values: "first second"; empty for numbers
  char formula[128];         // formula of a derived value
};

// A rule on parameters. If `either` is set, `left` and `right` must not both be 0; otherwise `left` <= `right` must
// hold if both values exist.
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
  char error[256]; // why they could not be read
};

// Reads what the structure `type` of `btf`, and the structures in it, declare; free `found` with declarations_free.
// Returns 0, or -1 after setting `error`.
int declarations_read(const struct btf *btf, __u32 type, struct declarations *found);

// Reads what the value type of an open map declares, as declarations_read does.
int declarations_of_map(int map, struct declarations *found);

void declarations_free(struct declarations *found);

// Returns the member with this name for people, or NULL.
const struct declared *declarations_find(const struct declarations *in, const char *name, size_t length);

// Returns the index of the choice's value called `name`, or -1.
int declared_place(const struct declared *choice, const char *name);

// Returns a member's value in a host's entry, in the member's own unit.
__u64 declared_kept(const struct declared *member, const void *entry);

// Writes a value, given in the unit for people, to a member of a host's entry.
void declared_write(const struct declared *member, void *entry, double value);

#ifdef __cplusplus
}
#endif

#endif
