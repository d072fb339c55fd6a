// SPDX-License-Identifier: Apache-2.0
// The transports that are loaded on this machine, and their owners.
#ifndef ROUNDABOUT_REGISTRY_H
#define ROUNDABOUT_REGISTRY_H

// Load, unload and list transports. Each returns an exit status, after printing JSON on stdout or a reason on stderr.
int registry_load(const char *name, const char *owner, const char *objects);
int registry_unload(const char *name, const char *owner);
int registry_list(void);

// Takes this machine's lock on transports and their parameters until the process ends. Returns 0, or 1 after printing
// an error.
int registry_lock(void);

// Returns 0 if the transport is loaded, or 1 after printing that it is not.
int registry_check_loaded(const char *name);

// Returns a descriptor of the pinned map NAME/WHICH, or -1 if there is none.
int registry_map(const char *name, const char *which);

#endif
