// SPDX-License-Identifier: Apache-2.0
// The commands of `switchport` that forward by routes. They return an exit status.
#ifndef ROUNDABOUT_ROUTES_H
#define ROUNDABOUT_ROUTES_H

#define ROUTES "routes" // the pinned map

int attach_forwarding(const char *object_path, const char *pins);
int set_routes(const char *pins);
int show_routes(const char *pins);

#endif
