// SPDX-License-Identifier: Apache-2.0
// Weighted max-min shares of links, by strict priority, for one set of coupled flows.
#pragma once

#include "roundabout/models/fluid/native/numbers.hpp"

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace fluid {

class Shares {
public:
  // A flow's bottleneck is the number of a link, or one of these: its own demand, or its feeder.
  static constexpr int kDemand = -1, kFeeder = -2;

  // Removes all links and flows. Both are numbered in the order in which they are added.
  void clear();
  int add_link(double capacity);
  // Adds traffic with a demand (bytes/ms) and a weight; calls of add_hop() add its links. If `feeder` is not
  // negative, it is an earlier flow of equal weight and priority, whose rate limits this flow's.
  int add_flow(double demand, double weight, int priority, int feeder);
  void add_hop(int link, double share = 1); // of the flow's rate

  void set_weight(std::size_t flow, double weight) { flows_[flow].weight = weight; }
  // Computes the rates of all flows.
  void solve();
  double rate(std::size_t flow) const { return flows_[flow].rate; }
  std::size_t links() const { return links_.size(); }

private:
  friend class Bottlenecks;

  struct Hop {
    int link;
    double share;
  };
  struct Flow {
    double demand, weight, rate;
    int priority, first_follower, next_follower, feeder;
    int hops_begin, hops_end;
    int bottleneck;
    bool active;
  };
  struct Link {
    double capacity, left, weight;
    int active; // flows
    // Returns each flow's rate over its weight if no other link limits any of them.
    double level() const { return active > 0 ? std::max(left, 0.0) / weight : kInfinity; }
  };
  struct Level {
    double level;
    int number; // a flow or a link
  };

  std::span<const int> flows_on(int link) const;
  void share_among(int priority);
  void prepare(int priority);
  Level lowest_link();
  void index_flows();
  void fix_rate(int flow, double rate, int bottleneck);

  std::vector<Flow> flows_;
  std::vector<Link> links_;
  std::vector<Hop> hops_;
  bool has_fractions_ = false;      // a flow's rate counts in part on some link
  std::vector<int> flows_of_links_; // flows, link by link
  std::vector<std::size_t> flows_begin_;
  std::vector<Level> demand_levels_, link_levels_; // scratch of share_among(): of flows, of links
};

} // namespace fluid
