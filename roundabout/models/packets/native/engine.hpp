// SPDX-License-Identifier: Apache-2.0
// The simulated time of a network and its jobs, and the samples of its counters.
#pragma once

#include "roundabout/models/packets/native/cross_traffic/cross_traffic.hpp"
#include "roundabout/models/packets/native/jobs/jobs.hpp"

namespace packets {

// Samples are rows of whole numbers: each port's, counter's of marks, host's, sampled queue's and buffer's.
inline constexpr std::size_t kPortColumns = 7, kHostColumns = 4, kQueueColumns = 8, kBufferColumns = 3;

class Engine {
  EventQueue events_; // before those that refer to it

public:
  Engine(const NicPlan &nic, std::span<const PortPlan> ports, std::size_t hosts, Picos sample);

  Network network; // queue pairs and jobs are added before the first `run`
  CrossTraffic cross_traffic;
  Jobs jobs;

  // Samples each of these queues of switch ports, too; called before the first `run`.
  void sample_queues(std::uint8_t queues);

  void set_lead(Picos lead) { lead_ = lead; } // the first sample is taken then

  // Plays until an instant, until no job is left, or until that many events have passed; returns those that are left.
  std::int64_t run(Picos until, std::int64_t events, bool while_jobs);

  Picos now() const { return now_; }
  std::size_t sample_count() const { return sampled_; }
  const std::vector<std::int64_t> &samples() const { return samples_; }
  std::size_t row() const;

private:
  void begin();
  void handle(EventTarget target);
  void sample();
  void sample_switches();

  Picos now_ = 0, sample_ = 0, lead_ = 0;
  bool begun_ = false;
  std::uint8_t sampled_queues_ = 0;
  std::size_t sampled_ = 0;
  std::vector<std::int64_t> samples_;
};

} // namespace packets
