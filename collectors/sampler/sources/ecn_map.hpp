// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "native/fd.hpp"
#include "roundabout/testbeds/lab/ecn/ecn.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sampler {

// Counts of the wire segments that a switch's port sent (roundabout/testbeds/lab/ecn/ecn.h).
struct EcnCounts {
  std::uint64_t marks = 0;
  std::uint64_t ect_packets = 0;
};

// The number of wire segments of one source that a port marked.
struct SourceMarks {
  ecn_source source;
  std::uint64_t marks = 0;
};

// The eBPF maps, pinned in a folder, in which a switch counts segments by port, and marks by port and source.
class EcnMaps {
public:
  explicit EcnMaps(const std::string &folder);

  // Returns the counts of a port; none for a port that is not in the map.
  std::optional<EcnCounts> port(std::uint32_t ifindex) const;

  // Reads the marks by source of all ports, including other switches' ports, into sources().
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
