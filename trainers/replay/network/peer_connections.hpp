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

// A socket to or from the worker `peer`; `number` distinguishes the connections of all channels.
struct Socket {
  unsigned peer = 0;
  unsigned number = 0;
  native::Fd fd;
};

// A worker's sockets, in the order of its Connections.
struct Mesh {
  std::vector<Socket> out;
  std::vector<Socket> in;

  // Bytes that TCP counts as acknowledged on an outgoing connection before the job's first byte: the SYN and the hello.
  static constexpr std::uint64_t kOverheadBytes = 1 + sizeof(Message);
};

// Returns a socket that listens at the worker's own port, at its address or those of all NICs. Throws native::Failure.
native::Fd listen_for_peers(const Options &options);

// Connects to the peers that the worker sends to, which may not listen yet, and accepts those that it receives from,
// for at most 20 s. A connection without `secret` is closed without an answer, and an unexpected worker's is refused
// with a reason. Throws native::Failure with the names of missing peers.
Mesh connect_mesh(const Options &options, native::Fd listener, const std::string &secret, native::Control &control);

} // namespace replay
