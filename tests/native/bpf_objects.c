// SPDX-License-Identifier: Apache-2.0
// bpf_objects: lists the kernel's eBPF objects for tests and benchmarks. (Ubuntu's bpftool is a script that needs the
// tools of the very kernel that runs.)
//
//   bpf_objects list                                   all programs, maps and links of this machine, as JSON
//   bpf_objects id PIN                                 a pinned map's id
//   bpf_objects create PIN NAME KEY_BYTES VALUE_BYTES  a hash map of 8 entries
//   bpf_objects put PIN KEY VALUE                      one entry; key and value in hexadecimal
//   bpf_objects entries NAME                           the number of entries of all maps with that name
//   bpf_objects freeze PIN                             from now on only eBPF programs write to it
#include <bpf/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_MAPS 64

static int complain(const char *about) {
  perror(about);
  return 1;
}

static void print_programs(void) {
  const char *separator = "";
  for (__u32 id = 0; bpf_prog_get_next_id(id, &id) == 0;) {
    struct bpf_prog_info info = {0};
    __u32 size = sizeof(info), maps[MAX_MAPS];
    info.map_ids = (__u64)(unsigned long)maps;
    info.nr_map_ids = MAX_MAPS;
    int fd = bpf_prog_get_fd_by_id(id);
    if (fd < 0)
      continue; // gone since
    if (bpf_obj_get_info_by_fd(fd, &info, &size) == 0) {
      printf("%s{\"id\": %u, \"name\": \"%s\", \"run_time_ns\": %llu, \"run_count\": %llu, \"map_ids\": [", separator,
             info.id, info.name, info.run_time_ns, info.run_cnt);
      for (__u32 i = 0; i < info.nr_map_ids && i < MAX_MAPS; i++)
        printf("%s%u", i ? ", " : "", maps[i]);
      printf("]}");
      separator = ", ";
    }
    close(fd);
  }
}

static void print_maps(void) {
  const char *separator = "";
  for (__u32 id = 0; bpf_map_get_next_id(id, &id) == 0;) {
    struct bpf_map_info info = {0};
    __u32 size = sizeof(info);
    int fd = bpf_map_get_fd_by_id(id);
    if (fd < 0)
      continue;
    if (bpf_obj_get_info_by_fd(fd, &info, &size) == 0) {
      printf("%s{\"id\": %u, \"name\": \"%s\"}", separator, info.id, info.name);
      separator = ", ";
    }
    close(fd);
  }
}

static void print_links(void) {
  const char *separator = "";
  for (__u32 id = 0; bpf_link_get_next_id(id, &id) == 0;) {
    printf("%s{\"id\": %u}", separator, id);
    separator = ", ";
  }
}

static int list(void) {
  printf("{\"prog\": [");
  print_programs();
  printf("], \"map\": [");
  print_maps();
  printf("], \"link\": [");
  print_links();
  return puts("]}") < 0;
}

static int print_id(const char *pin) {
  struct bpf_map_info info = {0};
  __u32 size = sizeof(info);
  int fd = bpf_obj_get(pin);
  if (fd < 0 || bpf_obj_get_info_by_fd(fd, &info, &size))
    return complain(pin);
  return printf("%u\n", info.id) < 0;
}

static int create(const char *pin, const char *name, const char *key_bytes, const char *value_bytes) {
  int fd = bpf_map_create(BPF_MAP_TYPE_HASH, name, (__u32)atoi(key_bytes), (__u32)atoi(value_bytes), 8, NULL);
  return fd < 0 || bpf_obj_pin(fd, pin) ? complain(pin) : 0;
}

// The bytes that hexadecimal `text` stands for, in its place.
static void *bytes(char *text) {
  unsigned byte;
  for (int i = 0; sscanf(text + 2 * i, "%2x", &byte) == 1; i++)
    text[i] = (char)byte;
  return text;
}

static int put(const char *pin, char *key, char *value) {
  int fd = bpf_obj_get(pin);
  return fd < 0 || bpf_map_update_elem(fd, bytes(key), bytes(value), BPF_ANY) ? complain(pin) : 0;
}

static int count_entries(int fd, __u32 key_bytes) {
  char key[256], next[256];
  int count = 0;
  if (key_bytes > sizeof(key))
    return 0;
  for (void *previous = NULL; bpf_map_get_next_key(fd, previous, next) == 0; count++)
    previous = memcpy(key, next, key_bytes);
  return count;
}

static int entries(const char *name) {
  int count = 0;
  for (__u32 id = 0; bpf_map_get_next_id(id, &id) == 0;) {
    struct bpf_map_info info = {0};
    __u32 size = sizeof(info);
    int fd = bpf_map_get_fd_by_id(id);
    if (fd < 0)
      continue;
    if (bpf_obj_get_info_by_fd(fd, &info, &size) == 0 && strcmp(info.name, name) == 0)
      count += count_entries(fd, info.key_size);
    close(fd);
  }
  return printf("%d\n", count) < 0;
}

static int freeze(const char *pin) {
  int fd = bpf_obj_get(pin);
  return fd < 0 || bpf_map_freeze(fd) ? complain(pin) : 0;
}

int main(int argc, char **argv) {
  if (argc == 2 && strcmp(argv[1], "list") == 0)
    return list();
  if (argc == 3 && strcmp(argv[1], "id") == 0)
    return print_id(argv[2]);
  if (argc == 6 && strcmp(argv[1], "create") == 0)
    return create(argv[2], argv[3], argv[4], argv[5]);
  if (argc == 5 && strcmp(argv[1], "put") == 0)
    return put(argv[2], argv[3], argv[4]);
  if (argc == 3 && strcmp(argv[1], "entries") == 0)
    return entries(argv[2]);
  if (argc == 3 && strcmp(argv[1], "freeze") == 0)
    return freeze(argv[2]);
  fputs("usage: bpf_objects list | id PIN | create PIN NAME KEY_BYTES VALUE_BYTES | put PIN KEY VALUE | entries NAME | "
        "freeze PIN\n",
        stderr);
  return 2;
}
