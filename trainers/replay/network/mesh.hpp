// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "native/control/control.hpp"
#include "native/fd.hpp"
#include "trainers/replay/network/hello.hpp"
#include "trainers/replay/options.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace replay {

// A socket to or from the worker `peer`, one of `connections` alike.
struct Socket {
  unsigned peer = 0;
  unsigned number = 0;
  native::Fd fd;
};

// A worker's sockets, in the order of its Connections.
struct Mesh {
  std::vector<Socket> out;
  std::vector<Socket> in;

  // What TCP counts as acknowledged on an outgoing connection before the job's first byte: the SYN and the hello.
  static constexpr std::uint64_t kOverheadBytes = 1 + sizeof(Message);
};

// A socket that listens at the worker's own address and port. Throws native::Failure.
native::Fd listen_for_peers(const Options &options);

// Connects to those it sends to, which may not listen yet, and accepts those it receives from, for at most 20 s. A
// connection of who does not know `secret` is closed without a word; one of another worker is refused and told why.
// Throws native::Failure, naming who is missing.
Mesh connect_mesh(const Options &options, native::Fd listener, const std::string &secret, native::Control &control);

} // namespace replay
