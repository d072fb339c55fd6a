// SPDX-License-Identifier: Apache-2.0
#include "roundabout/models/fluid/native/shares.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace fluid {

void Shares::clear() {
  flows_.clear();
  links_.clear();
  hops_.clear();
  has_fractions_ = false;
}

int Shares::add_link(double capacity) {
  links_.push_back({capacity, capacity, 0, 0});
  return static_cast<int>(links_.size()) - 1;
}

int Shares::add_flow(double demand, double weight, int priority, int feeder) {
  const int place = static_cast<int>(flows_.size()), hops = static_cast<int>(hops_.size());
  flows_.push_back({demand, weight, 0, priority, -1, -1, feeder, hops, hops, kDemand, false});
  if (feeder >= 0)
    flows_.back().next_follower = std::exchange(flows_[index(feeder)].first_follower, place);
  return place;
}

void Shares::add_hop(int link, double share) {
  hops_.push_back({link, share});
  has_fractions_ |= share != 1;
  flows_.back().hops_end++;
}

void Shares::solve() {
  for (Link &link : links_)
    link.left = link.capacity;
  index_flows();
  // Priorities are found one by one, because most often all flows have the same.
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
      share_among(next = priority);
  }
}

void Shares::index_flows() {
  flows_begin_.assign(links_.size() + 2, 0);
  for (const Hop &hop : hops_)
    flows_begin_[index(hop.link) + 2]++;
  for (std::size_t link = 2; link < flows_begin_.size(); link++)
    flows_begin_[link] += flows_begin_[link - 1];
  flows_of_links_.resize(hops_.size());
  for (std::size_t flow = 0; flow < flows_.size(); flow++)
    for (int hop = flows_[flow].hops_begin; hop < flows_[flow].hops_end; hop++)
      flows_of_links_[flows_begin_[index(hops_[index(hop)].link) + 1]++] = static_cast<int>(flow);
}

std::span<const int> Shares::flows_on(int link) const {
  const std::size_t begin = flows_begin_[index(link)];
  return std::span(flows_of_links_).subspan(begin, flows_begin_[index(link) + 1] - begin);
}

// Shares the remaining capacity among the flows of a priority, by progressive filling.
void Shares::share_among(int priority) {
  prepare(priority);
  for (auto next = demand_levels_.begin(); next != demand_levels_.end();) {
    const auto [level, full] = lowest_link();
    // Flows whose demand is below the level of the first full link get their demand.
    const auto above =
        std::find_if(next, demand_levels_.end(), [level](const Level &each) { return each.level > level * kRounding; });
    for (; next != above; next++)
      if (flows_[index(next->number)].active)
        fix_rate(next->number, flows_[index(next->number)].demand, kDemand);
    if (full < 0 || links_[index(full)].level() > level)
      continue;
    for (const int flow : flows_on(full))
      if (flows_[index(flow)].active)
        fix_rate(flow, level * flows_[index(flow)].weight, full);
  }
}

// Returns the link with the lowest level; -1 with an infinite level if there is none. Levels only rise as flows stop,
// so an outdated entry of the heap is a lower bound.
Shares::Level Shares::lowest_link() {
  while (!link_levels_.empty()) {
    const auto [level, link] = link_levels_.front();
    const double now = links_[index(link)].level();
    if (now <= level)
      return link_levels_.front();
    std::ranges::pop_heap(link_levels_, std::ranges::greater{}, &Level::level);
    link_levels_.back().level = now;
    if (now < kInfinity)
      std::ranges::push_heap(link_levels_, std::ranges::greater{}, &Level::level);
    else
      link_levels_.pop_back();
  }
  return {kInfinity, -1};
}

void Shares::prepare(int priority) {
  for (Link &link : links_) {
    link.weight = 0;
    link.active = 0;
  }
  demand_levels_.clear();
  for (std::size_t i = 0; i < flows_.size(); i++) {
    Flow &flow = flows_[i];
    if (flow.priority != priority)
      continue;
    flow.active = true;
    demand_levels_.push_back({flow.demand / flow.weight, static_cast<int>(i)});
    for (int at = flow.hops_begin; at < flow.hops_end; at++) {
      const Hop &hop = hops_[index(at)];
      Link &link = links_[index(hop.link)];
      link.weight += flow.weight * hop.share;
      link.active++;
    }
  }
  // At equal levels, a feeder comes before the flows that it feeds.
  std::ranges::sort(demand_levels_, {}, [](const Level &each) { return std::pair(each.level, each.number); });
  link_levels_.clear();
  for (std::size_t i = 0; i < links_.size(); i++)
    if (links_[i].active > 0)
      link_levels_.push_back({links_[i].level(), static_cast<int>(i)});
  std::ranges::make_heap(link_levels_, std::ranges::greater{}, &Level::level);
}

void Shares::fix_rate(int place, double rate, int bottleneck) {
  Flow &flow = flows_[index(place)];
  flow.rate = rate;
  flow.bottleneck = bottleneck;
  flow.active = false;
  for (int at = flow.hops_begin; at < flow.hops_end; at++) {
    const Hop &hop = hops_[index(at)];
    Link &link = links_[index(hop.link)];
    link.left -= rate * hop.share;
    link.weight -= flow.weight * hop.share;
    link.active--;
  }
  for (int next = flow.first_follower; next >= 0; next = flows_[index(next)].next_follower)
    if (const Flow &follower = flows_[index(next)]; follower.active)
      fix_rate(next, std::min(follower.demand, rate), kFeeder);
}

} // namespace fluid
