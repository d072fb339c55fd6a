// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "roundabout/models/fluid/native/job.hpp"

namespace fluid {

// One direction of a link, and the streams that cross it now.
//
// The direction couples its streams if it is tight: the sum of their bounds exceeds its limit. Bounds are added up in
// whole units, because sums of fractions would drift as streams start and end.
struct alignas(64) Edge { // one cache line, because each stream that starts or ends reads all edges on its path
  explicit Edge(double bytes_per_ms) : capacity(bytes_per_ms), limit(bytes_per_ms) {}

  double capacity;
  double limit; // the capacity now, which is smaller while congested
  std::int64_t bound_units = 0, limit_units = 0;
  Hop *first = nullptr;
  std::uint64_t set_number = 0;
  int set_index = -1;
  int streams = 0; // that cross it now
  int place = -1;  // in the engine's SpineGroups
  bool is_tight = false, is_dirty = false;
};

} // namespace fluid
