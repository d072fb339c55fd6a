// SPDX-License-Identifier: Apache-2.0
// The simulation: it owns all parts, dispatches events to them, and samples their counters.
#pragma once

#include "roundabout/models/packets/native/cross_traffic/cross_traffic.hpp"
#include "roundabout/models/packets/native/hosts.hpp"
#include "roundabout/models/packets/native/jobs/jobs.hpp"
#include "roundabout/models/packets/native/switches/link_changes.hpp"

namespace packets {

class Simulation {
  const nic_plan nic_; // Parts refer to those that are declared before them.
  EventQueue events_;
  Random random_;

public:
  Simulation(const nic_plan &nic, std::span<const port_plan> ports, std::size_t host_count, Picos sample, Picos lead);

  Fabric fabric;
  EcnMarker ecn;
  SwitchMmu mmu;
  Forwarding forwarding;
  LinkChanges link_changes; // They are added before the first `run`.
  Hosts hosts;              // Queue pairs and jobs are added before the first `run`.
  CrossTraffic cross_traffic;
  Jobs jobs;

  void use_red(std::uint32_t port, double weight); // between the port's thresholds

  // Samples each of these queues of switch ports, too; called before the first `run`.
  void sample_queues(std::uint8_t queues);

  // Simulates until an instant, until all jobs have ended, or for that many events; returns how many are left.
  std::int64_t run(Picos until, std::int64_t events, bool while_jobs);

  Picos now() const { return now_; }
  Picos lead() const { return lead_; } // the instant of the first sample
  std::size_t sample_count() const { return sampled_marks_.size(); }
  std::size_t row() const;                     // values of a sample
  void copy_samples(std::int64_t *into) const; // with 0 for counters of marks that were not there yet

private:
  void begin();
  void dispatch(EventTarget target);
  void sample();
  void sample_switches();
  template <typename Columns> void append(const Columns &columns); // to the samples

  Picos now_ = 0, sample_ = 0, lead_ = 0;
  bool has_begun_ = false;
  std::uint8_t sampled_queues_ = 0;
  std::vector<std::int64_t> samples_;
  std::vector<std::size_t> sampled_marks_; // number of counters of marks in each sample
};

} // namespace packets
