// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "native/fd.hpp"

#include <cstdint>
#include <netinet/in.h>

namespace native {

sockaddr_in socket_address(in_addr ip, std::uint16_t port);

// Opens a TCP socket that never blocks. Throws Failure.
Fd open_tcp_socket();

// Returns and clears the error of a socket, such as that of a connection that was begun; 0 for none.
int take_error(int fd);

// Throws Failure.
void set_option(int fd, int level, int option, int value);

// Sends small messages at once, and ends a connection whose peer vanished without a word after `silence_ms`; idle ones
// are probed each `probe_s`. Throws Failure.
void tune_connection(int fd, int silence_ms, int probe_s);

} // namespace native
