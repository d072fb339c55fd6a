// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "native/fd.hpp"
#include "roundabout/testbeds/lab/ecn/ecn.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sampler {

// Wire segments that a switch's port sent (roundabout/testbeds/lab/ecn/ecn.h).
struct EcnCounts {
  std::uint64_t marks = 0;
  std::uint64_t ect_packets = 0;
};

// Wire segments of one source that a port marked.
struct SourceMarks {
  ecn_source source;
  std::uint64_t marks = 0;
};

// The eBPF maps, pinned in a folder, in which a switch counts by port, and its marks by source too.
class EcnMaps {
public:
  explicit EcnMaps(const std::string &folder);

  // Nothing for a port that the map does not know.
  std::optional<EcnCounts> port(std::uint32_t ifindex) const;

  // Of all ports, those of other switches included.
  void read_sources();
  const std::vector<SourceMarks> &sources() const { return read_; }

private:
  native::Fd ports_;
  native::Fd sources_;
  std::vector<ecn_source> keys_;
  std::vector<std::uint64_t> values_;
  std::vector<SourceMarks> read_;
};

} // namespace sampler
