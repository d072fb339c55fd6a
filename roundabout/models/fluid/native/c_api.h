// SPDX-License-Identifier: Apache-2.0
// The engine's C API, which roundabout/models/fluid/engine.py reads, too. Jobs, links and streams are numbered from 0.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct fluid_engine;

// F(r) = (constant + linear r + square r^2) / (below + below_linear r), r being the sent share of an iteration's bytes.
struct fluid_factor {
  double constant, linear, square, below, below_linear;
};

struct fluid_timetable {
  double shift_ms, period_ms, threshold_ms, late_ms;
};

// A FluidJob of roundabout/models/fluid/jobs.py. One without end has infinite `departs_ms` and INT64_MAX iterations.
struct fluid_job {
  int32_t workers, priority, has_factor, has_timetable;
  int64_t iterations;
  double weight, start_ms, departs_ms;
  struct fluid_factor factor;
  struct fluid_timetable timetable;
};

// A phase of computing for `ms`, or (`sends`) of streams that take `ms` alone; with the counts of these and of
// barriers.
struct fluid_phase {
  double ms;
  int32_t sends, streams, barriers;
};

// `passes_on` is the number of an earlier stream of the phase, or -1. `links` counts the links on the path.
struct fluid_stream {
  int32_t sender, receiver, passes_on, links;
  double bytes;
};

// The counts of workers that leave a phase together, and of the streams that must have ended before.
struct fluid_barrier {
  int32_t workers, awaits;
};

// One worker's iteration. Communication begins at `compute_end_ms`. The agent delays the iteration by `delay_ms`.
struct fluid_iteration {
  double start_ms, compute_end_ms, end_ms, delay_ms;
};

// Returns a new engine. `bytes_per_ms` has the capacities of all links, one after the other: as many values each as
// `steps` states, of `step_ms` each. The other arguments are those of Engine's constructor (engine.hpp).
struct fluid_engine *fluid_create(const double *bytes_per_ms, const size_t *steps, size_t links, double step_ms,
                                  double congested, double sample_ms);
void fluid_free(struct fluid_engine *engine);

// Lets the engine choose the spines of all streams (spine_groups.hpp). `up` and `down` are links, leaf by leaf.
void fluid_balance(struct fluid_engine *engine, const int32_t *up, const int32_t *down, size_t links, size_t spines,
                   size_t choices, double interval_ms);

// Adds a job and returns its number. `streams` and `barriers` are those of all phases in order; `paths` has the links
// of all streams, `shares` the share of the stream's bytes that each of these carries, and `members` the workers and
// then the awaited streams of each barrier.
size_t fluid_add(struct fluid_engine *engine, const struct fluid_job *job, const double *stretches,
                 size_t stretch_count, const struct fluid_phase *phases, size_t phase_count,
                 const struct fluid_stream *streams, const struct fluid_barrier *barriers, const int32_t *paths,
                 const double *shares, const int32_t *members);

// Replaces a job's phases from its next phase on, by as many phases. The job must have one worker.
void fluid_replace(struct fluid_engine *engine, size_t job, const struct fluid_phase *phases, size_t phase_count,
                   const struct fluid_stream *streams, const struct fluid_barrier *barriers, const int32_t *paths,
                   const double *shares, const int32_t *members);

// Changes the capacity of a link from now on.
void fluid_set_capacity(struct fluid_engine *engine, size_t link, double bytes_per_ms);

// Gives the streams of all phases of a job other paths from now on, in order. `lengths` has the number of links of
// each.
void fluid_reroute(struct fluid_engine *engine, size_t job, const int32_t *lengths, size_t streams,
                   const int32_t *paths);

void fluid_stop(struct fluid_engine *engine, size_t job);

// Returns the number of ended jobs, and writes their numbers to `ended`, which must have room for all jobs. It reduces
// `instants` by those used.
size_t fluid_run(struct fluid_engine *engine, double until_ms, int64_t *instants, size_t *ended);

double fluid_now_ms(const struct fluid_engine *engine);

int64_t fluid_completed(const struct fluid_engine *engine, size_t job);

// Writes the iterations that all workers have completed, worker by worker.
void fluid_iterations(const struct fluid_engine *engine, size_t job, struct fluid_iteration *iterations);

// Returns the number of samples of a link, and writes them to `bytes` unless it is null.
size_t fluid_carried(struct fluid_engine *engine, size_t link, double *bytes);

#ifdef __cplusplus
}
#endif
