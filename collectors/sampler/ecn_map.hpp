// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "native/fd.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace sampler {

// Wire segments that a switch's port sent (roundabout/testbeds/lab/ecn.h).
struct EcnCounts {
  std::uint64_t marks = 0;
  std::uint64_t ect_packets = 0;
};

// The eBPF map, pinned at a path, in which a switch counts by port.
class EcnMap {
public:
  explicit EcnMap(const std::string &path);

  // Nothing for a port that the map does not know.
  std::optional<EcnCounts> read(std::uint32_t ifindex) const;

private:
  native::Fd fd_;
};

} // namespace sampler
