// SPDX-License-Identifier: Apache-2.0
#include "roundabout/models/packets/native/switches/next_hops.hpp"

#include <algorithm>
#include <numeric>

namespace packets {

NextHops::NextHops(std::span<const port_plan> plans) : avoided_(plans.size()), members_(plans.size()) {
  std::iota(members_.begin(), members_.end(), 0U);
  std::size_t switches = 0;
  for (const port_plan &plan : plans) {
    from_.push_back(plan.from_switch < 0 ? kNone : static_cast<std::uint32_t>(plan.from_switch));
    to_.push_back(plan.to_switch < 0 ? kNone : static_cast<std::uint32_t>(plan.to_switch));
    switches = std::max(switches, static_cast<std::size_t>(plan.from_switch + 1));
  }
  ports_of_.resize(switches);
  destination_of_.resize(switches, kNone);
  last_groups_.resize(switches);
  for (std::uint32_t port = 0; port < plans.size(); port++)
    if (from_[port] != kNone && to_[port] != kNone)
      ports_of_[from_[port]].push_back(port);
}

std::uint32_t NextHops::add_destination(std::uint32_t to_switch) {
  std::uint32_t &found = destination_of_[to_switch];
  if (found == kNone) {
    found = static_cast<std::uint32_t>(groups_.size());
    const auto hops = distances(to_switch);
    for (std::uint32_t each = 0; each < ports_of_.size(); each++)
      groups_.push_back(make_group(each, hops));
  }
  return found;
}

void NextHops::avoid(std::span<const std::uint32_t> ports) {
  avoided_.assign(avoided_.size(), false);
  for (const std::uint32_t port : ports)
    avoided_[port] = true;
  for (std::uint32_t to_switch = 0; to_switch < destination_of_.size(); to_switch++)
    if (destination_of_[to_switch] != kNone) {
      const auto hops = distances(to_switch);
      for (std::uint32_t each = 0; each < ports_of_.size(); each++)
        if (const Group left = make_group(each, hops); left.count > 0)
          groups_[destination_of_[to_switch] + each] = left;
    }
}

std::vector<std::uint32_t> NextHops::distances(std::uint32_t to_switch) const {
  std::vector<std::uint32_t> found(ports_of_.size(), kNone), frontier{to_switch};
  found[to_switch] = 0;
  for (std::size_t at = 0; at < frontier.size(); at++)
    for (const std::uint32_t port : ports_of_[frontier[at]])
      if (!avoided_[port] && found[to_[port]] == kNone) {
        found[to_[port]] = found[frontier[at]] + 1;
        frontier.push_back(to_[port]);
      }
  return found;
}

// In a tree of switches nearly all groups of several ports of a switch are the same, that of its ports up, so a group
// is compared with the last one.
NextHops::Group NextHops::make_group(std::uint32_t at_switch, const std::vector<std::uint32_t> &distances) {
  std::vector<std::uint32_t> nearer;
  for (const std::uint32_t port : ports_of_[at_switch])
    if (!avoided_[port] && distances[to_[port]] < distances[at_switch])
      nearer.push_back(port);
  if (nearer.size() == 1)
    return {nearer[0], 1};
  Group &last = last_groups_[at_switch];
  if (!std::ranges::equal(nearer, std::span(members_).subspan(last.first, last.count))) {
    last = {static_cast<std::uint32_t>(members_.size()), static_cast<std::uint32_t>(nearer.size())};
    members_.insert(members_.end(), nearer.begin(), nearer.end());
  }
  return last;
}

} // namespace packets
