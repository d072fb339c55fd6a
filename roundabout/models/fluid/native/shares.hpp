// SPDX-License-Identifier: Apache-2.0
// Weighted max-min shares of links, by strict priority, as in roundabout/models/fluid/rates.py, for one set of coupled
// flows.
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
  static constexpr int kWish = -1, kFeeder = -2;

  // Removes all links and flows. Both are numbered in the order in which they are added.
  void clear();
  int add_link(double capacity);
  // Adds traffic with a demand (bytes/ms) and a weight; calls of add_hop() add its links. If `passes_on` is not
  // negative, it is an earlier flow of equal weight and priority, whose rate limits this flow's.
  int add_flow(double wanted, double weight, int priority, int passes_on);
  void add_hop(int link);

  void set_weight(std::size_t flow, double weight) { flows_[flow].weight = weight; }
  // Computes the rates of all flows.
  void solve();
  double rate(std::size_t flow) const { return flows_[flow].rate; }
  std::size_t links() const { return links_.size(); }

private:
  friend class Bottlenecks;

  struct Flow {
    double wanted, weight, rate;
    int priority, first_follower, next_follower, feeder;
    int hops_begin, hops_end;
    int stop;
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
    int of; // a flow or a link
  };

  std::span<const int> on(int link) const;
  void fill(int priority);
  void start(int priority);
  Level first_full();
  void index_flows();
  void freeze(int flow, double rate, int stop);

  std::vector<Flow> flows_;
  std::vector<Link> links_;
  std::vector<int> hops_;
  std::vector<int> on_; // flows, link by link
  std::vector<std::size_t> on_begin_;
  std::vector<Level> wishes_, levels_; // scratch of fill(): of flows, of links
};

} // namespace fluid
