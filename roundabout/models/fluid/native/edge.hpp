// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "roundabout/models/fluid/native/job.hpp"

namespace fluid {

// One direction of a link, and the streams that it has now.
//
// It couples them where they could ask for more, together, than it carries. What they could is summed up in whole
// units: sums of fractions would drift as streams come and go.
struct alignas(64) Edge { // of one cache line: each stream that comes or goes looks at all on its way
  explicit Edge(double bytes_per_ms) : capacity(bytes_per_ms), limit(bytes_per_ms) {}

  double capacity;
  double limit; // of which it carries so much now, where it is less while congested
  std::int64_t units = 0, limit_units = 0;
  Hop *first = nullptr;
  std::uint64_t seen = 0;
  int local = -1;
  bool tight = false, dirty = false;
};

} // namespace fluid
