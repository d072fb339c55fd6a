// SPDX-License-Identifier: Apache-2.0
// A job that advances through its phases.
#pragma once

#include "roundabout/models/fluid/native/c_api.h"
#include "roundabout/models/fluid/native/numbers.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <memory>
#include <vector>

namespace fluid {

inline constexpr double kEqualMs = 1e-7; // more than what rounds off after days: no event may come between two instants

struct Edge;
struct Flow;
class Job;
struct IntegrationStep;

// --- what a job is: roundabout/models/fluid/jobs.py ------------------------------------------------------------------

// A link of a stream's path, and the share of the stream's bytes that it carries.
struct StreamLink {
  Edge *edge;
  double share;
};

struct Stream : fluid_stream {
  std::vector<StreamLink> path{};
};

struct Barrier {
  std::vector<int> workers, awaits;
};

struct Phase {
  double ms; // of computing, or of sending alone
  bool sends;
  std::vector<Stream> streams{};
  std::vector<Barrier> barriers{};
};

struct Plan : fluid_job {
  std::vector<double> stretches{1.0};
  std::vector<Phase> phases{};

  double iteration_bytes() const;
  // Returns the factor of the weight once this share of an iteration's bytes is sent.
  double factor_at(double share) const;
  // Returns by how long the timetable delays an iteration that could begin at this instant.
  double delay_ms(double at_ms) const;
};

// --- the state of a job ----------------------------------------------------------------------------------------------

// A stream's entry in the list of streams of one direction of a link.
struct Hop {
  Flow *flow = nullptr;
  Edge *edge = nullptr;
  double share = 1;                              // of the stream's bytes, that cross this link
  Hop *next = nullptr, **pointer_here = nullptr; // the next hop on the link; the pointer to this hop
};

// The bytes that a job has sent in one iteration, which determine its weight.
struct SentBytes {
  std::int64_t iteration = 0;
  double bytes = 0;
};

// The unsent part of a stream in the current phase.
struct Flow {
  Job *job = nullptr;
  SentBytes *sent = nullptr;
  Flow *feeder = nullptr, *first_follower = nullptr, *next_follower = nullptr;
  Hop *hops = nullptr, *hops_end = nullptr;
  double pace = 0, rate = 0;          // bytes/ms at which data appear, and leave
  double unproduced = 0, waiting = 0; // bytes that have not appeared, and that wait to leave
  double demand = 0, bound = 0;       // bytes/ms: the demanded rate; the rate's upper limit, by demand and by links
  double path_capacity = kInfinity;   // the present capacity of its narrowest link
  std::int64_t bound_units = 0;       // the bound in units, as added to its links
  std::uint64_t set_number = 0;       // number of the last set of coupled streams
  int set_index = -1;                 // index in this set
  std::uint64_t hash = 0;             // picks the spine (SpineGroups)
  bool has_begun = false, is_on_links = false; // begun by its sender; in the lists of its links
  bool is_dirty = false;                       // the rate must be computed anew
  bool moves = false;                          // takes other links from now on
  bool builds_backlog = false;                 // the rate is less than the inflow, so a backlog grows
  bool sent_only_inflow = false;               // sent only what its feeder delivered, at the last update

  bool is_done() const { return waiting <= 0 && (feeder ? feeder->is_done() : unproduced <= 0); }
  bool is_active() const { return has_begun && !is_done(); }
  double inflow() const { return feeder ? feeder->rate : unproduced > 0 && has_begun ? pace : 0; }
  bool is_overdrawn() const { return waiting <= 0 && rate > inflow() * (1 + 1e-9); }
  double produced_ms() const { return !feeder && unproduced > 0 && has_begun ? unproduced / pace : kInfinity; }
  double drained_ms() const;
  double narrowest_capacity() const;
  double next_ms() const { return std::min(produced_ms(), drained_ms()); }
  void advance(double ms);
};

// A phase of one iteration under way.
struct ActivePhase {
  ActivePhase(Job &job, const Phase &phase);
  void lay_paths(); // of its streams, which are on no link
  void begin(std::int64_t iteration, SentBytes *sent);
  void enter(int worker);
  bool is_done(const Barrier &barrier) const;

  const Phase &phase;
  std::int64_t iteration = 0;
  std::vector<Flow> flows;
  std::vector<Hop> hops;
  std::vector<char> entered, is_released; // by worker; by barrier
  std::size_t unreleased = 0;             // number of barriers that are not released
  bool is_stale = false;                  // of replaced phases, so it is not used again
};

struct Worker {
  double until_ms; // when the phase of computing or the delay ends; infinite in a phase of streams
  fluid_iteration iteration;
  int phase = -1;                            // -1 while the timetable delays the iteration
  std::vector<fluid_iteration> iterations{}; // completed ones

  std::int64_t completed() const { return std::ssize(iterations); }
};

class Job {
public:
  Job(Plan plan, std::size_t number, double now);

  Plan plan;
  const double iteration_bytes;
  const std::size_t number;

  double weight(const SentBytes &sent, double more = 0) const;
  double next_ms() const; // the next event, except for the ends of integration steps
  void advance(double now);
  void enter_next_phases(double now);
  void depart(double now) { departs_ms_ = now; }
  // Replaces the phases, as many as before, from the next phase on. All workers of the job must move together.
  void replace(std::vector<Phase> phases) { next_phases_ = std::move(phases); }
  // Replaces the paths of the streams of all phases, in order. None of them may be on a link.
  void reroute(std::vector<std::vector<StreamLink>> paths);

  bool ended() const { return ended_; }
  std::int64_t completed() const { return completed_; }
  const std::vector<Worker> &workers() const { return workers_; }
  double advanced_to() const { return advanced_to_; }

  template <typename Action> void for_each_flow(Action action) {
    for (ActivePhase *active : active_phases_)
      for (Flow &flow : active->flows)
        action(flow);
  }

  std::vector<ActivePhase *> ended_phases; // ended phases whose streams may still be in the lists of links
  void reuse_ended_phases();

  std::vector<std::shared_ptr<IntegrationStep>> steps; // integration steps that the job takes part in
  double next_step_ms = kInfinity;                     // length to try for the next integration step
  double next_event_ms = 0;                            // the order in the engine's heap
  std::size_t heap_place = 0;
  std::uint64_t last_instant = 0; // number of the instant of the last update

private:
  void adopt_next_phases();
  void enter_next_phase(int worker, double now);
  void end_iteration(Worker &worker, double now);
  SentBytes *sent_bytes_of(std::int64_t iteration);
  ActivePhase &active_phase_of(std::int64_t iteration, int phase);

  std::vector<Worker> workers_;
  std::vector<ActivePhase *> active_phases_;
  std::vector<std::unique_ptr<ActivePhase>> phases_;
  std::vector<std::vector<ActivePhase *>> idle_phases_; // by phase
  std::vector<Phase> next_phases_;                      // empty unless the phases are to be replaced
  // Replaced phases, kept until the end of the instant: streams of an ended one may still be in the lists of links.
  std::vector<std::vector<Phase>> replaced_;
  std::vector<std::unique_ptr<ActivePhase>> stale_phases_;
  std::vector<std::unique_ptr<SentBytes>> sent_bytes_, free_sent_bytes_;
  double advanced_to_, departs_ms_;
  std::int64_t completed_ = 0;
  bool ended_ = false;
};

} // namespace fluid
