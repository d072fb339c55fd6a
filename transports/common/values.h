// SPDX-License-Identifier: Apache-2.0
// A transport's parameters and counters for one network namespace, in the units of the papers.
#ifndef ROUNDABOUT_VALUES_H
#define ROUNDABOUT_VALUES_H

// Print, set and unset values of the caller's network namespace. Each returns an exit status.
int values_get(const char *name);
int values_set(const char *name, int count, char **assignments);
int values_unset(const char *name);

#endif
