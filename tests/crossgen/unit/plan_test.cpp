// SPDX-License-Identifier: Apache-2.0
#include "crossgen/plan/plan.hpp"

#include "native/errors.hpp"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <numeric>

namespace crossgen {
namespace {

constexpr std::uint64_t kMs = 1'000'000;

std::vector<Flow> planned(const PlanSpec &spec, double scale = 1, Between between = Between::kLinear) {
  const Sizes sizes = Sizes::web_search(between).scaled(scale);
  plan_header(spec, sizes);
  std::vector<Flow> flows;
  plan(spec, sizes, [&flows](const Flow &flow) { flows.push_back(flow); });
  return flows;
}

PlanSpec spec(double load_gbps, std::uint64_t duration_ns) {
  PlanSpec made;
  made.load_gbps = load_gbps;
  made.duration_ns = duration_ns;
  made.destinations = {"sink"};
  return made;
}

std::string refusal(const PlanSpec &wrong) {
  try {
    planned(wrong);
  } catch (const native::Failure &error) {
    return error.what();
  }
  return "taken";
}

// The squared coefficient of variation of the gaps.
double gap_variation(const std::vector<Flow> &flows) {
  double sum = 0, squares = 0;
  for (std::size_t i = 1; i < flows.size(); i++) {
    const auto gap = static_cast<double>(flows[i].start_ns - flows[i - 1].start_ns);
    sum += gap;
    squares += gap * gap;
  }
  const double gaps = static_cast<double>(flows.size() - 1);
  return squares / gaps / (sum / gaps * sum / gaps) - 1;
}

TEST(Plan, HoldsAsManyFlowsAsTheLoadHasMeanSizes) {
  EXPECT_EQ(planned(spec(10, 10'000 * kMs)).size(), static_cast<std::size_t>(12.5e9 / 1'711'250));
}

TEST(Plan, GapsOfAPoissonProcessAreExponential) { EXPECT_NEAR(gap_variation(planned(spec(10, 60'000 * kMs))), 1, .05); }

TEST(Plan, GapsFromAPoissonDistributionVaryByTheRootOfTheirMicroseconds) {
  PlanSpec literal = spec(10, 60'000 * kMs);
  literal.gaps = Gaps::kPoissonDistributed;
  EXPECT_NEAR(gap_variation(planned(literal)), 1 / 1369., 1e-4); // a flow each 1369 us
}

TEST(Plan, IsTheSameForTheSameSeed) {
  PlanSpec one = spec(1, 1'000 * kMs);
  const auto flows = planned(one);
  EXPECT_EQ(planned(one), flows);
  one.seed = 1;
  EXPECT_NE(planned(one), flows);
}

TEST(Plan, SizesScaleAndArrivalsStay) {
  const auto paper = planned(spec(10, 1'000 * kMs));
  const auto lab = planned(spec(.1, 1'000 * kMs), .01);
  ASSERT_EQ(lab.size(), paper.size());
  for (std::size_t i = 0; i < lab.size(); i++) {
    EXPECT_EQ(lab[i].start_ns, paper[i].start_ns);
    EXPECT_NEAR(static_cast<double>(lab[i].bytes), std::max(1., static_cast<double>(paper[i].bytes) / 100), 1);
  }
}

// What the quiet part of each period holds.
std::vector<double> quiet_bytes(const PlanSpec &spec, Between between) {
  std::vector<double> bytes(spec.duration_ns / spec.burst->period_ns);
  for (const Flow &flow : planned(spec, 1, between))
    if (flow.flow_class == 1)
      bytes[flow.start_ns / spec.burst->period_ns] += static_cast<double>(flow.bytes);
  return bytes;
}

// Salamy's example: bursts of 2.25 MB, and 5.25 MB between them.
TEST(Plan, BurstsTakeTheirShareExactlyAndWhatIsBetweenThemIsDrawn) {
  PlanSpec bursts = spec(6, 1'000 * kMs);
  bursts.burst = Burst{};
  std::uint64_t burst_bytes = 0, quiet_flows = 0;
  for (const Flow &flow : planned(bursts, 1, Between::kSteps)) {
    if (flow.flow_class == 0)
      burst_bytes += flow.bytes;
    else
      quiet_flows++;
    EXPECT_EQ(flow.flow_class == 0, flow.start_ns % (10 * kMs) < kMs);
  }
  EXPECT_EQ(burst_bytes, 100 * 2'250'000u);
  EXPECT_EQ(quiet_flows, 100 * 8u);
}

TEST(Plan, DrawnVolumesAreThoseOfIndependentDrawsOfTheScaledDistribution) {
  const double deviation = 5.575e6; // the standard deviation of web-search's steps
  for (const double load_gbps : {6., 20., 24.}) {
    PlanSpec bursts = spec(load_gbps, 40'000 * kMs);
    bursts.burst = Burst{};
    const std::vector<double> volumes = quiet_bytes(bursts, Between::kSteps);
    const double requested = load_gbps * 1e7 / 8 * .7;
    const double flows = std::max(8., std::floor(requested / 2'434'900));
    const double scale = flows > 8 ? 1 : std::min(1., requested / 8 / 2'434'900);
    double sum = 0, squares = 0;
    for (const double volume : volumes) {
      sum += volume;
      squares += volume * volume;
    }
    const auto periods = static_cast<double>(volumes.size());
    const double mean = sum / periods, spread = std::sqrt(squares / periods - mean * mean);
    EXPECT_NEAR(mean, flows * scale * 2'434'900, 4 * spread / std::sqrt(periods)) << load_gbps;
    EXPECT_NEAR(spread / (scale * deviation * std::sqrt(flows)), 1, .06) << load_gbps;
  }
}

TEST(Plan, ExpectsWhatTheFloorOfItsAlgorithmLeaves) {
  const auto expected = [](double load_gbps, Between between, std::optional<Volumes> volumes) {
    PlanSpec requested = spec(load_gbps, 1'000 * kMs);
    if (volumes)
      requested.burst = Burst{.volumes = *volumes};
    return plan_header(requested, Sizes::web_search(between)).plan["expected_gbps"].get<double>();
  };
  // Eight flows that are scaled down to their share lose nothing; as many as fit into it do.
  EXPECT_DOUBLE_EQ(expected(20, Between::kSteps, Volumes::kDrawn), 20);
  EXPECT_DOUBLE_EQ(expected(20, Between::kLinear, Volumes::kDrawn), 6 + 10 * 1'711'250 * 8 / 1e7);
  EXPECT_DOUBLE_EQ(expected(24, Between::kSteps, Volumes::kDrawn), 7.2 + 8 * 2'434'900 * 8 / 1e7);
  EXPECT_DOUBLE_EQ(expected(24, Between::kSteps, Volumes::kExact), 24);
  EXPECT_DOUBLE_EQ(expected(10, Between::kSteps, std::nullopt), std::floor(1.25e9 / 2'434'900) * 2'434'900 * 8 / 1e9);
}

TEST(Plan, ExactVolumesAreExact) {
  PlanSpec bursts = spec(6, 100 * kMs); // Salamy's example: 7.5 MB a period
  bursts.burst = Burst{.volumes = Volumes::kExact};
  const auto flows = planned(bursts);
  for (std::uint64_t period = 0; period < 10; period++) {
    std::vector<Flow> burst, quiet;
    for (const Flow &flow : flows)
      if (flow.start_ns / (10 * kMs) == period)
        (flow.flow_class == 0 ? burst : quiet).push_back(flow);
    ASSERT_EQ(burst.size(), 2u);
    EXPECT_EQ(burst[0].start_ns, period * 10 * kMs);
    EXPECT_LT(burst[1].start_ns, period * 10 * kMs + kMs);
    EXPECT_EQ(burst[0].bytes + burst[1].bytes, 2'250'000u);
    EXPECT_EQ(quiet.size(), 8u);
    std::uint64_t quiet_bytes = 0;
    for (const Flow &flow : quiet) {
      EXPECT_GE(flow.start_ns, period * 10 * kMs + kMs);
      quiet_bytes += flow.bytes;
    }
    EXPECT_EQ(quiet_bytes, 5'250'000u);
  }
}

TEST(Plan, ExactVolumesLeaveBeforeTheNextBurst) {
  PlanSpec bursts = spec(6, 10'000 * kMs);
  bursts.burst = Burst{.volumes = Volumes::kExact};
  double free_ns = 0; // when a link of the burst's rate has sent all so far
  for (const Flow &flow : planned(bursts)) {
    if (flow.start_ns % (10 * kMs) == 0) {
      EXPECT_LE(free_ns, static_cast<double>(flow.start_ns) + 100); // starts are whole nanoseconds
    }
    free_ns = std::max(free_ns, static_cast<double>(flow.start_ns)) + static_cast<double>(flow.bytes) * 8 / 18;
  }
}

// Three destinations share 10 bytes. At 8 bit/s the load carries a byte a second.
TEST(Plan, ACheckpointIsDividedExactlyAmongAllDestinations) {
  PlanSpec checkpoints = spec(8e-9, 25'000 * kMs);
  checkpoints.kind = Kind::kCheckpoint;
  checkpoints.destinations = {"a", "b", "c"};
  const Sizes sizes = unit_sizes(Kind::kCheckpoint, 10);
  EXPECT_DOUBLE_EQ(plan_header(checkpoints, sizes).plan["checkpoint_period_ns"].get<double>(), 1e10);
  std::vector<Flow> flows;
  plan(checkpoints, sizes, [&flows](const Flow &flow) { flows.push_back(flow); });
  ASSERT_EQ(flows.size(), 6u);
  EXPECT_EQ(flows[0].bytes + flows[1].bytes + flows[2].bytes, 10u);
  EXPECT_EQ(flows[0].start_ns, flows[2].start_ns);
  EXPECT_NEAR(static_cast<double>(flows[3].start_ns - flows[0].start_ns), 1e10, 1);
}

TEST(Plan, LoadsOfWholeUnitsHoldAllOfThem) {
  for (const double scale : {1., .01}) { // a hundredth of both has roundings of its own
    PlanSpec blocks = spec(3 * scale, 1'000 * kMs);
    blocks.kind = Kind::kIncast;
    std::size_t flows = 0;
    plan(blocks, unit_sizes(Kind::kIncast, 375'000 * scale), [&flows](const Flow &) { flows++; });
    EXPECT_EQ(flows, 1'000u);
  }
}

TEST(Plan, WhatCannotBeIsRefused) {
  EXPECT_EQ(refusal(spec(.001, kMs)),
            "expected a load that holds at least one flow of the mean size, 1711250. bytes, found 125. bytes in all");
  PlanSpec bursts = spec(6, 15 * kMs);
  bursts.burst = Burst{};
  EXPECT_EQ(refusal(bursts),
            "expected a duration that is a multiple of the burst period, 10000000 ns, found 15000000 ns");
  bursts.burst->height = 12;
  EXPECT_EQ(refusal(bursts),
            "expected a burst's width times its height to be less than its period, found 1.2 times it");
  bursts.burst->width_ns = 20 * kMs;
  EXPECT_EQ(refusal(bursts), "expected a burst shorter than its period, 10000000 ns, found 20000000 ns");
}

TEST(Split, IsExactAndLeavesNobodyWithoutAByte) {
  const auto parts = split(1'000, {1e-9, 1, 2, 1e-9});
  EXPECT_EQ(std::accumulate(parts.begin(), parts.end(), std::uint64_t{0}), 1'000u);
  EXPECT_GE(*std::min_element(parts.begin(), parts.end()), 1u);
  EXPECT_NEAR(static_cast<double>(parts[2]) / static_cast<double>(parts[1]), 2, .02);
  EXPECT_EQ(split(3, {5, 5, 5}), (std::vector<std::uint64_t>{1, 1, 1}));
}

} // namespace
} // namespace crossgen
