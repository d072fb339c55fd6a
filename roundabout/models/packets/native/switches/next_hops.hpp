// SPDX-License-Identifier: Apache-2.0
// Next hops of switches, for packets that are bound to no route: the ports on shortest paths to the switch of a
// receiver.
#pragma once

#include "roundabout/models/packets/native/c_api.h"
#include "roundabout/models/packets/native/numbers.hpp"

#include <span>
#include <vector>

namespace packets {

class NextHops {
public:
  explicit NextHops(std::span<const port_plan> plans);

  // The switch at a port's end, or at the far end of its link; kNone for a host.
  std::uint32_t from(std::uint32_t port) const { return from_[port]; }
  std::uint32_t to(std::uint32_t port) const { return to_[port]; }

  // Makes the groups of all switches towards one switch, and returns their place.
  std::uint32_t add_destination(std::uint32_t to_switch);
  // Avoids these ports from now on, and no others. A switch without another way keeps the next hops that it has.
  void avoid(std::span<const std::uint32_t> ports);
  // The equal next hops of a switch towards a destination, in the order of ports.
  std::span<const std::uint32_t> group(std::uint32_t destination, std::uint32_t at_switch) const {
    const Group &found = groups_[destination + at_switch];
    return {members_.data() + found.first, found.count};
  }

private:
  struct Group {
    std::uint32_t first = 0, count = 0;
  };

  std::vector<std::uint32_t> distances(std::uint32_t to_switch) const;
  Group make_group(std::uint32_t at_switch, const std::vector<std::uint32_t> &distances);

  std::vector<std::uint32_t> from_, to_;
  std::vector<std::vector<std::uint32_t>> ports_of_; // of each switch, those to other switches
  std::vector<std::uint32_t> destination_of_;        // by switch; kNone where it is none yet
  std::vector<Group> groups_, last_groups_;          // by destination and switch; each switch's last one of several
  std::vector<bool> avoided_;                        // by port
  std::vector<std::uint32_t> members_;               // of all groups; those of one port come first, by port
};

} // namespace packets
