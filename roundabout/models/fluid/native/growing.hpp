// SPDX-License-Identifier: Apache-2.0
// Coupled streams whose weights follow from what has been sent, over one step.
#pragma once

#include "roundabout/models/fluid/native/bottlenecks.hpp"
#include "roundabout/models/fluid/native/job.hpp"
#include "roundabout/models/fluid/native/shares.hpp"

#include <optional>
#include <vector>

namespace fluid {

struct Growing {
  struct Sender { // of one weight
    Job *job;
    const Tally *tally;
    bool operator==(const Sender &) const = default;
  };

  double begins = 0, ends = kInfinity;
  std::vector<Flow *> flows;          // in the order of `shares`
  std::vector<std::size_t> sender_of; // its place among `senders`
  std::vector<Sender> senders;
  std::vector<Job *> jobs;
  Shares shares;

  // Finds the rates as the step begins, once all of the above is there.
  void begin();

  // Takes the longest step, at most so long, that is exact enough; `step_ms` of its jobs becomes what the next may try.
  double step(double at_most_ms);

  // Sets flows' rates to their means over so many ms from where the step began.
  void set_means(double ms);

  // Sets them to those of the step just taken.
  void keep_means();

private:
  // Mean rates over `ms` into `means_`; the estimated error of what flows, over what is allowed.
  double integrate(double ms);
  // The same of all flows, or as long as bottlenecks stay; nothing where they do not.
  std::optional<double> integrate(double ms, bool all);
  double before_bend(double ms);
  void weigh(double ms, std::size_t stage);
  bool find_rates(std::vector<double> &into, bool all);

  std::optional<Bottlenecks> bottlenecks_;
  std::vector<int> all_;
  double bend_ms_ = kInfinity;
  bool bends_ = false;                      // in what was integrated last
  std::vector<double> begin_, means_;       // by flow
  std::vector<double> weights_, constant_;  // by sender: of those who do not vary, bytes/ms
  std::vector<std::vector<double>> slopes_; // by stage and flow
  std::vector<std::vector<double>> sent_;   // by stage and sender: bytes/ms
};

} // namespace fluid
