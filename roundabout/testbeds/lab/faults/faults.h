// SPDX-License-Identifier: Apache-2.0
// The commands of `switchport` by which links fail or lose packets. They return an exit status.
#ifndef ROUNDABOUT_FAULTS_H
#define ROUNDABOUT_FAULTS_H

#define FAULTS "faults" // the pinned map

int attach_faults(const char *object_path, const char *pins);
int set_faults(const char *pins);
int show_faults(const char *pins);

#endif
