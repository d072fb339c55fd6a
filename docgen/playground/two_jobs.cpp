// SPDX-License-Identifier: Apache-2.0
// Two jobs on one link: the fluid engine behind functions of numbers, so that the page's script needs no layout of
// structs. Jobs are numbers 0 and 1. Each job enters the shared link from a link of its own, which counts its bytes.
#include "roundabout/models/fluid/native/c_api.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#define EXPORT(name) __attribute__((export_name(#name)))

namespace {

constexpr double kBytesPerMs = 6.25e6; // 50 Gbit/s: HotNets'22, Figure 1a. Ratios of times do not depend on it.
constexpr double kSampleMs = 1;        // about a third of a pixel of the page's chart
constexpr int kJobs = 2;
constexpr std::int32_t kSharedLink = kJobs;   // after the jobs' own links
constexpr double kRunMs = 1000;               // between two looks at the count of iterations
constexpr std::int64_t kInstants = 1'000'000; // never reached: an iteration has a few instants

fluid_engine *engine = nullptr;
std::vector<fluid_iteration> iterations[kJobs];
std::vector<double> carried[kJobs];

} // namespace

// Ubuntu's C++ library for WebAssembly calls these when memory is exhausted, and no library of it has them.
extern "C" void *__cxa_allocate_exception(std::size_t) { __builtin_trap(); }
extern "C" void __cxa_throw(void *, void *, void (*)(void *)) { __builtin_trap(); }

// Removes the jobs of the last run.
EXPORT(clear) void clear() {
  if (engine)
    fluid_free(engine);
  const std::vector<double> capacities(kJobs + 1, kBytesPerMs);
  const std::vector<std::size_t> steps(kJobs + 1, 1);
  engine = fluid_create(capacities.data(), steps.data(), capacities.size(), 1, 1, kSampleMs);
}

// Adds job 0, and in a second call job 1. It begins at `start_ms`, computes, and sends for `send_ms` alone, at the
// link's rate. While both jobs send, they share the link by their weights.
EXPORT(add_job) void add_job(int job, double compute_ms, double send_ms, double weight, double start_ms) {
  const fluid_job added{.workers = 1,
                        .iterations = std::numeric_limits<std::int64_t>::max(),
                        .weight = weight,
                        .start_ms = start_ms,
                        .departs_ms = std::numeric_limits<double>::infinity()};
  const fluid_phase phases[] = {{.ms = compute_ms}, {.ms = send_ms, .sends = 1, .streams = 1, .barriers = 1}};
  const fluid_stream stream{.passes_on = -1, .links = 2, .bytes = send_ms * kBytesPerMs};
  const fluid_barrier barrier{.workers = 1, .awaits = 1};
  const std::int32_t path[] = {job, kSharedLink}, members[] = {0, 0};
  const double stretch = 1, shares[] = {1, 1};
  fluid_add(engine, &added, &stretch, 1, phases, 2, &stream, &barrier, path, shares, members);
}

// Computes until each job has completed `count` iterations.
EXPORT(run) void run(int count) {
  std::size_t ended[kJobs];
  while (std::min(fluid_completed(engine, 0), fluid_completed(engine, 1)) < count) {
    std::int64_t instants = kInstants;
    fluid_run(engine, fluid_now_ms(engine) + kRunMs, &instants, ended);
  }
  for (std::size_t job = 0; job < kJobs; job++) {
    iterations[job].resize(static_cast<std::size_t>(fluid_completed(engine, job)));
    fluid_iterations(engine, job, iterations[job].data());
    carried[job].resize(fluid_carried(engine, job, nullptr));
    fluid_carried(engine, job, carried[job].data());
  }
}

EXPORT(completed) int completed(int job) { return static_cast<int>(iterations[job].size()); }

// Times of a job's completed iterations, ms.
EXPORT(start_ms) double start_ms(int job, int iteration) {
  return iterations[job][static_cast<std::size_t>(iteration)].start_ms;
}
EXPORT(send_ms) double send_ms(int job, int iteration) {
  return iterations[job][static_cast<std::size_t>(iteration)].compute_end_ms;
}
EXPORT(end_ms) double end_ms(int job, int iteration) {
  return iterations[job][static_cast<std::size_t>(iteration)].end_ms;
}

// Returns the number of whole milliseconds that were computed.
EXPORT(milliseconds) int milliseconds(int job) { return static_cast<int>(carried[job].size()) - 1; }

// Returns the share of the link that a job uses on average from `ms` to the next whole millisecond.
EXPORT(link_share) double link_share(int job, int ms) {
  const auto place = static_cast<std::size_t>(ms);
  return (carried[job][place + 1] - carried[job][place]) / (kBytesPerMs * kSampleMs);
}
