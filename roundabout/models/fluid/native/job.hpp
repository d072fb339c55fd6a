// SPDX-License-Identifier: Apache-2.0
// A job that advances through its phases; roundabout/models/fluid/model.py explains each step.
#pragma once

#include "roundabout/models/fluid/native/numbers.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

namespace fluid {

inline constexpr double kSameMs = 1e-7; // more than what rounds off after days: no event may come between two instants

struct Edge;
struct Flow;
class Job;
struct Growing;

// --- what a job is: roundabout/models/fluid/jobs.py ------------------------------------------------------------------

struct Stream {
  int sender, receiver;
  double size;
  int passes_on; // index of an earlier stream, or -1
  std::vector<Edge *> path;
};

struct Party {
  std::vector<int> workers, awaits;
};

struct Phase {
  double ms; // of computing, or of sending alone
  bool sends;
  std::vector<Stream> streams;
  std::vector<Party> parties;
};

// (constant + linear r + square r^2) / (below + below_linear r), r the part of an iteration's bytes that is sent.
struct Factor {
  double constant = 1, linear = 0, square = 0, below = 1, below_linear = 0;
  double operator()(double r) const { return (constant + r * (linear + r * square)) / (below + r * below_linear); }
};

struct Timetable {
  double shift_ms, period_ms, threshold_ms, late_ms;
  double delay_ms(double at_ms) const;
};

struct Plan {
  int workers = 1, priority = 0;
  double weight = 1, start_ms = 0, departs_ms = kInfinity;
  std::int64_t iterations = std::numeric_limits<std::int64_t>::max();
  bool grows = false, held = false;
  Factor factor{};
  Timetable timetable{};
  std::vector<double> stretches{1.0};
  std::vector<Phase> phases;

  double bytes() const;
};

// --- the state of a job ----------------------------------------------------------------------------------------------

// A stream's entry in the list of streams of one direction of a link.
struct Hop {
  Flow *flow = nullptr;
  Edge *edge = nullptr;
  Hop *next = nullptr, **from = nullptr; // on the link; and the pointer to this hop
};

// The bytes that a job has sent in one iteration, which determine its weight.
struct Tally {
  std::int64_t iteration = 0;
  double sent = 0;
};

// The unsent part of a stream in the current phase.
struct Flow {
  Job *job = nullptr;
  Tally *tally = nullptr;
  Flow *feeder = nullptr, *first_follower = nullptr, *next_follower = nullptr;
  Hop *hops = nullptr, *hops_end = nullptr;
  double pace = 0, unborn = 0, waiting = 0, rate = 0;
  double wanted = 0, bound = 0;     // demand; the upper limit of the rate, by demand and by links
  double path_capacity = kInfinity; // the present capacity of its narrowest link
  std::int64_t units = 0;           // the bound in units, as added to its links
  std::uint64_t seen = 0;
  int local = -1; // index in the coupled set
  bool begun = false, listed = false, dirty = false;
  bool lags = false;    // the rate is less than the inflow, so a backlog grows
  bool follows = false; // sent only what its feeder delivered, at the last update

  bool done() const { return waiting <= 0 && (feeder ? feeder->done() : unborn <= 0); }
  bool live() const { return begun && !done(); }
  double inflow() const { return feeder ? feeder->rate : unborn > 0 && begun ? pace : 0; }
  bool overdrawn() const { return waiting <= 0 && rate > inflow() * (1 + 1e-9); }
  double born_ms() const { return !feeder && unborn > 0 && begun ? unborn / pace : kInfinity; }
  double drained_ms() const;
  double narrowest() const;
  double next_ms() const { return std::min(born_ms(), drained_ms()); }
  void advance(double ms);
};

// A phase of one iteration under way.
struct Sending {
  Sending(Job &job, const Phase &phase);
  void begin(std::int64_t iteration, Tally *tally);
  void enter(int worker);
  bool is_done(const Party &party) const;

  const Phase &phase;
  std::int64_t iteration = 0;
  std::vector<Flow> flows;
  std::vector<Hop> hops;
  std::vector<char> entered, left; // by worker; by party
  std::size_t parties = 0;         // number of parties that have not left
};

struct Worker {
  double until, started;
  int phase = -1;
  double compute_end = -1, delay = 0; // compute_end is below 0 before the first communication
  std::int64_t begun = 0;             // number of completed iterations
  std::vector<double> records{};      // start, compute_end, end and delay of each
};

class Job {
public:
  Job(Plan plan, std::size_t number, double now);

  const Plan plan;
  const double bytes;
  const std::size_t number;

  double weight(const Tally &tally, double more = 0) const;
  double next_ms() const; // the next event, except for the ends of integration steps
  void advance(double now);
  void settle(double now);
  void depart(double now) { departs_ = now; }

  bool ended() const { return ended_; }
  std::int64_t completed() const { return completed_; }
  const std::vector<Worker> &workers() const { return workers_; }
  double at() const { return at_; }

  const std::vector<Sending *> &sending() const { return sending_; }
  template <typename Do> void each_flow(Do what) {
    for (Sending *sending : sending_)
      for (Flow &flow : sending->flows)
        what(flow);
  }

  std::vector<Sending *> retired; // ended phases whose streams may still be in the lists of links
  void recycle();

  std::vector<std::shared_ptr<Growing>> growing; // integration steps that the job takes part in
  double step_ms = kInfinity;                    // length to try for the next integration step
  double key = 0;                                // in the engine's heap
  std::size_t heap_place = 0;
  std::uint64_t updated = 0; // number of the instant of the last update

private:
  void enter_next(int worker, double now);
  void end_iteration(Worker &worker, double now);
  Tally *tally_of(std::int64_t iteration);
  Sending &sending_of(std::int64_t iteration, int phase);

  std::vector<Worker> workers_;
  std::vector<Sending *> sending_;
  std::vector<std::unique_ptr<Sending>> all_;
  std::vector<std::vector<Sending *>> free_; // by phase
  std::vector<std::unique_ptr<Tally>> tallies_, free_tallies_;
  double at_, departs_;
  std::int64_t completed_ = 0;
  bool ended_ = false;
};

} // namespace fluid
