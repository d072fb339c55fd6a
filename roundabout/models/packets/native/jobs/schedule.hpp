// SPDX-License-Identifier: Apache-2.0
// The next event of each source, in a tournament: the earliest of all stands at the root.
#pragma once

#include "roundabout/models/packets/native/numbers.hpp"

#include <cstddef>
#include <vector>

namespace packets {

// Links, ports, queue pairs and workers are sources with one next event each, so the tournament is as small as the
// network, however many packets are under way. Of two events at one instant, that of the lower source comes first.
class Schedule {
public:
  void resize(std::size_t sources) {
    leaves_ = 2;
    while (leaves_ < sources)
      leaves_ *= 2;
    nodes_.resize(2 * leaves_);
    for (std::size_t i = 0; i < leaves_; i++)
      nodes_[leaves_ + i] = {kNever, static_cast<std::uint32_t>(i)};
    for (std::size_t i = leaves_ - 1; i > 0; i--)
      nodes_[i] = nodes_[2 * i];
  }

  // Makes room for more sources, and keeps the events of all others.
  void grow(std::size_t sources) {
    if (sources <= leaves_)
      return;
    const std::vector<Node> former(nodes_.begin() + static_cast<std::ptrdiff_t>(leaves_), nodes_.end());
    resize(sources);
    for (const Node &each : former)
      if (each.at < kNever)
        set(each.source, each.at);
  }

  Picos next_at() const { return nodes_[1].at; }
  std::uint32_t next_source() const { return nodes_[1].source; }
  Picos at(std::uint32_t source) const { return nodes_[leaves_ + source].at; }

  void set(std::uint32_t source, Picos at) {
    std::size_t place = leaves_ + source;
    nodes_[place].at = at;
    Node winner = nodes_[place];
    if (nodes_[1].source == source) { // it stood at all places up to the root
      while (place > 1) {
        winner = earlier(winner, place);
        place /= 2;
        nodes_[place] = winner;
      }
      return;
    }
    while (place > 1) {
      winner = earlier(winner, place);
      place /= 2;
      if (nodes_[place].source == winner.source && nodes_[place].at == winner.at)
        return;
      nodes_[place] = winner;
    }
  }

private:
  struct Node {
    Picos at;
    std::uint32_t source;
  };

  // Returns the earlier one of a node at `place` and its rival; at one instant the left one, which has the lower
  // source. A branch here would be mispredicted at every second level, so masks choose.
  Node earlier(const Node &node, std::size_t place) const {
    const Node &rival = nodes_[place ^ 1];
    const std::uint64_t mask = rival.at - static_cast<Picos>(place & 1) < node.at ? ~std::uint64_t{0} : 0;
    Node found = node;
    found.at ^= (node.at ^ rival.at) & static_cast<Picos>(mask);
    found.source ^= (node.source ^ rival.source) & static_cast<std::uint32_t>(mask);
    return found;
  }

  std::size_t leaves_ = 0;
  std::vector<Node> nodes_;
};

} // namespace packets
