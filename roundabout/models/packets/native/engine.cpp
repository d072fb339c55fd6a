// SPDX-License-Identifier: Apache-2.0
#include "roundabout/models/packets/native/engine.hpp"

namespace packets {

Engine::Engine(const NicPlan &nic, std::span<const PortPlan> ports, std::size_t hosts, Picos sample)
    : network(schedule_, nic, ports, hosts), jobs(schedule_, network), sample_(sample) {}

void Engine::begin() {
  begun_ = true;
  sampler_ = network.sources() + jobs.sources();
  schedule_.resize(sampler_ + 1);
  jobs.begin(network.sources());
  schedule_.set(sampler_, 0);
}

std::int64_t Engine::run(Picos until, std::int64_t events, bool while_jobs) {
  if (!begun_)
    begin();
  const std::uint32_t first_job = network.sources();
  for (; events > 0 && (!while_jobs || jobs.running() > 0); events--) {
    const Picos at = schedule_.next_at();
    if (at > until || at == kNever)
      break;
    now_ = at;
    const std::uint32_t source = schedule_.next_source();
    if (source < first_job)
      network.handle(source, at, jobs);
    else if (source < sampler_)
      jobs.handle(source, at);
    else
      sample();
  }
  return events;
}

std::size_t Engine::row() const {
  return kPortColumns * network.port_count() + network.mark_counters().size() + kHostColumns * network.hosts().size();
}

void Engine::sample() {
  for (std::size_t i = 0; i < network.port_count(); i++) {
    const PortCounters c = network.counters(i, now_);
    samples_.insert(samples_.end(),
                    {c.tx_bytes, c.tx_packets, network.backlog(i), c.drops, c.marks, c.pauses, c.paused});
  }
  for (const auto &each : network.mark_counters())
    samples_.push_back(each.marks);
  for (const HostCounters &each : network.hosts())
    samples_.insert(samples_.end(), {each.marked, each.cnps_sent, each.cnps_handled, each.out_of_sequence});
  sampled_++;
  schedule_.set(sampler_, kNever);
  if (schedule_.next_at() < kNever || !jobs.running()) // else nothing would ever happen again
    schedule_.set(sampler_, now_ + sample_);
}

} // namespace packets
