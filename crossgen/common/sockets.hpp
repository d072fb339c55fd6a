// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "native/errors.hpp"
#include "native/fd.hpp"
#include "native/sockets.hpp"

#include <cstdint>
#include <netinet/in.h>
#include <string>

namespace crossgen {

struct Endpoint {
  in_addr ip{};
  std::uint16_t port = 0;

  // Of "10.0.0.1:7000". Throws native::Failure.
  static Endpoint parse(const std::string &text);

  std::string text() const;
  sockaddr_in address() const;
};

// Listens at the endpoint and nowhere else. A port of 0 is chosen by the kernel, and put into `endpoint`.
native::Fd listen_at(Endpoint &endpoint);

// The socket is writable once it has connected, or not: native::take_error tells.
void begin_connect(int fd, const Endpoint &endpoint);

// Allows this process so many descriptors beyond the few that it has anyway. Throws native::Failure.
void allow_descriptors(std::uint64_t wanted);

// No delay for small flows, and an end for connections whose peer vanished without a word.
void prepare(int fd);

} // namespace crossgen
