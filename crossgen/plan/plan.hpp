// SPDX-License-Identifier: Apache-2.0
// Turns a load into flows: by the two algorithms of "Characterizing the network requirements of distributed machine
// learning" (2022), appendix A.1, or as checkpoints, incast or KV caches. README.md lists where the algorithms here are
// stricter.
#pragma once

#include "crossgen/common/load_file.hpp"
#include "crossgen/plan/kinds.hpp"
#include "crossgen/plan/sizes.hpp"

#include <functional>
#include <optional>

namespace crossgen {

// Distributions of the gaps between flows' starts.
enum class Gaps {
  kPoissonProcess,     // exponential: arrivals are a Poisson process
  kPoissonDistributed, // whole microseconds from a Poisson distribution, as Algorithm 1 is printed
};

// How the bytes between bursts are determined.
enum class Volumes {
  kDrawn, // as Algorithm 2 is printed: sizes are drawn from the scaled distribution
  kExact, // the same in every period: drawn sizes are scaled to the period's sum
};

struct Burst {
  std::uint64_t width_ns = 1'000'000;
  std::uint64_t period_ns = 10'000'000;
  double height = 3; // times the mean load
  Volumes volumes = Volumes::kDrawn;

  double share() const { return height * static_cast<double>(width_ns) / static_cast<double>(period_ns); }
};

struct PlanSpec {
  Kind kind = Kind::kConsistent;
  double load_gbps = 0;
  std::uint64_t duration_ns = 0;
  std::vector<std::string> destinations;
  std::uint64_t seed = 0;
  Gaps gaps = Gaps::kPoissonProcess;
  std::optional<Burst> burst; // of kConsistent: with it the load is bursts
};

using Emit = std::function<void(const Flow &)>;

// Returns the header of the load file whose flows `plan` makes, without the offered load. Throws native::Failure if the
// load is impossible.
LoadHeader plan_header(const PlanSpec &spec, const Sizes &sizes);

// Plans the load, and calls `emit` with each flow in the order of their starts.
void plan(const PlanSpec &spec, const Sizes &sizes, const Emit &emit);

// Splits `total` into whole numbers of at least 1, in proportion to the weights.
std::vector<std::uint64_t> split(std::uint64_t total, const std::vector<double> &weights);

} // namespace crossgen
