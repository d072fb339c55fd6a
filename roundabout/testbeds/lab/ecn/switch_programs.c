// SPDX-License-Identifier: Apache-2.0
#define _GNU_SOURCE
#include "switch_programs.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <linux/limits.h>

int fail(const char *what, int error) {
  fprintf(stderr, "switchport: %s: %s\n", what, strerror(error < 0 ? -error : error));
  return 1;
}

int pin_path(char *path, const char *pins, const char *name) {
  return snprintf(path, PATH_MAX, "%s/%s", pins, name) < PATH_MAX ? 0 : -ENAMETOOLONG;
}

int open_pinned(const char *pins, const char *name) {
  char path[PATH_MAX];
  int error = pin_path(path, pins, name);

  return error ? error : bpf_obj_get(path);
}

int pin_map(const struct bpf_object *object, const char *pins, const char *name) {
  char path[PATH_MAX];
  int error = pin_path(path, pins, name);

  return error ? error : bpf_map__pin(bpf_object__find_map_by_name(object, name), path);
}

static int enter_network_of(int pid) {
  char path[64];
  int fd, error;

  snprintf(path, sizeof(path), "/proc/%d/ns/net", pid);
  fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return -errno;
  error = setns(fd, CLONE_NEWNET) ? -errno : 0;
  close(fd);
  return error;
}

int attach_to(int pid, __u32 ifindex, enum bpf_tc_attach_point point, int program, __u32 handle, __u32 priority) {
  LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = (int)ifindex, .attach_point = point);
  LIBBPF_OPTS(bpf_tc_opts, options, .prog_fd = program, .handle = handle, .priority = priority);
  int error = enter_network_of(pid);

  if (!error)
    error = bpf_tc_hook_create(&hook);
  return error && error != -EEXIST ? error : bpf_tc_attach(&hook, &options);
}

int attach_to_all(const struct bpf_object *object, const char *program, __u32 handle, __u32 priority) {
  int fd = bpf_program__fd(bpf_object__find_program_by_name(object, program)), pid, found;
  __u32 ifindex;

  while ((found = scanf("%d %u", &pid, &ifindex)) == 2) {
    int error = attach_to(pid, ifindex, BPF_TC_INGRESS, fd, handle, priority);
    if (error) {
      fprintf(stderr, "switchport: device %u of process %d: ", ifindex, pid);
      return fail("attaching failed", error);
    }
  }
  return found == EOF ? 0 : fail("a device on stdin makes no sense", EINVAL);
}
