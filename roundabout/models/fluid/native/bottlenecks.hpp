// SPDX-License-Identifier: Apache-2.0
// Max-min shares while each flow is stopped by what stopped it before: of flows whose weights change a little.
#pragma once

#include "roundabout/models/fluid/native/shares.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace fluid {

class Bottlenecks {
public:
  // As `shares` were solved. Flows of one sender (by flow, numbered from 0) have one weight.
  Bottlenecks(const Shares &shares, std::span<const std::size_t> sender_of);

  // Whether there is an order in which shares can be told.
  bool stand() const { return stands_; }

  // Flows whose rates depend on weights.
  const std::vector<int> &varying() const { return varying_; }

  // Whether all flows are still stopped by the same, under these weights of senders; then the varying flows' rates are
  // in `rates`, by flow. The others' must be there already.
  //
  // That is so where no link carries more than it can, and each flow has its wish, or is on a full link on which nobody
  // has more for its weight (Bertsekas and Gallager, Data Networks, 6.5.2).
  bool find(std::span<const double> weights, std::span<double> rates) const;

private:
  struct Range {
    std::size_t begin, end; // in members_
  };
  struct Full {  // a link on which shares vary
    double left; // for flows that vary
    Range others, stopped, followers;
  };
  struct Roomy { // a link that must not be asked for more
    double left;
    Range flows;
  };
  struct Level { // of a link: `others` must not have more for their weight than who is stopped there
    int stopped;
    Range others;
  };

  bool arrange(int link);
  void follow(int flow);
  void note_limits();
  int root(int flow) const;
  double wish(int flow, std::span<const double> rates) const;
  template <typename Which> Range gather(std::span<const int> flows, Which which);
  template <typename Which> double left(int link, Which which) const;
  std::span<const int> in(Range range) const {
    return std::span(members_).subspan(range.begin, range.end - range.begin);
  }

  const Shares &shares_;
  std::span<const std::size_t> sender_of_;
  std::vector<char> varies_, arranged_;
  std::vector<int> varying_, wishing_, members_;
  std::vector<Full> full_;
  std::vector<Roomy> roomy_;
  std::vector<Level> levels_;
  bool stands_ = true;
};

} // namespace fluid
