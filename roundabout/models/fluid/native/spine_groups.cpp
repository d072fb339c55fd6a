// SPDX-License-Identifier: Apache-2.0
#include "roundabout/models/fluid/native/spine_groups.hpp"

#include <algorithm>
#include <cmath>

namespace fluid {
namespace {

// Returns the next hash of a stream: splitmix64 (Steele, Lea and Flood, OOPSLA 2014).
std::uint64_t next_hash(std::uint64_t bits) {
  bits += 0x9E3779B97F4A7C15;
  bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9;
  bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EB;
  return bits ^ (bits >> 31);
}

} // namespace

SpineGroups::SpineGroups(const std::vector<Edge *> &up, const std::vector<Edge *> &down, std::size_t spines,
                         std::size_t choices, double interval_ms)
    : up_(up), down_(down), spines_(spines), choices_(std::min(choices, spines)), interval_ms_(interval_ms) {
  for (std::size_t i = 0; i < up_.size(); i++) {
    up_[i]->place = static_cast<int>(i);
    down_[i]->place = static_cast<int>(i);
  }
}

double SpineGroups::next_ms(double now) const { return (std::floor(now / interval_ms_ + 1e-6) + 1) * interval_ms_; }

// Returns a key for each spine, that is smaller the fewer streams the links of a path have; its remainder is the spine.
std::vector<std::size_t> SpineGroups::order(const Hop *hops) const {
  const std::size_t leaf = index(hops[0].edge->place) / spines_ * spines_;
  const std::size_t other = index(hops[1].edge->place) / spines_ * spines_;
  std::vector<std::size_t> keys(spines_);
  for (std::size_t spine = 0; spine < spines_; spine++)
    keys[spine] = index(up_[leaf + spine]->streams + down_[other + spine]->streams) * spines_ + spine;
  return keys;
}

void SpineGroups::choose(Flow &flow) {
  std::vector<std::size_t> keys = order(flow.hops);
  const auto chosen = keys.begin() + static_cast<std::ptrdiff_t>(next_hash(flow.hash) % choices_);
  std::ranges::nth_element(keys, chosen);
  const std::size_t spine = *chosen % spines_;
  for (Hop *hop = flow.hops; hop != flow.hops_end; hop++) {
    auto &links = hop == flow.hops ? up_ : down_;
    hop->edge = links[index(hop->edge->place) / spines_ * spines_ + spine];
  }
}

std::vector<Flow *> SpineGroups::streams_to_move() {
  std::vector<Flow *> found;
  for (std::size_t place = 0; place < up_.size(); place++)
    for (const Hop *hop = up_[place]->first; hop; hop = hop->next) {
      Flow &flow = *hop->flow;
      const std::size_t spine = place % spines_, leaf = place - spine;
      const std::size_t other = index(flow.hops[1].edge->place) - spine;
      const int own = up_[place]->streams + down_[other + spine]->streams;
      std::size_t better = 0;
      for (std::size_t i = 0; i < spines_ && better < choices_; i++)
        if (const int count = up_[leaf + i]->streams + down_[other + i]->streams; count < own + (i < spine))
          better++;
      if (better == choices_) {
        flow.hash = next_hash(flow.hash);
        found.push_back(&flow);
      }
    }
  return found;
}

} // namespace fluid
