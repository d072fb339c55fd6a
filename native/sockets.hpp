// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "native/fd.hpp"

#include <cstdint>
#include <netinet/in.h>

namespace native {

sockaddr_in socket_address(in_addr ip, std::uint16_t port);

// Opens a TCP socket that never blocks. Throws Failure.
Fd open_tcp_socket();

// Returns and clears a socket's pending error, such as that of a connection attempt; 0 for none.
int take_error(int fd);

// Sets a socket option. Throws Failure.
void set_option(int fd, int level, int option, int value);

// Sets options so that small messages are sent at once, and a connection ends `timeout_ms` after its peer vanished.
// Idle connections are probed every `probe_s`. Throws Failure.
void tune_connection(int fd, int timeout_ms, int probe_s);

} // namespace native
