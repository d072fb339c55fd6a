// SPDX-License-Identifier: Apache-2.0
// Error messages of the tool `transport`.
#ifndef ROUNDABOUT_ERRORS_H
#define ROUNDABOUT_ERRORS_H

// Prints an error as "transport: ..." on stderr, and returns 1.
int fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
