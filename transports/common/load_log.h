// SPDX-License-Identifier: Apache-2.0
// The output of libbpf and the kernel's verifier while a transport is loaded.
#ifndef ROUNDABOUT_LOAD_LOG_H
#define ROUNDABOUT_LOAD_LOG_H

// Begins to store libbpf's output, which is otherwise printed.
void load_log_start(void);

// Returns the last lines of the output that concern the program. The text is valid until the next call.
const char *load_log_reasons(void);

#endif
