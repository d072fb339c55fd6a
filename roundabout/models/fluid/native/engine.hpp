// SPDX-License-Identifier: Apache-2.0
// The events of the flow-level model, each computed for the affected streams only:
// docs/explanation/flow-level-engine.md.
#pragma once

#include "roundabout/models/fluid/native/edge.hpp"
#include "roundabout/models/fluid/native/integration_step.hpp"
#include "roundabout/models/fluid/native/job.hpp"
#include "roundabout/models/fluid/native/shares.hpp"
#include "roundabout/models/fluid/native/spine_groups.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace fluid {

class Engine {
public:
  // `capacities` has the capacity of each direction of a link, bytes/ms: one value, or one for each step of `step_ms`,
  // of which the last holds from then on. `congested` is the share of the capacity that remains while the demand of
  // several streams exceeds it. The carried bytes are recorded every `sample_ms`; never if it is 0.
  Engine(const std::vector<std::vector<double>> &capacities, double step_ms, double congested, double sample_ms);

  // Adds a job whose streams' paths are edges of this engine, and returns its number.
  std::size_t add(Plan plan);
  void stop(std::size_t job);
  void replace(std::size_t job, std::vector<Phase> phases) { jobs_[job]->replace(std::move(phases)); }

  // Changes the capacity of a direction of a link, bytes/ms, from now on.
  void set_capacity(std::size_t edge, double bytes_per_ms);
  // Gives the streams of all phases of a job other paths from now on, in order.
  void reroute(std::size_t job, std::vector<std::vector<StreamLink>> paths);

  // Chooses the paths of all streams from now on, which must go up and down again.
  void balance(SpineGroups groups);

  // Advances to `until_ms`, or to the first instant at which jobs end, and returns these jobs. It stops after
  // `instants` at the latest, which it reduces by those used.
  std::vector<std::size_t> run(double until_ms, std::int64_t &instants);

  double now() const { return now_; }
  const Job &job(std::size_t number) const { return *jobs_[number]; }
  Edge *edge(std::size_t number) { return &edges_[number]; }

  // Returns the bytes that a direction has carried until 0, `sample_ms`, 2 `sample_ms` and so on until now.
  std::vector<double> carried(std::size_t edge);

  // Returns the streams that are sending now.
  std::vector<const Flow *> active_flows();

private:
  void process_instant();
  void process_change(); // between two runs; jobs that end at this instant are returned by the next run
  void change_capacities();
  void change_capacity(Edge &edge, double bytes_per_ms);
  void move_streams();
  void update_job(Job &job);
  void end_step(const std::shared_ptr<IntegrationStep> &step);
  void update_demand(Flow &flow);
  void remove_from_links(Flow &flow);
  void set_demand(Flow &flow, double demand, double bound, bool is_changed);
  void update_edge(Edge &edge, bool streams);
  double congested_limit(const Edge &edge) const;
  std::int64_t to_units(double bytes_per_ms) const;
  void mark_dirty(Flow &flow);

  void recompute_rates();
  void collect_coupled();
  void add_streams_of(Edge &edge);
  void add_coupled(Flow &flow);
  void solve_coupled();
  int add_to_shares(Flow &flow, Shares &shares);
  void begin_backlog(Flow &flow);
  bool has_growing_weights() const;
  bool begin_steps();
  void begin_step(const std::vector<Flow *> &coupled);

  void record_carried(Job &job);
  void reposition(Job &job);

  // A direction of a link whose capacity changes in steps.
  struct SteppedCapacity {
    Edge *edge;
    std::vector<double> capacities;
  };

  std::vector<Edge> edges_;
  std::vector<SteppedCapacity> stepped_capacities_;
  bool capacities_change_ = false;           // in steps, or by `set_capacity`
  std::vector<std::size_t> ended_;           // jobs that ended between two runs
  std::vector<std::vector<double>> carried_; // bytes, by edge, in each sample's time
  std::vector<std::unique_ptr<Job>> jobs_;
  std::vector<Job *> heap_; // a binary heap with the earliest event first
  double congested_, sample_ms_, units_per_rate_;
  double now_ = 0, step_ms_, changes_ms_ = kInfinity; // changes_ms_: the next change of capacities
  std::size_t capacity_steps_ = 1;
  std::optional<SpineGroups> spine_groups_;
  double moves_ms_ = kInfinity; // the next moves of streams to other spines
  std::uint64_t instant_ = 0, set_number_ = 0;

  // State of the present instant: jobs advanced to now, and flows and edges whose rates must be computed.
  std::vector<Job *> updated_, to_update_;
  std::vector<Flow *> dirty_flows_;
  std::vector<Edge *> dirty_edges_;
  std::vector<std::pair<std::uint64_t, std::vector<Flow *>>> growing_sets_;

  // Scratch for one set of coupled flows.
  std::vector<Flow *> coupled_;
  Shares shares_;
};

} // namespace fluid
