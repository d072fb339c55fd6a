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

  // Parses text such as "10.0.0.1:7000". Throws native::Failure for any other text.
  static Endpoint parse(const std::string &text);

  std::string text() const;
  sockaddr_in address() const;
};

// Listens at exactly this endpoint. For port 0 the kernel chooses a port, which is written to `endpoint`.
native::Fd listen_at(Endpoint &endpoint);

// Makes a socket send from this address, at a port that the kernel chooses for each destination.
void bind_source(int fd, const Endpoint &source);

// Begins to connect. The socket becomes writable when the attempt has succeeded or failed; native::take_error
// returns the result.
void begin_connect(int fd, const Endpoint &endpoint);

// Raises this process's limit of descriptors to `wanted` and some more. Throws native::Failure if that is not allowed.
void allow_descriptors(std::uint64_t wanted);

// Sets socket options: small writes are sent at once, and connections end if their peer vanishes.
void prepare(int fd);

} // namespace crossgen
