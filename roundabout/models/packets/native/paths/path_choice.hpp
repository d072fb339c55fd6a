// SPDX-License-Identifier: Apache-2.0
// The choice of paths by senders. Switches hash the entropy that a packet carries, as Ultra Ethernet's do (UEC 1.0), so
// a sender chooses a path by an entropy, and a plane by the NIC that sends.
#pragma once

#include "roundabout/models/packets/native/c_api.h"
#include "roundabout/models/packets/native/paths/path_bitmap.hpp"
#include "roundabout/models/packets/native/paths/recycled_entropies.hpp"

#include <vector>

namespace packets {

// The paths from one host to another, as a queue pair uses them.
struct PathSet {
  std::uint32_t first_plane = 0, planes = 1; // of the fabric's
  std::uint32_t turn = 0;                    // the plane of the next packet
  std::uint32_t history = kNone;             // by which BITMAP or REPS chooses
  std::uint16_t first_entropy = 0;           // of those policies' block of entropies
  std::uint16_t entropy = 0;
  Picos sent_at = -kNever / 2;
};

class PathChoice {
public:
  PathChoice(const routing_plan &plan, Random &random) : plan_(plan), random_(random) {}

  // Prepares a set of paths without history.
  void begin(PathSet &paths) {
    if (plan_.policy == BITMAP) {
      paths.history = static_cast<std::uint32_t>(bitmaps_.size());
      bitmaps_.emplace_back(plan_.entropies, random_);
    } else if (plan_.policy == REPS) {
      paths.history = static_cast<std::uint32_t>(recycled_.size());
      recycled_.emplace_back();
    }
    if (paths.history != kNone)
      paths.first_entropy = static_cast<std::uint16_t>(random_.below(kEntropies / plan_.entropies) * plan_.entropies);
  }

  // Chooses the path of a packet that is sent now, and moves on to the next plane.
  void choose(PathSet &paths, Picos now) {
    if (plan_.policy == SPRAY || (plan_.policy == FLOWLET && now - paths.sent_at > plan_.gap_ps))
      paths.entropy = static_cast<std::uint16_t>(random_.below(kEntropies));
    else if (paths.history != kNone)
      paths.entropy = static_cast<std::uint16_t>(paths.first_entropy + next_path(paths.history));
    paths.sent_at = now;
    paths.turn = paths.turn + 1 < paths.planes ? paths.turn + 1 : 0;
  }

  // Learns the fate of a packet that was sent with this entropy.
  void learn(const PathSet &paths, std::uint16_t entropy, PathFeedback feedback, Picos now) {
    const std::uint32_t path = entropy & (plan_.entropies - 1);
    if (plan_.policy == BITMAP)
      bitmaps_[paths.history].learn(path, feedback);
    else if (plan_.policy == REPS)
      recycled_[paths.history].learn(path, feedback, now);
  }

private:
  static constexpr std::uint32_t kEntropies = 1 << 16;

  std::uint32_t next_path(std::uint32_t history) {
    return plan_.policy == BITMAP ? bitmaps_[history].next(random_) : recycled_[history].next(plan_.entropies, random_);
  }

  routing_plan plan_;
  Random &random_;
  std::vector<PathBitmap> bitmaps_;
  std::vector<RecycledEntropies> recycled_;
};

} // namespace packets
