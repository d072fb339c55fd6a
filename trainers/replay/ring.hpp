// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "native/control.hpp"
#include "native/fd.hpp"
#include "trainers/replay/hello.hpp"
#include "trainers/replay/options.hpp"

#include <cstdint>
#include <vector>

namespace replay {

// A worker's connections, by flow. Bytes go one way round: out to the right neighbour, in from the left one.
struct Ring {
  std::vector<native::Fd> out;
  std::vector<native::Fd> in;

  // What TCP counts as acknowledged on an outgoing connection before the job's first byte: the SYN and the hello.
  static constexpr std::uint64_t kOverheadBytes = 1 + sizeof(Message);
};

// Connects to the right neighbour, which may not listen yet, and accepts the left one, for at most 20 s. A connection
// that is not of this job's left neighbour is refused and said on standard error. Throws native::Failure, naming who is
// missing.
Ring connect_ring(const Options &options, native::Control &control);

} // namespace replay
