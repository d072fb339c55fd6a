// SPDX-License-Identifier: Apache-2.0
// A transport's parameters and counters for one network namespace, in the units of the papers.
#ifndef ROUNDABOUT_VALUES_H
#define ROUNDABOUT_VALUES_H

struct bpf_object;

// Print, set and unset values of the caller's network namespace. Each returns an exit status.
int values_get(const char *name);
int values_set(const char *name, int count, char **assignments);
int values_unset(const char *name);

// Prints the declarations of an object file as JSON, and returns an exit status.
int values_describe(const char *path);

// Writes a loaded object's entries for namespaces without their own. Returns 0, or 1 after printing the reason.
int values_write_defaults(const struct bpf_object *object);

#endif
