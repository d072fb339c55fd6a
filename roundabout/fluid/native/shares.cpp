// SPDX-License-Identifier: Apache-2.0
#include "roundabout/fluid/native/shares.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace fluid {
namespace {
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kSame = 1 + 1e-12;
} // namespace

void Shares::clear() {
  flows_.clear();
  links_.clear();
  hops_.clear();
}

int Shares::add_link(double capacity) {
  links_.push_back({capacity, capacity, 0, 0, false});
  return static_cast<int>(links_.size()) - 1;
}

int Shares::add_flow(double wanted, double weight, int priority, int passes_on) {
  const int place = static_cast<int>(flows_.size()), hops = static_cast<int>(hops_.size());
  flows_.push_back({wanted, weight, 0, priority, -1, -1, passes_on, hops, hops, kWish, false});
  if (passes_on >= 0)
    flows_.back().next_follower = std::exchange(flows_[static_cast<std::size_t>(passes_on)].first_follower, place);
  return place;
}

void Shares::add_hop(int link) {
  hops_.push_back(link);
  flows_.back().hops_end++;
}

void Shares::solve() {
  for (Link &link : links_)
    link.left = link.capacity;
  // Most often all have one priority.
  int next = std::numeric_limits<int>::max();
  for (bool more = true; more;) {
    int priority = std::numeric_limits<int>::min();
    more = false;
    for (const Flow &flow : flows_)
      if (flow.priority < next && (!more || flow.priority > priority)) {
        priority = flow.priority;
        more = true;
      }
    if (more)
      fill(next = priority);
  }
}

// Progressive filling, of what is left, which is less then.
void Shares::fill(int priority) {
  for (Link &link : links_) {
    link.weight = 0;
    link.active = 0;
  }
  active_.clear();
  for (std::size_t i = 0; i < flows_.size(); i++) {
    Flow &flow = flows_[i];
    if (flow.priority != priority)
      continue;
    flow.active = true;
    active_.push_back(static_cast<int>(i));
    for (int at = flow.hops_begin; at < flow.hops_end; at++) {
      Link &link = links_[static_cast<std::size_t>(hops_[static_cast<std::size_t>(at)])];
      link.weight += flow.weight;
      link.active++;
    }
  }
  while (!active_.empty()) {
    double level = kInfinity;
    for (const Link &link : links_)
      if (link.active > 0)
        level = std::min(level, std::max(link.left, 0.0) / link.weight);
    for (const int i : active_) {
      const Flow &flow = flows_[static_cast<std::size_t>(i)];
      level = std::min(level, flow.wanted / flow.weight);
    }
    for (Link &link : links_)
      link.full = link.active > 0 && std::max(link.left, 0.0) <= level * link.weight * kSame;
    for (const int i : active_) {
      const Flow &flow = flows_[static_cast<std::size_t>(i)];
      if (!flow.active)
        continue;
      const bool satisfied = flow.wanted <= level * flow.weight * kSame;
      int at = flow.hops_begin;
      while (!satisfied && at < flow.hops_end && !links_[static_cast<std::size_t>(hops_[static_cast<std::size_t>(at)])].full)
        at++;
      if (satisfied)
        freeze(i, flow.wanted, kWish);
      else if (at < flow.hops_end)
        freeze(i, level * flow.weight, hops_[static_cast<std::size_t>(at)]);
    }
    std::erase_if(active_, [this](int i) { return !flows_[static_cast<std::size_t>(i)].active; });
  }
}

void Shares::freeze(int place, double rate, int stop) {
  Flow &flow = flows_[static_cast<std::size_t>(place)];
  flow.rate = rate;
  flow.stop = stop;
  flow.active = false;
  for (int at = flow.hops_begin; at < flow.hops_end; at++) {
    Link &link = links_[static_cast<std::size_t>(hops_[static_cast<std::size_t>(at)])];
    link.left -= rate;
    link.weight -= flow.weight;
    link.active--;
  }
  for (int next = flow.first_follower; next >= 0; next = flows_[static_cast<std::size_t>(next)].next_follower)
    if (const Flow &follower = flows_[static_cast<std::size_t>(next)]; follower.active)
      freeze(next, std::min(follower.wanted, rate), kFeeder);
}

} // namespace fluid
