// SPDX-License-Identifier: Apache-2.0
// The engine's C interface for roundabout/models/fluid/engine.py.
#include "roundabout/models/fluid/native/engine.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace {

using fluid::Engine;

// Reads a job from an array of integers and one of floating-point numbers, each in the order of the reads below.
class Reader {
public:
  Reader(Engine &engine, const std::int64_t *whole, const double *fractions)
      : engine_(engine), whole_(whole), fractions_(fractions) {}

  fluid::Plan plan() {
    fluid::Plan plan;
    plan.workers = number();
    plan.priority = number();
    if (const std::int64_t iterations = *whole_++; iterations >= 0)
      plan.iterations = iterations;
    plan.weight = *fractions_++;
    plan.start_ms = *fractions_++;
    plan.departs_ms = *fractions_++;
    if ((plan.grows = number() != 0))
      for (double *each : {&plan.factor.constant, &plan.factor.linear, &plan.factor.square, &plan.factor.below,
                           &plan.factor.below_linear})
        *each = *fractions_++;
    if ((plan.held = number() != 0))
      for (double *each :
           {&plan.timetable.shift_ms, &plan.timetable.period_ms, &plan.timetable.threshold_ms, &plan.timetable.late_ms})
        *each = *fractions_++;
    plan.stretches.resize(count());
    for (double &each : plan.stretches)
      each = *fractions_++;
    plan.phases.resize(count());
    for (fluid::Phase &each : plan.phases)
      phase(each);
    return plan;
  }

private:
  int number() { return static_cast<int>(*whole_++); }
  std::size_t count() { return static_cast<std::size_t>(*whole_++); }

  std::vector<int> numbers() {
    std::vector<int> all(count());
    for (int &each : all)
      each = number();
    return all;
  }

  void phase(fluid::Phase &into) {
    into.ms = *fractions_++;
    into.sends = number() != 0;
    into.streams.resize(count());
    for (fluid::Stream &each : into.streams) {
      each.sender = number();
      each.receiver = number();
      each.passes_on = number();
      each.size = *fractions_++;
      for (const int edge : numbers())
        each.path.push_back(engine_.edge(static_cast<std::size_t>(edge)));
    }
    into.parties.resize(count());
    for (fluid::Party &each : into.parties) {
      each.workers = numbers();
      each.awaits = numbers();
    }
  }

  Engine &engine_;
  const std::int64_t *whole_;
  const double *fractions_;
};

} // namespace

extern "C" {

// `capacities` has the capacities of all edges, one edge after the other; `figures` has the number of each edge's
// steps.
Engine *fluid_engine(const double *capacities, const std::size_t *figures, std::size_t edges, double step_ms,
                     double congested, double sample_ms) {
  std::vector<std::vector<double>> each;
  for (std::size_t i = 0; i < edges; capacities += figures[i++])
    each.emplace_back(capacities, capacities + figures[i]);
  return new Engine(each, step_ms, congested, sample_ms);
}

void fluid_free(Engine *engine) { delete engine; }

std::size_t fluid_add(Engine *engine, const std::int64_t *whole, const double *fractions) {
  return engine->add(Reader(*engine, whole, fractions).plan());
}

void fluid_stop(Engine *engine, std::size_t job) { engine->stop(job); }

// Returns the number of ended jobs, and writes their numbers to `ended`, which must have room for all jobs. It reduces
// `instants` by those used.
std::size_t fluid_run(Engine *engine, double until_ms, std::int64_t *instants, std::size_t *ended) {
  const std::vector<std::size_t> found = engine->run(until_ms, *instants);
  std::ranges::copy(found, ended);
  return found.size();
}

double fluid_now(Engine *engine) { return engine->now(); }

std::int64_t fluid_completed(Engine *engine, std::size_t job) { return engine->job(job).completed(); }

// Writes start, compute_end, end and delay of each iteration that all workers have completed, worker by worker.
void fluid_iterations(Engine *engine, std::size_t number, double *into) {
  const fluid::Job &job = engine->job(number);
  for (const fluid::Worker &worker : job.workers())
    into = std::copy_n(worker.records.begin(), 4 * job.completed(), into);
}

// Returns the number of samples, and writes them to `into` unless it is null.
std::size_t fluid_carried(Engine *engine, std::size_t edge, double *into) {
  const std::vector<double> found = engine->carried(edge);
  if (into)
    std::ranges::copy(found, into);
  return found.size();
}
}
