// SPDX-License-Identifier: Apache-2.0
#include "roundabout/fluid/native/growing.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace fluid {
namespace {

// The estimated error of what a stream sends in a step, over its job's bytes of an iteration:
// roundabout/fluid/growing.py.
constexpr double kTolerance = 1e-10;
constexpr double kLeastMs = 1e-6; // no step is shorter because of it

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

void Growing::rates(const std::vector<double> &sent, std::vector<double> &into) {
  sent_.assign(tallies.size(), 0);
  for (std::size_t i = 0; i < flows.size(); i++)
    sent_[tally_of[i]] += sent[i];
  for (std::size_t i = 0; i < flows.size(); i++)
    shares.set_weight(i, flows[i]->job->weight(*flows[i]->tally, sent_[tally_of[i]]));
  shares.solve();
  for (std::size_t i = 0; i < flows.size(); i++)
    into[i] = shares.rate(i);
}

double Growing::integrate(double ms) {
  const std::size_t count = flows.size();
  slopes_.resize(kStages);
  more_.assign(count, 0);
  for (std::size_t stage = 0; stage < kStages; stage++) {
    for (std::size_t i = 0; i < count; i++) {
      double sum = 0;
      for (std::size_t earlier = 0; earlier < stage; earlier++)
        sum += kRows[stage][earlier] * slopes_[earlier][i];
      more_[i] = ms * sum;
    }
    slopes_[stage].resize(count);
    rates(more_, slopes_[stage]);
  }
  means_.resize(count);
  double worst = 0;
  for (std::size_t i = 0; i < count; i++) {
    means_[i] = more_[i] / ms; // the last row's
    double error = 0;
    for (std::size_t stage = 0; stage < kStages; stage++)
      error += kErrors[stage] * slopes_[stage][i];
    worst = std::max(worst, std::abs(ms * error) / (kTolerance * flows[i]->job->bytes));
  }
  return worst;
}

double Growing::step(double at_most_ms) {
  double ms = at_most_ms;
  for (const Job *job : jobs)
    ms = std::min(ms, job->step_ms);
  for (;;) {
    const double worst = integrate(ms);
    const double by = worst > 0 ? 0.9 * std::pow(worst, -0.2) : 5;
    if (worst <= 1 || ms <= kLeastMs) {
      for (Job *job : jobs)
        job->step_ms = std::max(ms * std::clamp(by, 0.2, 5.0), kLeastMs);
      return ms;
    }
    ms = std::max(ms * std::clamp(by, 0.1, 0.9), kLeastMs);
  }
}

void Growing::set_means(double ms) {
  integrate(ms);
  keep_means();
}

void Growing::keep_means() {
  for (std::size_t i = 0; i < flows.size(); i++)
    flows[i]->rate = means_[i];
}

} // namespace fluid
