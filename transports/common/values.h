// SPDX-License-Identifier: Apache-2.0
// A transport's parameters and counters for one network namespace, in the units of the papers.
#ifndef ROUNDABOUT_VALUES_H
#define ROUNDABOUT_VALUES_H

struct bpf_object;

// Each works on the caller's network namespace and returns an exit status.
int values_get(const char *name);
int values_set(const char *name, int count, char **assignments);
int values_unset(const char *name);

// Prints what an object file declares, as JSON.
int values_describe(const char *path);

// Writes a loaded object's entries that namespaces without one of their own use. Returns 0, or 1 after saying why not.
int values_write_defaults(const struct bpf_object *object);

#endif
