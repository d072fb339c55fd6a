// SPDX-License-Identifier: Apache-2.0
// Paths that a sender takes in turn and skips after marks and losses: `bitmap` of uet-htsim (htsim/sim/uec_mp.cpp,
// UecMpBitmap). A path is skipped once for each unit of its penalty.
#pragma once

#include "roundabout/models/packets/native/numbers.hpp"
#include "roundabout/models/packets/native/paths/path_feedback.hpp"

#include <algorithm>
#include <vector>

namespace packets {

class PathBitmap {
public:
  PathBitmap(std::uint32_t paths, Random &random) : paths_(paths), order_(random.below(paths)) {}

  // Returns the next path without a penalty. The first path that it skips loses one unit. If all have a penalty, it
  // returns the one after a whole turn.
  std::uint32_t next(Random &random) {
    if (is_penalized()) {
      penalties_[current()]--;
      std::uint32_t skipped = 0;
      do
        advance(random);
      while (++skipped < paths_ && is_penalized());
    }
    const std::uint32_t found = current();
    advance(random);
    return found;
  }

  void learn(std::uint32_t path, PathFeedback feedback) {
    const std::uint8_t penalty = kPenalties[static_cast<std::size_t>(feedback)];
    if (penalty == 0)
      return;
    if (penalties_.empty())
      penalties_.resize(paths_);
    penalties_[path] = std::min<std::uint8_t>(penalties_[path] + penalty, kMaxPenalty);
  }

private:
  static constexpr std::uint8_t kMaxPenalty = 15;
  static constexpr std::uint8_t kPenalties[] = {0, 1, 4, kMaxPenalty}; // clean, marked, trimmed, lost

  std::uint32_t current() const { return turn_ ^ order_; }
  bool is_penalized() const { return !penalties_.empty() && penalties_[current()] > 0; }

  // Each turn through all paths has another order.
  void advance(Random &random) {
    if (++turn_ < paths_)
      return;
    turn_ = 0;
    order_ = random.below(paths_);
  }

  std::uint32_t paths_; // a power of two
  std::uint32_t turn_ = 0, order_;
  std::vector<std::uint8_t> penalties_; // by path; empty before the first one
};

} // namespace packets
