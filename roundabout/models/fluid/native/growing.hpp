// SPDX-License-Identifier: Apache-2.0
// Coupled streams whose weights depend on the bytes sent, over one integration step.
#pragma once

#include "roundabout/models/fluid/native/bottlenecks.hpp"
#include "roundabout/models/fluid/native/job.hpp"
#include "roundabout/models/fluid/native/shares.hpp"

#include <optional>
#include <vector>

namespace fluid {

struct Growing {
  struct Sender { // streams with one weight
    Job *job;
    const Tally *tally;
    bool operator==(const Sender &) const = default;
  };

  double begins = 0, ends = kInfinity;
  std::vector<Flow *> flows;          // in the order of `shares`
  std::vector<std::size_t> sender_of; // index in `senders`, by flow
  std::vector<Sender> senders;
  std::vector<Job *> jobs;
  Shares shares;

  // Computes the rates at the step's begin; call it after all fields above are set.
  void begin();

  // Takes the longest step up to `at_most_ms` that is accurate enough, and returns its length. It sets `step_ms` of its
  // jobs to the length that the next step may try.
  double step(double at_most_ms);

  // Sets the flows' rates to their means over the first `ms` of the step.
  void set_means(double ms);

  // Sets the flows' rates to their means over the whole last step.
  void keep_means();

private:
  // Writes mean rates over `ms` to `means_`, and returns the estimated error of the sent bytes over the allowed one.
  double integrate(double ms);
  // Does the same for `all` flows, or only while bottlenecks stay the same; returns none if they change.
  std::optional<double> integrate(double ms, bool all);
  double before_bend(double ms);
  void weigh(double ms, std::size_t stage);
  bool find_rates(std::vector<double> &into, bool all);

  std::optional<Bottlenecks> bottlenecks_;
  std::vector<int> all_;
  double bend_ms_ = kInfinity;
  bool bends_ = false;                      // true if the last integration crossed a bend
  std::vector<double> begin_, means_;       // by flow
  std::vector<double> weights_, constant_;  // by sender: rates that do not vary, bytes/ms
  std::vector<std::vector<double>> slopes_; // by stage and flow
  std::vector<std::vector<double>> sent_;   // by stage and sender: bytes/ms
};

} // namespace fluid
