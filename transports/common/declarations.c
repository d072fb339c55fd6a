// SPDX-License-Identifier: Apache-2.0
#include "declarations.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// What is kept in a unit of the kernel's and has another for people, who know it by another name.
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

// Reads a tag's text as the macros of transport.h write it. Returns 0, or -1 if they did not.
static int read_tag(const char *text, struct declared *member) {
  char more[2] = "";
  member->size = 0;
  if (sscanf(text, "derived;%127[^\";\\]%1s", member->formula, more) == 1) {
    member->as = DERIVED;
    return 0;
  }
  if (sscanf(text, "counter;%23[^\";\\]%1s", member->unit, more) == 1) {
    member->as = COUNTER;
    return 0;
  }
  member->as = PARAMETER;
  int read = sscanf(text, "parameter;%23[^\";\\];%lf;%lf;%lf%1s", member->unit, &member->value, &member->least,
                    &member->most, more);
  return read == 4 && member->least <= member->value && member->value <= member->most ? 0 : -1;
}

static int read_member(const struct btf *btf, const struct btf_type *structure, int index, const char *text,
                       struct declarations *found) {
  const struct btf_member *at = &btf_members(structure)[index];
  const char *name = btf__name_by_offset(btf, at->name_off);
  struct declared *member = &found->members[found->count];
  if (read_tag(text, member) || strlen(name) >= sizeof(member->kept_name) - strlen("_mbps"))
    return refuse(found, "%s is declared as '%s', expected what transport.h's macros make of plain values", name, text);
  snprintf(member->kept_name, sizeof(member->kept_name), "%s", name);
  member->offset = btf_member_bit_offset(structure, (__u32)index) / 8;
  __s64 size = btf__resolve_size(btf, at->type);
  if (member->as != DERIVED && size != 4 && size != 8)
    return refuse(found, "%s has %lld bytes, expected __u32 or __u64", name, (long long)size);
  if (member->as != DERIVED)
    member->size = (size_t)size;
  name_for_people(member);
  found->count++;
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

int declarations_read(const struct btf *btf, __u32 id, struct declarations *found) {
  memset(found, 0, sizeof(*found));
  const struct btf_type *structure = btf__type_by_id(btf, id);
  if (!structure || !btf_is_struct(structure))
    return refuse(found, "the map's values are no structure");
  found->members = calloc(btf_vlen(structure), sizeof(*found->members));
  if (!found->members)
    return refuse(found, "%s", strerror(ENOMEM));
  found->entry_bytes = structure->size;
  for (int i = 0; i < btf_vlen(structure); i++) {
    const char *text = tag_on(btf, id, i);
    if (text && read_member(btf, structure, i, text, found))
      return -1;
  }
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

__u64 declared_kept(const struct declared *member, const void *entry) {
  const char *at = (const char *)entry + member->offset;
  return member->size == 8 ? *(const __u64 *)at : *(const __u32 *)at;
}
