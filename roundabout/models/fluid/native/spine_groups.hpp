// SPDX-License-Identifier: Apache-2.0
// SGLB (spine group load balancing) on a leaf-spine, as MonkeyTree's simulator has it (hipersys-team/MonkeyTree).
#pragma once

#include "roundabout/models/fluid/native/edge.hpp"

#include <vector>

namespace fluid {

// A stream between two leaves takes one of the `choices` spines that have the fewest streams on both of its links,
// which a hash of the stream's number picks. Of equal spines the first one comes first. Every `interval_ms` streams
// move whose spine is no longer among these.
class SpineGroups {
public:
  // `up` and `down` are the links from and to the spines, leaf by leaf.
  SpineGroups(const std::vector<Edge *> &up, const std::vector<Edge *> &down, std::size_t spines, std::size_t choices,
              double interval_ms);

  // Chooses the links of a stream that is on no link.
  void choose(Flow &flow);
  // Returns the streams whose spine is no longer among the choices, and picks another hash for them.
  std::vector<Flow *> streams_to_move();
  double next_ms(double now) const;

private:
  std::vector<std::size_t> order(const Hop *hops) const;

  std::vector<Edge *> up_, down_;
  std::size_t spines_, choices_;
  double interval_ms_;
};

} // namespace fluid
