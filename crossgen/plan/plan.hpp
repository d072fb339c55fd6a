// SPDX-License-Identifier: Apache-2.0
// The two algorithms of "Characterizing the network requirements of distributed machine learning" (2022), appendix
// A.1, that turn a load into flows. README.md says where ours are stricter.
#pragma once

#include "crossgen/common/load_file.hpp"
#include "crossgen/plan/sizes.hpp"

#include <functional>
#include <optional>

namespace crossgen {

// How the gaps between flows are drawn.
enum class Gaps {
  kPoissonProcess,     // exponential: arrivals are a Poisson process
  kPoissonDistributed, // whole microseconds from a Poisson distribution, as Algorithm 1 literally says
};

// The bytes of what lies between bursts.
enum class Volumes {
  kDrawn, // as Algorithm 2 is printed: the distribution of sizes is scaled, and what it draws is sent
  kExact, // the same in every period: what is drawn is scaled to its sum
};

struct Burst {
  std::uint64_t width_ns = 1'000'000;
  std::uint64_t period_ns = 10'000'000;
  double height = 3; // times the mean load
  Volumes volumes = Volumes::kDrawn;

  double share() const { return height * static_cast<double>(width_ns) / static_cast<double>(period_ns); }
};

struct PlanSpec {
  double load_gbps = 0;
  std::uint64_t duration_ns = 0;
  std::vector<std::string> destinations;
  std::uint64_t seed = 0;
  Gaps gaps = Gaps::kPoissonProcess;
  std::optional<Burst> burst; // without it the load is consistent
};

using Emit = std::function<void(const Flow &)>;

// The header of the load file that `plan` fills, but for what is offered. Throws native::Failure if there is no such
// load.
LoadHeader plan_header(const PlanSpec &spec, const Sizes &sizes);

// Calls `emit` with each flow, in the order of their starts.
void plan(const PlanSpec &spec, const Sizes &sizes, const Emit &emit);

// Splits `total` into whole numbers of at least 1, in proportion to the weights.
std::vector<std::uint64_t> split(std::uint64_t total, const std::vector<double> &weights);

} // namespace crossgen
