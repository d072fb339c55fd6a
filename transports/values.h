// SPDX-License-Identifier: Apache-2.0
// A transport's parameters and counters for one network namespace, in the units of the papers.
#ifndef ROUNDABOUT_VALUES_H
#define ROUNDABOUT_VALUES_H

// Each works on the caller's network namespace and returns an exit status.
int values_get(const char *name);
int values_set(const char *name, int count, char **assignments);
int values_unset(const char *name);

// Writes the entry that namespaces without one of their own use. Takes the open maps. Returns 0 or -errno.
int values_write_default(int params, int counters);

#endif
