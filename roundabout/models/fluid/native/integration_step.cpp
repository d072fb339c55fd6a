// SPDX-License-Identifier: Apache-2.0
#include "roundabout/models/fluid/native/integration_step.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace fluid {
namespace {

// Limit on the estimated error of a stream's bytes in a step, as a share of its job's bytes of an iteration. The same
// as in tests/fluid/oracle/rate_integrator.py.
constexpr double kTolerance = 1e-10;
constexpr double kMinMs = 1e-6; // the tolerance makes no step shorter than this
// Length of a step over a bend, as a share of the time that an iteration's bytes take at the stream's rate. The error
// of such a step is the square of this share, which is the tolerance.
constexpr double kBend = 1e-5;

// Dormand and Prince's method of order 5 (Hairer, Norsett and Wanner, II.5, Table 5.2). The last row are its weights.
constexpr std::size_t kStages = 7;
constexpr std::array<std::array<double, 6>, kStages> kRows{{
    {},
    {1. / 5},
    {3. / 40, 9. / 40},
    {44. / 45, -56. / 15, 32. / 9},
    {19372. / 6561, -25360. / 2187, 64448. / 6561, -212. / 729},
    {9017. / 3168, -355. / 33, 46732. / 5247, 49. / 176, -5103. / 18656},
    {35. / 384, 0, 500. / 1113, 125. / 192, -2187. / 6784, 11. / 84},
}};
constexpr std::array<double, kStages> kErrors{71. / 57600,      0,         -71. / 16695, 71. / 1920,
                                              -17253. / 339200, 22. / 525, -1. / 40};

} // namespace

void IntegrationStep::start() {
  shares.solve();
  bottlenecks_.emplace(shares, sender_of);
  for (std::size_t i = 0; i < flows.size(); i++) {
    first_rates_.push_back(shares.rate(i));
    every_flow_.push_back(static_cast<int>(i));
    if (first_rates_[i] > 0)
      bend_ms_ = std::min(bend_ms_, kBend * flows[i]->job->iteration_bytes / first_rates_[i]);
  }
  constant_sender_rates_.resize(senders.size());
  for (std::size_t i = 0; i < flows.size(); i++)
    constant_sender_rates_[sender_of[i]] += first_rates_[i];
  for (const int i : bottlenecks_->varying())
    constant_sender_rates_[sender_of[index(i)]] -= first_rates_[index(i)];
  mean_rates_ = first_rates_;
  weights_.resize(senders.size());
  stage_rates_.resize(kStages);
  stage_sender_rates_.resize(kStages);
}

double IntegrationStep::integrate(double ms) {
  const auto worst = integrate(ms, false);
  bends_ = !worst;
  return worst ? *worst : *integrate(ms, true);
}

std::optional<double> IntegrationStep::integrate(double ms, bool all) {
  const std::vector<int> &moving = all ? every_flow_ : bottlenecks_->varying();
  for (std::size_t stage = 0; stage < kStages; stage++) {
    stage_rates_[stage] = first_rates_;
    if (stage > 0) {
      compute_weights(ms, stage);
      if (!compute_rates(stage_rates_[stage], all))
        return {};
    }
    if (all)
      stage_sender_rates_[stage].assign(senders.size(), 0);
    else
      stage_sender_rates_[stage] = constant_sender_rates_;
    for (const int i : moving)
      stage_sender_rates_[stage][sender_of[index(i)]] += stage_rates_[stage][index(i)];
  }
  mean_rates_ = first_rates_;
  double worst = 0;
  for (const int moved : moving) {
    const std::size_t i = index(moved);
    double mean = 0, error = 0;
    for (std::size_t stage = 0; stage < kStages; stage++) {
      mean += stage + 1 < kStages ? kRows.back()[stage] * stage_rates_[stage][i] : 0;
      error += kErrors[stage] * stage_rates_[stage][i];
    }
    mean_rates_[i] = mean;
    worst = std::max(worst, std::abs(ms * error) / (kTolerance * flows[i]->job->iteration_bytes));
  }
  return worst;
}

// Computes the weights of a stage from the bytes sent until then.
void IntegrationStep::compute_weights(double ms, std::size_t stage) {
  for (std::size_t i = 0; i < senders.size(); i++) {
    double sent = 0;
    for (std::size_t earlier = 0; earlier < stage; earlier++)
      sent += kRows[stage][earlier] * stage_sender_rates_[earlier][i];
    weights_[i] = senders[i].job->weight(*senders[i].sent, ms * sent);
  }
}

// Computes the rates under the present weights: for `all` flows, or only while bottlenecks stay the same. Returns false
// if they change.
bool IntegrationStep::compute_rates(std::vector<double> &into, bool all) {
  if (!all)
    return bottlenecks_->compute_rates(weights_, into);
  for (std::size_t i = 0; i < flows.size(); i++)
    shares.set_weight(i, weights_[sender_of[i]]);
  shares.solve();
  for (std::size_t i = 0; i < flows.size(); i++)
    into[i] = shares.rate(i);
  return true;
}

double IntegrationStep::choose_length(double at_most_ms) {
  double may_ms = kInfinity;
  for (const Job *job : jobs)
    may_ms = std::min(may_ms, job->next_step_ms);
  for (double ms = std::min(at_most_ms, may_ms);;) {
    const double worst = integrate(ms);
    const double by = worst > 0 ? 0.9 * std::pow(worst, -0.2) : 5;
    if (worst <= 1 || ms <= kMinMs) {
      // A step that a near event or bend made short must not shorten the steps after it.
      const double next_ms = std::max(ms * std::clamp(by, 0.2, 5.0), ms < may_ms ? may_ms : kMinMs);
      for (Job *job : jobs)
        job->next_step_ms = next_ms;
      return ms;
    }
    if (bends_ && bottlenecks_->is_ordered() && ms > bend_ms_)
      ms = length_before_bend(ms);
    else
      may_ms = ms = std::max(ms * std::clamp(by, 0.1, 0.9), kMinMs);
  }
}

// Returns the length of a step that ends just before a bend, where a stream's bottleneck changes. The search, by
// bisection, is accurate to `bend_ms_`; the next step is that long and crosses the bend.
double IntegrationStep::length_before_bend(double ms) {
  double straight = bend_ms_;
  if (integrate(straight, false))
    while (ms - straight > bend_ms_) {
      const double middle = (straight + ms) / 2;
      (integrate(middle, false) ? straight : ms) = middle;
    }
  return straight;
}

void IntegrationStep::set_mean_rates(double ms) {
  integrate(ms);
  set_mean_rates();
}

void IntegrationStep::set_mean_rates() {
  for (std::size_t i = 0; i < flows.size(); i++)
    flows[i]->rate = mean_rates_[i];
}

} // namespace fluid
