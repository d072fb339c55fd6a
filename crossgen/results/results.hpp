// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "crossgen/common/options.hpp"
#include "crossgen/results/histogram.hpp"
#include "crossgen/send/pi_mutex.hpp"

#include <atomic>
#include <vector>

namespace crossgen {

// A flow of the load that has become due.
struct Launch {
  std::uint64_t number = 0; // index in the load file
  Flow flow;
  native::Nanos intended_ns = 0;
  bool measured = false; // due after the warm-up
};

struct Finished {
  Launch launch;
  native::Nanos start_ns = 0;
  native::Nanos end_ns = 0; // when the sink acknowledged all bytes
};

struct Unfinished {
  Launch launch;
  native::Nanos start_ns = 0; // 0: it never started
  std::uint64_t sent_bytes = 0;
  std::string why;
};

// The results of flows so far. Any thread may report flows and read counters at any time, and no call waits for output.
class Results {
public:
  // Lists at most `most_results` flows of the options; later flows are only counted.
  Results(const SendOptions &options, std::uint64_t planned);

  void begin(native::Nanos start_ns) { start_ns_ = start_ns; }

  void due(const Launch &launch);
  void started(const Launch &launch, native::Nanos start_ns);
  void finished(const Finished &flow);
  void unfinished(Unfinished flow);

  // Histograms of measured flows.
  Histogram completion_ns;    // from the intended start
  Histogram lateness_ns;      // of starts
  Histogram slowdown_per_mil; // completion against size / line rate + base RTT

  std::atomic<std::uint64_t> due_flows = 0;
  std::atomic<std::uint64_t> started_flows = 0;
  std::atomic<std::uint64_t> finished_flows = 0;
  std::atomic<std::uint64_t> unfinished_flows = 0;
  std::atomic<std::uint64_t> measured_flows = 0; // due after the warm-up
  std::atomic<std::uint64_t> measured_bytes = 0; // of measured_flows
  std::atomic<std::uint64_t> lagging_flows = 0;  // measured flows that started too late; see lags()

  // The listed flows, in no order. Call only after all other threads have ended.
  const std::vector<Finished> &finished_list() const { return finished_; }
  const std::vector<Unfinished> &unfinished_list() const { return unfinished_; }

  std::uint64_t not_listed() const { return finished_flows + unfinished_flows - finished_.size() - unfinished_.size(); }

private:
  bool lags(const Launch &launch, native::Nanos start_ns) const;
  double ideal_ns(std::uint64_t bytes) const;

  const SendOptions &options_;
  native::Nanos start_ns_ = 0;
  PiMutex mutex_;
  std::vector<Finished> finished_;
  std::vector<Unfinished> unfinished_;
};

} // namespace crossgen
