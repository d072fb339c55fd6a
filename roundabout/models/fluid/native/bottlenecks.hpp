// SPDX-License-Identifier: Apache-2.0
// Max-min shares of flows whose weights change a little, computed while every flow's bottleneck stays the same.
#pragma once

#include "roundabout/models/fluid/native/shares.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace fluid {

class Bottlenecks {
public:
  // Takes the bottlenecks from the solved `shares`. `sender_of` has the sender of each flow, numbered from 0; flows of
  // one sender have one weight.
  Bottlenecks(const Shares &shares, std::span<const std::size_t> sender_of);

  // Returns true if there is an order in which the shares can be computed.
  bool is_ordered() const { return is_ordered_; }

  // Returns the flows whose rates depend on weights.
  const std::vector<int> &varying() const { return varying_; }

  // Returns true if all flows have the same bottlenecks under these weights of senders. It then writes the varying
  // flows' rates to `rates`, by flow, which must hold the other flows' rates already.
  //
  // The condition is that no link exceeds its capacity, and that each flow gets its demand, or crosses a full link on
  // which no flow gets more for its weight (Bertsekas and Gallager, Data Networks, 6.5.2).
  bool compute_rates(std::span<const double> weights, std::span<double> rates) const;

private:
  struct Range {
    std::size_t begin, end; // in members_
  };
  struct FullLink { // a full link on which shares vary
    double left;    // capacity for the varying flows
    Range others, limited, followers;
  };
  struct LinkWithRoom { // a link that is not full, whose varying flows must not exceed `left`
    double left;
    Range flows;
  };
  struct ShareBound { // a full link: `others` must not get more for their weight than `limited`
    int limited;
    Range others;
  };

  bool append_in_order(int link);
  void mark_varying(int flow);
  void add_constraints();
  int limiting_flow(int flow) const;
  double demand_of(int flow, std::span<const double> rates) const;
  template <typename Which> Range append_members(std::span<const int> flows, Which which);
  template <typename Which> double capacity_left(int link, Which which) const;
  std::span<const int> in(Range range) const {
    return std::span(members_).subspan(range.begin, range.end - range.begin);
  }

  const Shares &shares_;
  std::span<const std::size_t> sender_of_;
  std::vector<char> varies_, states_;
  std::vector<int> varying_, limited_by_demand_, members_;
  std::vector<FullLink> full_links_;
  std::vector<LinkWithRoom> links_with_room_;
  std::vector<ShareBound> share_bounds_;
  bool is_ordered_ = true;
};

} // namespace fluid
