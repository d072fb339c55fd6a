// SPDX-License-Identifier: Apache-2.0
// The choice of paths by senders. Switches hash the entropy that a packet carries, as Ultra Ethernet's do (UEC 1.0), so
// a sender chooses a path by an entropy, and a plane by the NIC that sends.
#pragma once

#include "roundabout/models/packets/native/c_api.h"
#include "roundabout/models/packets/native/numbers.hpp"

namespace packets {

// The paths from one host to another, as a queue pair uses them.
struct PathSet {
  std::uint32_t first_plane = 0, planes = 1; // of the fabric's
  std::uint32_t turn = 0;                    // the plane of the next packet
  std::uint16_t entropy = 0;
  Picos sent_at = -kNever / 2;
};

class PathChoice {
public:
  PathChoice(const routing_plan &plan, Random &random) : plan_(plan), random_(random) {}

  // Chooses the path of a packet that is sent now, and moves on to the next plane.
  void choose(PathSet &paths, Picos now) {
    if (plan_.policy == SPRAY || (plan_.policy == FLOWLET && now - paths.sent_at > plan_.gap_ps))
      paths.entropy = static_cast<std::uint16_t>(random_.uniform() * 0x1p16);
    paths.sent_at = now;
    paths.turn = paths.turn + 1 < paths.planes ? paths.turn + 1 : 0;
  }

private:
  routing_plan plan_;
  Random &random_;
};

} // namespace packets
