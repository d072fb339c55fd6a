// SPDX-License-Identifier: Apache-2.0
#include "roundabout/models/fluid/native/c_api.h"
#include "roundabout/models/fluid/native/engine.hpp"

#include <algorithm>
#include <span>
#include <vector>

struct fluid_engine : fluid::Engine {
  using Engine::Engine;
};

fluid_engine *fluid_create(const double *bytes_per_ms, const std::size_t *steps, std::size_t links, double step_ms,
                           double congested, double sample_ms) {
  std::vector<std::vector<double>> capacities;
  for (const std::size_t count : std::span(steps, links)) {
    capacities.emplace_back(bytes_per_ms, bytes_per_ms + count);
    bytes_per_ms += count;
  }
  return new fluid_engine(capacities, step_ms, congested, sample_ms);
}

void fluid_free(fluid_engine *engine) { delete engine; }

void fluid_balance(fluid_engine *engine, const std::int32_t *up, const std::int32_t *down, std::size_t links,
                   std::size_t spines, std::size_t choices, double interval_ms) {
  std::vector<fluid::Edge *> ups, downs;
  for (std::size_t i = 0; i < links; i++) {
    ups.push_back(engine->edge(fluid::index(up[i])));
    downs.push_back(engine->edge(fluid::index(down[i])));
  }
  engine->balance({ups, downs, spines, choices, interval_ms});
}

namespace {

std::vector<fluid::Phase> read_phases(fluid_engine *engine, std::span<const fluid_phase> phases,
                                      const fluid_stream *streams, const fluid_barrier *barriers,
                                      const std::int32_t *paths, const double *shares, const std::int32_t *members) {
  std::vector<fluid::Phase> found;
  for (const fluid_phase &each : phases) {
    fluid::Phase &phase = found.emplace_back(fluid::Phase{each.ms, each.sends != 0});
    for (std::int32_t i = 0; i < each.streams; i++, streams++) {
      auto &path = phase.streams.emplace_back(fluid::Stream{*streams}).path;
      for (std::int32_t link = 0; link < streams->links; link++)
        path.push_back({engine->edge(fluid::index(*paths++)), *shares++});
    }
    for (std::int32_t i = 0; i < each.barriers; i++, barriers++) {
      fluid::Barrier &barrier = phase.barriers.emplace_back();
      barrier.workers.assign(members, members + barriers->workers);
      members += barriers->workers;
      barrier.awaits.assign(members, members + barriers->awaits);
      members += barriers->awaits;
    }
  }
  return found;
}

} // namespace

std::size_t fluid_add(fluid_engine *engine, const fluid_job *job, const double *stretches, std::size_t stretch_count,
                      const fluid_phase *phases, std::size_t phase_count, const fluid_stream *streams,
                      const fluid_barrier *barriers, const std::int32_t *paths, const double *shares,
                      const std::int32_t *members) {
  fluid::Plan plan{*job};
  plan.stretches.assign(stretches, stretches + stretch_count);
  plan.phases = read_phases(engine, std::span(phases, phase_count), streams, barriers, paths, shares, members);
  return engine->add(std::move(plan));
}

void fluid_replace(fluid_engine *engine, std::size_t job, const fluid_phase *phases, std::size_t phase_count,
                   const fluid_stream *streams, const fluid_barrier *barriers, const std::int32_t *paths,
                   const double *shares, const std::int32_t *members) {
  engine->replace(job, read_phases(engine, std::span(phases, phase_count), streams, barriers, paths, shares, members));
}

void fluid_set_capacity(fluid_engine *engine, std::size_t link, double bytes_per_ms) {
  engine->set_capacity(link, bytes_per_ms);
}

void fluid_reroute(fluid_engine *engine, std::size_t job, const std::int32_t *lengths, std::size_t streams,
                   const std::int32_t *paths) {
  std::vector<std::vector<fluid::StreamLink>> found;
  for (const std::int32_t length : std::span(lengths, streams)) {
    auto &path = found.emplace_back();
    for (std::int32_t link = 0; link < length; link++)
      path.push_back({engine->edge(fluid::index(*paths++)), 1});
  }
  engine->reroute(job, std::move(found));
}

void fluid_stop(fluid_engine *engine, std::size_t job) { engine->stop(job); }

std::size_t fluid_run(fluid_engine *engine, double until_ms, std::int64_t *instants, std::size_t *ended) {
  const std::vector<std::size_t> found = engine->run(until_ms, *instants);
  std::ranges::copy(found, ended);
  return found.size();
}

double fluid_now_ms(const fluid_engine *engine) { return engine->now(); }

std::int64_t fluid_completed(const fluid_engine *engine, std::size_t job) { return engine->job(job).completed(); }

void fluid_iterations(const fluid_engine *engine, std::size_t number, fluid_iteration *iterations) {
  const fluid::Job &job = engine->job(number);
  for (const fluid::Worker &worker : job.workers())
    iterations = std::copy_n(worker.iterations.begin(), job.completed(), iterations);
}

std::size_t fluid_carried(fluid_engine *engine, std::size_t link, double *bytes) {
  const std::vector<double> found = engine->carried(link);
  if (bytes)
    std::ranges::copy(found, bytes);
  return found.size();
}
