// SPDX-License-Identifier: Apache-2.0
// Coupled streams whose weights follow from what has been sent, over one step.
#pragma once

#include "roundabout/fluid/native/job.hpp"
#include "roundabout/fluid/native/shares.hpp"

#include <vector>

namespace fluid {

struct Growing {
  double begins = 0, ends = kInfinity;
  std::vector<Flow *> flows;         // in the order of `shares`
  std::vector<std::size_t> tally_of; // its place among `tallies`
  std::vector<Tally *> tallies;
  std::vector<Job *> jobs;
  Shares shares;

  // Takes the longest step, at most so long, that is exact enough; `step_ms` of its jobs becomes what the next may try.
  double step(double at_most_ms);

  // Sets flows' rates to their means over so many ms from where the step began.
  void set_means(double ms);

  // Sets them to those of the step just taken.
  void keep_means();

private:
  // Mean rates over `ms` into `means_`; the estimated error of what flows, over what is allowed.
  double integrate(double ms);
  void rates(const std::vector<double> &sent, std::vector<double> &into);

  std::vector<double> sent_, more_, means_; // by tally; by flow
  std::vector<std::vector<double>> slopes_;
};

} // namespace fluid
