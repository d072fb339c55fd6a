// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "native/clock.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace replay {

// One phase of an iteration: computing for compute_ns, or (bytes > 0) each worker sending `bytes` to its right
// neighbour, which takes alone_ns when nothing else is on the links.
struct Phase {
  std::string name;
  native::Nanos compute_ns = 0;
  std::uint64_t bytes = 0;
  native::Nanos alone_ns = 0;

  bool communicates() const { return bytes > 0; }
};

struct Profile {
  std::vector<Phase> phases;

  std::uint64_t bytes() const;
};

// Reads {"phases": [{"name", "compute_ms"} | {"name", "bytes", "alone_ms"}, ...]}. Throws native::Failure, naming the
// phase and field.
Profile parse_profile(const std::string &json);

} // namespace replay
