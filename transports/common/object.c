// SPDX-License-Identifier: Apache-2.0
#include "object.h"
#include "declarations.h"
#include "errors.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Reads the declarations of the object's map of that name; none if it has no such map. Returns 0, or 1 after printing
// an error.
static int declarations_of(const struct bpf_object *object, const char *which, struct declarations *found) {
  const struct bpf_map *map = bpf_object__find_map_by_name(object, which);
  memset(found, 0, sizeof(*found));
  if (map && declarations_read(bpf_object__btf(object), bpf_map__btf_value_type_id(map), found))
    return fail("%s's %s: %s", bpf_object__name(object), which, found->error);
  return 0;
}

static void print_declarations(const struct declarations *found) {
  for (int i = 0; i < found->count; i++) {
    const struct declared *each = &found->members[i];
    printf("%s{\"name\": \"%s\"", i ? ", " : "", each->name);
    if (each->as == DERIVED)
      printf(", \"formula\": \"%s\"}", each->formula);
    else if (each->as == COUNTER)
      printf(", \"unit\": \"%s\"}", each->unit);
    else if (*each->names)
      printf(", \"names\": \"%s\", \"value\": %.9g}", each->names, each->value);
    else
      printf(", \"unit\": \"%s\", \"value\": %.9g, \"least\": %.9g, \"most\": %.9g}", each->unit, each->value,
             each->least, each->most);
  }
}

int object_describe(const char *path) {
  struct declarations params, counters;
  struct bpf_object *object = bpf_object__open_file(path, NULL);
  if (!object)
    return fail("cannot read %s: %s", path, strerror(errno));
  int status = declarations_of(object, "params", &params) || declarations_of(object, "counters", &counters);
  if (!status) {
    printf("{\"parameters\": [");
    print_declarations(&params);
    printf("], \"counters\": [");
    print_declarations(&counters);
    status = puts("]}") < 0;
    declarations_free(&params);
    declarations_free(&counters);
  }
  bpf_object__close(object);
  return status;
}

static int write_default(const struct bpf_object *object, const char *which) {
  struct declarations declared;
  if (declarations_of(object, which, &declared))
    return 1;
  if (!declared.count)
    return 0;
  void *entry = calloc(1, declared.entry_bytes);
  for (int i = 0; entry && i < declared.count; i++)
    if (declared.members[i].as == PARAMETER)
      declared_write(&declared.members[i], entry, declared.members[i].value);
  int map = bpf_object__find_map_fd_by_name(object, which);
  int error = !entry || bpf_map_update_elem(map, &default_host, entry, BPF_ANY) ? errno : 0;
  free(entry);
  declarations_free(&declared);
  return error ? fail("cannot write the default %s of %s: %s", which, bpf_object__name(object), strerror(error)) : 0;
}

int object_write_defaults(const struct bpf_object *object) {
  return write_default(object, "params") || write_default(object, "counters");
}
