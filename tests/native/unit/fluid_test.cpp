// SPDX-License-Identifier: Apache-2.0
#include "roundabout/models/fluid/native/engine.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace fluid {
namespace {

constexpr double kRate = 5e6;
constexpr std::size_t kHosts = 12, kTors = 4;

// A tree of two levels: hosts' links up and down, then ToRs'.
struct Cluster {
  explicit Cluster(unsigned seed, double congested = 1)
      : Cluster(seed, congested, std::vector(2 * (kHosts + kTors), std::vector<double>{kRate})) {}
  Cluster(unsigned seed, double congested, const std::vector<std::vector<double>> &capacities)
      : engine(capacities, 7.0, congested, 100.0), random(seed) {}

  double any(double least, double most) { return std::uniform_real_distribution(least, most)(random); }
  int any(int least, int most) { return std::uniform_int_distribution(least, most)(random); }

  // Some streams are spread between switches: half of their bytes cross each of these links.
  std::vector<StreamLink> path(std::size_t a, std::size_t b) {
    const std::size_t above_a = kHosts + a % kTors, above_b = kHosts + b % kTors;
    if (a == b)
      return {};
    if (above_a == above_b)
      return {{engine.edge(2 * a), 1}, {engine.edge(2 * b + 1), 1}};
    const double share = any(0, 2) ? 1 : 0.5;
    return {{engine.edge(2 * a), 1},
            {engine.edge(2 * above_a), share},
            {engine.edge(2 * above_b + 1), share},
            {engine.edge(2 * b + 1), 1}};
  }

  // Two phases among some workers: a ring, and a line that passes on.
  Plan plan() {
    Plan plan{};
    plan.workers = any(2, 5);
    plan.weight = any(1, 4);
    plan.priority = any(0, 4) == 0;
    plan.start_ms = engine.now() + any(0.0, 50.0);
    plan.departs_ms = kInfinity;
    plan.iterations = any(1, 30);
    std::vector<std::size_t> hosts;
    Barrier all;
    for (int worker = 0; worker < plan.workers; worker++) {
      hosts.push_back(static_cast<std::size_t>(any(0, kHosts - 1)));
      all.workers.push_back(worker);
    }
    for (const bool passes_on : {false, true}) {
      plan.phases.push_back({any(5.0, 50.0), false, {}, {}});
      Phase sends{any(5.0, 50.0), true, {}, {all}};
      const double size = sends.ms * any(0.3, 1.0) * kRate;
      for (int from = 0; from + passes_on < plan.workers; from++) {
        const int to = (from + 1) % plan.workers;
        const auto ends = path(hosts[static_cast<std::size_t>(from)], hosts[static_cast<std::size_t>(to)]);
        sends.streams.push_back({{from, to, passes_on ? from - 1 : -1, 0, size}, ends});
        sends.barriers[0].awaits.push_back(from);
      }
      plan.phases.push_back(sends);
    }
    return plan;
  }

  Engine engine;
  std::mt19937 random;
};

// The rates that all who flow now would get if it were unknown which are coupled.
void expect_shares_of_all(Engine &engine) {
  const std::vector<const Flow *> flows = engine.active_flows();
  Shares shares;
  std::map<const Edge *, int> links;
  std::map<const Flow *, int> places;
  for (const Flow *flow : flows) {
    const bool follows = flow->feeder && flow->feeder->is_on_links && flow->waiting <= 0 && !flow->builds_backlog;
    const int first = follows ? places.at(flow->feeder) : -1;
    places[flow] = shares.add_flow(flow->demand, flow->job->plan.weight, flow->job->plan.priority, first);
    for (const Hop *hop = flow->hops; hop != flow->hops_end; hop++) {
      const auto [link, is_new] = links.try_emplace(hop->edge, static_cast<int>(shares.links()));
      if (is_new)
        shares.add_link(hop->edge->limit);
      shares.add_hop(link->second, hop->share);
    }
  }
  shares.solve();
  for (std::size_t i = 0; i < flows.size(); i++)
    ASSERT_NEAR(flows[i]->rate, shares.rate(i), 1e-9 * kRate) << "at " << engine.now() << " ms";
}

// Has jobs come and go, and looks at the rates after each event.
void expect_shares_after_events(Cluster &cluster) {
  std::size_t jobs = 0, most = 0;
  for (int event = 0; event < 300; event++) {
    if (cluster.any(0, 9) == 0)
      jobs = cluster.engine.add(cluster.plan()) + 1;
    if (jobs && cluster.any(0, 99) == 0)
      cluster.engine.stop(static_cast<std::size_t>(cluster.any(0, static_cast<int>(jobs) - 1)));
    std::int64_t instants = 1;
    cluster.engine.run(cluster.engine.now() + 10, instants);
    most = std::max(most, cluster.engine.active_flows().size());
    ASSERT_NO_FATAL_FAILURE(expect_shares_of_all(cluster.engine));
  }
  EXPECT_GT(most, 10u);
}

TEST(Fluid, SharesAreThoseOfAFullRecomputationAtEveryEvent) {
  for (unsigned seed = 0; seed < 40; seed++) {
    Cluster cluster(seed, seed % 2 ? 1 : 0.9);
    ASSERT_NO_FATAL_FAILURE(expect_shares_after_events(cluster)) << "seed " << seed;
  }
}

TEST(Fluid, SharesAreThoseOfAFullRecomputationWhereCapacitiesChange) {
  for (unsigned seed = 0; seed < 20; seed++) {
    std::mt19937 random(seed);
    std::vector<std::vector<double>> capacities(2 * (kHosts + kTors), {kRate});
    for (std::size_t edge = 0; edge < capacities.size(); edge += 3)
      for (int step = 0; step < 500; step++)
        capacities[edge].push_back(std::max(std::uniform_real_distribution(-0.3, 1.0)(random), 0.0) * kRate);
    Cluster cluster(seed, seed % 2 ? 1 : 0.9, capacities);
    ASSERT_NO_FATAL_FAILURE(expect_shares_after_events(cluster)) << "seed " << seed;
  }
}

TEST(Fluid, WhatIsSentIsCarriedByEachLinkOnItsWay) {
  Cluster cluster(1);
  Plan plan = cluster.plan();
  plan.start_ms = 30;
  plan.iterations = 7;
  std::map<const Edge *, double> expected;
  for (const Phase &phase : plan.phases)
    for (const Stream &stream : phase.streams)
      for (const StreamLink &link : stream.path)
        expected[link.edge] += 7 * link.share * stream.bytes;
  cluster.engine.add(plan);
  std::int64_t instants = 1'000'000;
  EXPECT_EQ(cluster.engine.run(1e9, instants), std::vector<std::size_t>{0});
  EXPECT_EQ(cluster.engine.job(0).completed(), 7);
  instants = 1;
  cluster.engine.run(cluster.engine.now() + 100, instants);
  ASSERT_FALSE(expected.empty());
  for (std::size_t edge = 0; edge < 2 * (kHosts + kTors); edge++) {
    const std::vector<double> carried = cluster.engine.carried(edge);
    EXPECT_EQ(carried.size(), static_cast<std::size_t>(cluster.engine.now() / 100) + 1);
    EXPECT_TRUE(std::ranges::is_sorted(carried));
    EXPECT_LE(carried[1], 100 * kRate * (1 + 1e-9));
    EXPECT_NEAR(carried.back(), expected[cluster.engine.edge(edge)], 1e-3);
  }
}

TEST(Shares, AHigherPriorityIsUnaffectedAndWhatPassesOnIsNoFasterThanWhatComes) {
  Shares shares;
  const int link = shares.add_link(10), wide = shares.add_link(100);
  shares.add_flow(4, 1, 1, -1);
  shares.add_hop(link);
  const int first = shares.add_flow(kInfinity, 1, 0, -1);
  shares.add_hop(link);
  shares.add_flow(kInfinity, 1, 0, first);
  shares.add_hop(wide);
  shares.add_flow(kInfinity, 2, 0, -1);
  shares.add_hop(link);
  shares.solve();
  EXPECT_DOUBLE_EQ(shares.rate(0), 4);
  EXPECT_DOUBLE_EQ(shares.rate(1), 2);
  EXPECT_DOUBLE_EQ(shares.rate(2), 2);
  EXPECT_DOUBLE_EQ(shares.rate(3), 4);
}

} // namespace
} // namespace fluid
