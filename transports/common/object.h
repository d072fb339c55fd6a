// SPDX-License-Identifier: Apache-2.0
// The declarations in a transport's object file.
#ifndef ROUNDABOUT_OBJECT_H
#define ROUNDABOUT_OBJECT_H

struct bpf_object;

// Prints the declarations of an object file as JSON, and returns an exit status.
int object_describe(const char *path);

// Writes a loaded object's entries for namespaces without their own. Returns 0, or 1 after printing the reason.
int object_write_defaults(const struct bpf_object *object);

#endif
