// SPDX-License-Identifier: Apache-2.0
// Coupled streams whose weights depend on the bytes sent, over one integration step.
#pragma once

#include "roundabout/models/fluid/native/bottlenecks.hpp"
#include "roundabout/models/fluid/native/job.hpp"
#include "roundabout/models/fluid/native/shares.hpp"

#include <optional>
#include <vector>

namespace fluid {

struct IntegrationStep {
  struct Sender { // streams with one weight
    Job *job;
    const SentBytes *sent;
    bool operator==(const Sender &) const = default;
  };

  double begins_ms = 0, ends_ms = kInfinity;
  std::vector<Flow *> flows;          // in the order of `shares`
  std::vector<std::size_t> sender_of; // index in `senders`, by flow
  std::vector<Sender> senders;
  std::vector<Job *> jobs;
  Shares shares;

  // Computes the rates at the step's begin; call it after all fields above are set.
  void start();

  // Takes the longest step up to `at_most_ms` that is accurate enough, and returns its length. It sets `next_step_ms`
  // of its jobs to the length that the next step may try.
  double choose_length(double at_most_ms);

  // Sets the flows' rates to their means over the first `ms` of the step.
  void set_mean_rates(double ms);

  // Sets the flows' rates to their means over the whole last step.
  void set_mean_rates();

private:
  // Writes mean rates over `ms` to `mean_rates_`, and returns the estimated error of the sent bytes over the allowed
  // one.
  double integrate(double ms);
  // Does the same for `all` flows, or only while bottlenecks stay the same; returns none if they change.
  std::optional<double> integrate(double ms, bool all);
  double length_before_bend(double ms);
  void compute_weights(double ms, std::size_t stage);
  bool compute_rates(std::vector<double> &into, bool all);

  std::optional<Bottlenecks> bottlenecks_;
  std::vector<int> every_flow_;
  double bend_ms_ = kInfinity;
  bool bends_ = false;                                  // true if the last integration crossed a bend
  std::vector<double> first_rates_, mean_rates_;        // by flow
  std::vector<double> weights_, constant_sender_rates_; // by sender: rates that do not vary, bytes/ms
  std::vector<std::vector<double>> stage_rates_;        // by stage and flow
  std::vector<std::vector<double>> stage_sender_rates_; // by stage and sender: bytes/ms
};

} // namespace fluid
