// SPDX-License-Identifier: Apache-2.0
#include "declarations.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Units of stored values that are printed in another unit, and under another name.
static const struct form {
  const char *unit;
  double one;
  int decimals;
  const char *without, *with;
} forms[] = {
    {"bytes/s", 125000, 3, "", "_mbps"},
    {"2^-24", 16777216, 6, "_q24", ""},
    {NULL, 1, 0, "", ""},
};

static int refuse(struct declarations *found, const char *format, ...) {
  va_list args;
  declarations_free(found);
  va_start(args, format);
  vsnprintf(found->error, sizeof(found->error), format, args);
  va_end(args);
  return -1;
}

static const struct form *form_of(const char *unit) {
  const struct form *form = forms;
  while (form->unit && strcmp(form->unit, unit) != 0)
    form++;
  return form;
}

static void name_for_people(struct declared *member) {
  const struct form *form = form_of(member->unit);
  size_t length = strlen(member->kept_name), without = strlen(form->without);
  if (length > without && strcmp(member->kept_name + length - without, form->without) == 0)
    length -= without;
  snprintf(member->name, sizeof(member->name), "%.*s%s", (int)length, member->kept_name, form->with);
  member->one = form->one;
  member->decimals = form->decimals;
}

// Parses a tag that the macros PARAMETER or CHOICE of declare.h wrote. Returns whether its format is right.
static int read_parameter(const char *text, struct declared *member) {
  char name[64], more[2] = "";
  member->as = PARAMETER;
  int numbers = sscanf(text, "parameter;%23[^\";\\];%lf;%lf;%lf%1s", member->unit, &member->value, &member->least,
                       &member->most, more);
  if (sscanf(text, "choice;%63[^;];%127[a-z0-9_ ]%1s", name, member->names, more) == 2) {
    member->value = declared_place(member, name);
    for (const char *at = member->names; (at = strchr(at, ' ')); at++)
      member->most++;
    return member->value >= 0;
  }
  return numbers == 4 && member->least <= member->value && member->value <= member->most;
}

static int read_tag(const char *text, struct declared *member) {
  char more[2] = "";
  memset(member, 0, sizeof(*member));
  if (sscanf(text, "derived;%127[^\";\\]%1s", member->formula, more) == 1) {
    member->as = DERIVED;
    return 1;
  }
  if (sscanf(text, "counter;%23[^\";\\]%1s", member->unit, more) == 1) {
    member->as = COUNTER;
    return 1;
  }
  return read_parameter(text, member);
}

static int read_rule(const char *text, struct declarations *found) {
  struct rule *rule = &found->rules[found->rule_count];
  char joined[3], more[2];
  if (found->rule_count == sizeof(found->rules) / sizeof(found->rules[0]))
    return refuse(found, "there are more than %d rules", found->rule_count);
  if (sscanf(text, "rule;%63[A-Za-z0-9_] %2[<=or] %63[A-Za-z0-9_]%1s", rule->left, joined, rule->right, more) != 3)
    return refuse(found, "'%s', expected \"this <= that\" or \"this or that\"", text);
  rule->either = strcmp(joined, "or") == 0;
  found->rule_count++;
  return 0;
}

static struct declared *one_more(struct declarations *found) {
  struct declared *members = realloc(found->members, ((size_t)found->count + 1) * sizeof(*members));
  if (!members)
    return NULL;
  found->members = members;
  return &members[found->count++];
}

static int read_member(const struct btf *btf, const struct btf_member *at, size_t offset, const char *text,
                       struct declarations *found) {
  const char *name = btf__name_by_offset(btf, at->name_off);
  struct declared *member = one_more(found);
  if (!member)
    return refuse(found, "%s", strerror(ENOMEM));
  if (!read_tag(text, member) || strlen(name) >= sizeof(member->kept_name) - strlen("_mbps"))
    return refuse(found, "%s is declared as '%s', expected what declare.h's macros make of plain values", name, text);
  snprintf(member->kept_name, sizeof(member->kept_name), "%s", name);
  member->offset = offset;
  __s64 size = btf__resolve_size(btf, at->type);
  if (member->as != DERIVED && size != 4 && size != 8)
    return refuse(found, "%s has %lld bytes, expected __u32 or __u64", name, (long long)size);
  if (member->as != DERIVED)
    member->size = (size_t)size;
  name_for_people(member);
  return 0;
}

// The text of the tag on a structure's member, or NULL.
static const char *tag_on(const struct btf *btf, __u32 structure, int member) {
  for (__u32 id = 1; id < btf__type_cnt(btf); id++) {
    const struct btf_type *type = btf__type_by_id(btf, id);
    if (btf_is_decl_tag(type) && type->type == structure && btf_decl_tag(type)->component_idx == member)
      return btf__name_by_offset(btf, type->name_off);
  }
  return NULL;
}

static int read_structure(const struct btf *btf, __u32 id, size_t offset, struct declarations *found) {
  const struct btf_type *structure = btf__type_by_id(btf, id);
  int status = 0;
  for (int i = 0; !status && i < btf_vlen(structure); i++) {
    const struct btf_member *member = &btf_members(structure)[i];
    size_t at = offset + btf_member_bit_offset(structure, (__u32)i) / 8;
    const char *text = tag_on(btf, id, i);
    if (text && strncmp(text, "rule;", 5) == 0)
      status = read_rule(text, found);
    else if (text)
      status = read_member(btf, member, at, text, found);
    else if (btf_is_struct(btf__type_by_id(btf, member->type)))
      status = read_structure(btf, member->type, at, found);
  }
  return status;
}

int declarations_read(const struct btf *btf, __u32 id, struct declarations *found) {
  memset(found, 0, sizeof(*found));
  const struct btf_type *structure = btf__type_by_id(btf, id);
  if (!structure || !btf_is_struct(structure))
    return refuse(found, "the map's values are no structure");
  found->entry_bytes = structure->size;
  if (read_structure(btf, id, 0, found))
    return -1;
  if (!found->count)
    return refuse(found, "struct %s declares nothing", btf__name_by_offset(btf, structure->name_off));
  return 0;
}

int declarations_of_map(int map, struct declarations *found) {
  struct bpf_map_info info = {0};
  __u32 size = sizeof(info);
  memset(found, 0, sizeof(*found));
  if (bpf_obj_get_info_by_fd(map, &info, &size))
    return refuse(found, "%s", strerror(errno));
  struct btf *btf = info.btf_id ? btf__load_from_kernel_by_id(info.btf_id) : NULL;
  if (!btf)
    return refuse(found, "the kernel has no BTF of the map");
  int status = declarations_read(btf, info.btf_value_type_id, found);
  btf__free(btf);
  return status;
}

void declarations_free(struct declarations *found) {
  free(found->members);
  found->members = NULL;
  found->count = 0;
}

const struct declared *declarations_find(const struct declarations *in, const char *name, size_t length) {
  for (int i = 0; i < in->count; i++)
    if (strlen(in->members[i].name) == length && strncmp(in->members[i].name, name, length) == 0)
      return &in->members[i];
  return NULL;
}

int declared_place(const struct declared *choice, const char *name) {
  size_t length = strlen(name);
  int place = 0;
  for (const char *at = choice->names; *at; place++) {
    size_t known = strcspn(at, " ");
    if (known == length && strncmp(at, name, length) == 0)
      return place;
    at += known;
    at += strspn(at, " ");
  }
  return -1;
}

__u64 declared_kept(const struct declared *member, const void *entry) {
  const char *at = (const char *)entry + member->offset;
  return member->size == 8 ? *(const __u64 *)at : *(const __u32 *)at;
}

void declared_write(const struct declared *member, void *entry, double value) {
  char *at = (char *)entry + member->offset;
  double kept = round(value * member->one);
  if (member->size == 8)
    *(__u64 *)at = (__u64)kept;
  else
    *(__u32 *)at = (__u32)kept;
}
