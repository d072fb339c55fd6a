// SPDX-License-Identifier: Apache-2.0
// The fluid model's events, each at the cost of those whom it concerns: docs/explanation/flow-level-engine.md.
#pragma once

#include "roundabout/models/fluid/native/edge.hpp"
#include "roundabout/models/fluid/native/growing.hpp"
#include "roundabout/models/fluid/native/job.hpp"
#include "roundabout/models/fluid/native/shares.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace fluid {

class Engine {
public:
  // Links' directions by what they carry, bytes/ms: one figure, or one a step of `step_ms`, the last one without end;
  // and the share of it while several streams ask for more. Every how many ms it is noted what they have carried, 0 for
  // never.
  Engine(const std::vector<std::vector<double>> &capacities, double step_ms, double congested, double sample_ms);

  // Returns the job's number. Its streams' paths name edges of this engine.
  std::size_t add(Plan plan);
  void stop(std::size_t job);

  // Goes on until then, or until the first instant at which jobs end, and says which; or for so many `instants`, of
  // which those that are left stay.
  std::vector<std::size_t> run(double until_ms, std::int64_t &instants);

  double now() const { return now_; }
  const Job &job(std::size_t number) const { return *jobs_[number]; }
  Edge *edge(std::size_t number) { return &edges_[number]; }

  // Bytes that a direction has carried until 0, one sample's time, two, ..., and now at most.
  std::vector<double> carried(std::size_t edge);

  // The streams that flow now.
  std::vector<const Flow *> live();

private:
  void instant();
  void take_step();
  void touch(Job &job);
  void cut(const std::shared_ptr<Growing> &growing);
  void refresh(Flow &flow);
  void leave(Flow &flow);
  void ask(Flow &flow, double wanted, double bound, bool news);
  void change(Edge &edge, bool streams);
  double limit(const Edge &edge) const;
  std::int64_t units(double bytes_per_ms) const;
  void mark(Flow &flow);

  void share();
  void couple();
  void expand(Edge &edge);
  void visit(Flow &flow);
  void solve();
  int describe(Flow &flow, Shares &shares);
  void lag(Flow &flow);
  bool grows() const;
  bool grow_all();
  void grow(const std::vector<Flow *> &coupled);

  void note(Job &job);
  void push(Job &job);

  // A direction of a link whose capacity changes.
  struct Stepping {
    Edge *edge;
    std::vector<double> capacities;
  };

  std::vector<Edge> edges_;
  std::vector<Stepping> stepping_;
  std::vector<std::vector<double>> carried_; // bytes, by edge, in each sample's time
  std::vector<std::unique_ptr<Job>> jobs_;
  std::vector<Job *> heap_; // by the key, the least first
  double congested_, sample_ms_, units_per_rate_;
  double now_ = 0, step_ms_, changes_ms_ = kInfinity; // when capacities do next
  std::size_t steps_ = 1;
  std::uint64_t instant_ = 0, coupling_ = 0;

  // Of an instant: whose state is as of now, and whose rates are still to be found.
  std::vector<Job *> touched_, to_touch_;
  std::vector<Flow *> dirty_flows_;
  std::vector<Edge *> dirty_edges_;
  std::vector<std::pair<std::uint64_t, std::vector<Flow *>>> to_grow_;

  // Of one coupled set.
  std::vector<Flow *> coupled_;
  Shares shares_;
};

} // namespace fluid
