// SPDX-License-Identifier: Apache-2.0
// The common part of the commands of `switchport`: pinned maps, and programs attached in other network namespaces.
#ifndef ROUNDABOUT_SWITCH_PROGRAMS_H
#define ROUNDABOUT_SWITCH_PROGRAMS_H

#include <bpf/libbpf.h>

// Handles of programs of one filter priority at a device.
#define FIRST_HANDLE 1
#define SECOND_HANDLE 2

// Prints what failed and why, and returns the exit status 1.
int fail(const char *what, int error);

// These return a negative errno on failure. On success, open_pinned returns a file descriptor, and the others 0.
int pin_path(char *path, const char *pins, const char *name);
int open_pinned(const char *pins, const char *name);
int pin_map(const struct bpf_object *object, const char *pins, const char *name);
int attach_to(int pid, __u32 ifindex, enum bpf_tc_attach_point point, int program, __u32 handle, __u32 priority);

// Attaches a program of a loaded object where packets arrive at each device of stdin: "PID IFINDEX" lines. Prints what
// failed and why. Returns the exit status.
int attach_to_all(const struct bpf_object *object, const char *program, __u32 handle, __u32 priority);

#endif
