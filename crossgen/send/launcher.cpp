// SPDX-License-Identifier: Apache-2.0
#include "crossgen/send/launcher.hpp"

#include <algorithm>
#include <sched.h>

namespace crossgen {
namespace {

using native::Nanos;

// Interval at which a sleeping launcher checks for a request to stop.
constexpr Nanos kLookNs = 20'000'000;

// Gives the launcher real-time priority. A launch takes microseconds, and the kernel reserves CPU time for other
// threads (sched_rt_runtime_us).
bool go_first() {
  const sched_param lowest{.sched_priority = sched_get_priority_min(SCHED_FIFO)};
  return pthread_setschedparam(pthread_self(), SCHED_FIFO, &lowest) == 0;
}

} // namespace

Launcher::Launcher(const SendOptions &options, std::vector<std::unique_ptr<Pool>> &pools, Results &results, Bell &bell)
    : options_(options), pools_(pools), results_(results), bell_(bell), file_(options.load_path, std::ios::binary),
      reader_(file_, options.load_path) {}

void Launcher::begin(Nanos start_ns) {
  thread_ = std::thread([this, start_ns] { run(start_ns); });
}

void Launcher::stop() {
  stopped_ = true;
  if (thread_.joinable())
    thread_.join();
}

void Launcher::check() const {
  if (!failure_.empty())
    throw native::Failure(failure_);
}

void Launcher::run(Nanos start_ns) {
  goes_first_ = go_first();
  try {
    launch_all(start_ns);
  } catch (const std::exception &error) {
    failure_ = error.what();
  }
  ended_ = true;
  bell_.ring();
}

void Launcher::launch_all(Nanos start_ns) {
  Launch launch;
  for (; reader_.next(launch.flow); launch.number++) {
    const auto after_ns = static_cast<Nanos>(launch.flow.start_ns);
    launch.intended_ns = start_ns + after_ns;
    launch.measured = after_ns >= options_.warm_up_ns;
    if (!sleep_until(launch.intended_ns))
      return;
    results_.due(launch);
    pools_[launch.flow.destination * reader_.header().classes.size() + launch.flow.flow_class]->launch(launch);
  }
}

// Returns false after a request to stop.
bool Launcher::sleep_until(Nanos deadline_ns) const {
  for (Nanos now_ns = 0; !stopped_ && (now_ns = native::monotonic_ns()) < deadline_ns;) {
    const Nanos until_ns = std::min(deadline_ns, now_ns + kLookNs);
    const timespec until{until_ns / 1'000'000'000, until_ns % 1'000'000'000};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
  }
  return !stopped_;
}

} // namespace crossgen
