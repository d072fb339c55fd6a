// SPDX-License-Identifier: Apache-2.0
#include "crossgen/results/results.hpp"

#include <algorithm>
#include <cmath>
#include <mutex>

namespace crossgen {
namespace {

using native::Nanos;

// A start lags when it is later than both: single hiccups of a machine that keeps up do not count.
constexpr Nanos kLagNs = 1'000'000;
constexpr Nanos kLagShare = 100; // 1 % of the time since the load's start

} // namespace

Results::Results(const SendOptions &options, std::uint64_t planned) : options_(options) {
  finished_.reserve(std::min<std::uint64_t>(planned, options.most_results));
}

void Results::due(const Launch &launch) {
  due_flows++;
  if (!launch.measured)
    return;
  measured_flows++;
  measured_bytes += launch.flow.bytes;
}

void Results::started(const Launch &launch, Nanos start_ns) {
  started_flows++;
  if (!launch.measured)
    return;
  lateness_ns.record(start_ns - launch.intended_ns);
  if (lags(launch, start_ns))
    lagging_flows++;
}

bool Results::lags(const Launch &launch, Nanos start_ns) const {
  return start_ns - launch.intended_ns > std::max(kLagNs, (start_ns - start_ns_) / kLagShare);
}

void Results::finished(const Finished &flow) {
  finished_flows++;
  if (flow.launch.measured) {
    const Nanos took_ns = flow.end_ns - flow.launch.intended_ns;
    completion_ns.record(took_ns);
    if (options_.line_rate_gbps > 0)
      slowdown_per_mil.record(std::llround(1e3 * static_cast<double>(took_ns) / ideal_ns(flow.launch.flow.bytes)));
  }
  const std::lock_guard guard(mutex_);
  if (finished_.size() < options_.most_results)
    finished_.push_back(flow);
}

double Results::ideal_ns(std::uint64_t bytes) const {
  return static_cast<double>(bytes) * 8 / options_.line_rate_gbps + options_.base_rtt_us * 1e3;
}

void Results::unfinished(Unfinished flow) {
  unfinished_flows++;
  if (flow.launch.measured && flow.start_ns == 0)
    lagging_flows++;
  const std::lock_guard guard(mutex_);
  if (unfinished_.size() < options_.most_results)
    unfinished_.push_back(std::move(flow));
}

} // namespace crossgen
