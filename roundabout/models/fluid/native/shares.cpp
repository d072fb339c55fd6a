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
}

int Shares::add_link(double capacity) {
  links_.push_back({capacity, capacity, 0, 0});
  return static_cast<int>(links_.size()) - 1;
}

int Shares::add_flow(double wanted, double weight, int priority, int passes_on) {
  const int place = static_cast<int>(flows_.size()), hops = static_cast<int>(hops_.size());
  flows_.push_back({wanted, weight, 0, priority, -1, -1, passes_on, hops, hops, kWish, false});
  if (passes_on >= 0)
    flows_.back().next_follower = std::exchange(flows_[index(passes_on)].first_follower, place);
  return place;
}

void Shares::add_hop(int link) {
  hops_.push_back(link);
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
      fill(next = priority);
  }
}

void Shares::index_flows() {
  on_begin_.assign(links_.size() + 2, 0);
  for (const int link : hops_)
    on_begin_[index(link) + 2]++;
  for (std::size_t link = 2; link < on_begin_.size(); link++)
    on_begin_[link] += on_begin_[link - 1];
  on_.resize(hops_.size());
  for (std::size_t flow = 0; flow < flows_.size(); flow++)
    for (int hop = flows_[flow].hops_begin; hop < flows_[flow].hops_end; hop++)
      on_[on_begin_[index(hops_[index(hop)]) + 1]++] = static_cast<int>(flow);
}

std::span<const int> Shares::on(int link) const {
  const std::size_t begin = on_begin_[index(link)];
  return std::span(on_).subspan(begin, on_begin_[index(link) + 1] - begin);
}

// Shares the remaining capacity among the flows of a priority, by progressive filling.
void Shares::fill(int priority) {
  start(priority);
  for (auto next = wishes_.begin(); next != wishes_.end();) {
    const auto [level, full] = first_full();
    // Flows whose demand is below the level of the first full link get their demand.
    const auto stopped =
        std::find_if(next, wishes_.end(), [level](const Level &wish) { return wish.level > level * kSame; });
    for (; next != stopped; next++)
      if (flows_[index(next->of)].active)
        freeze(next->of, flows_[index(next->of)].wanted, kWish);
    if (full < 0 || links_[index(full)].level() > level)
      continue;
    for (const int flow : on(full))
      if (flows_[index(flow)].active)
        freeze(flow, level * flows_[index(flow)].weight, full);
  }
}

// Returns the link with the lowest level; -1 with an infinite level if there is none. Levels only rise as flows stop,
// so an outdated entry of the heap is a lower bound.
Shares::Level Shares::first_full() {
  while (!levels_.empty()) {
    const auto [level, link] = levels_.front();
    const double now = links_[index(link)].level();
    if (now <= level)
      return levels_.front();
    std::ranges::pop_heap(levels_, std::ranges::greater{}, &Level::level);
    levels_.back().level = now;
    if (now < kInfinity)
      std::ranges::push_heap(levels_, std::ranges::greater{}, &Level::level);
    else
      levels_.pop_back();
  }
  return {kInfinity, -1};
}

void Shares::start(int priority) {
  for (Link &link : links_) {
    link.weight = 0;
    link.active = 0;
  }
  wishes_.clear();
  for (std::size_t i = 0; i < flows_.size(); i++) {
    Flow &flow = flows_[i];
    if (flow.priority != priority)
      continue;
    flow.active = true;
    wishes_.push_back({flow.wanted / flow.weight, static_cast<int>(i)});
    for (int at = flow.hops_begin; at < flow.hops_end; at++) {
      Link &link = links_[index(hops_[index(at)])];
      link.weight += flow.weight;
      link.active++;
    }
  }
  // At equal levels, a feeder comes before the flows that it feeds.
  std::ranges::sort(wishes_, {}, [](const Level &wish) { return std::pair(wish.level, wish.of); });
  levels_.clear();
  for (std::size_t i = 0; i < links_.size(); i++)
    if (links_[i].active > 0)
      levels_.push_back({links_[i].level(), static_cast<int>(i)});
  std::ranges::make_heap(levels_, std::ranges::greater{}, &Level::level);
}

void Shares::freeze(int place, double rate, int stop) {
  Flow &flow = flows_[index(place)];
  flow.rate = rate;
  flow.stop = stop;
  flow.active = false;
  for (int at = flow.hops_begin; at < flow.hops_end; at++) {
    Link &link = links_[index(hops_[index(at)])];
    link.left -= rate;
    link.weight -= flow.weight;
    link.active--;
  }
  for (int next = flow.first_follower; next >= 0; next = flows_[index(next)].next_follower)
    if (const Flow &follower = flows_[index(next)]; follower.active)
      freeze(next, std::min(follower.wanted, rate), kFeeder);
}

} // namespace fluid
