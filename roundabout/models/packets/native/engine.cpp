// SPDX-License-Identifier: Apache-2.0
#include "roundabout/models/packets/native/engine.hpp"

#include <bit>

namespace packets {

Engine::Engine(const NicPlan &nic, std::span<const PortPlan> ports, std::size_t hosts, Picos sample)
    : network(events_, nic, ports, hosts), cross_traffic(events_, network), jobs(events_, network, cross_traffic),
      sample_(sample) {}

void Engine::begin() {
  begun_ = true;
  const auto count = [](std::size_t targets) { return static_cast<std::uint32_t>(targets); };
  const std::uint32_t ports = count(network.port_count());
  events_.begin({ports, ports, 1, count(network.pair_count()), count(jobs.worker_count()), count(jobs.job_count()), 1,
                 count(cross_traffic.count())});
  jobs.begin();
  events_.set({EventKind::kSample}, lead_);
  cross_traffic.begin();
}

void Engine::sample_queues(std::uint8_t queues) {
  sampled_queues_ = queues;
  network.count_queues();
}

std::int64_t Engine::run(Picos until, std::int64_t events, bool while_jobs) {
  if (!begun_)
    begin();
  for (; events > 0 && (!while_jobs || jobs.running() > 0); events--) {
    const Picos at = events_.next_at();
    if (at > until || at == kNever)
      break;
    now_ = at;
    handle(events_.next_target());
  }
  return events;
}

void Engine::handle(EventTarget target) {
  switch (target.kind()) {
  case EventKind::kWorker:
    events_.cancel(target);
    jobs.enter_next_phase(target.index(), now_);
    break;
  case EventKind::kDeparture:
    jobs.end(target.index(), now_);
    break;
  case EventKind::kSample:
    sample();
    break;
  case EventKind::kCrossTraffic:
    cross_traffic.handle(target.index(), now_);
    break;
  default:
    network.handle(target, now_, jobs);
  }
}

std::size_t Engine::row() const {
  std::size_t switch_ports = 0;
  for (std::size_t i = 0; i < network.port_count(); i++)
    switch_ports += !network.is_host(i);
  const auto queues = static_cast<std::size_t>(std::popcount(sampled_queues_));
  return kPortColumns * network.port_count() + network.mark_counters().size() + kHostColumns * network.hosts().size() +
         kQueueColumns * queues * switch_ports + kBufferColumns * network.buffers().size();
}

void Engine::sample() {
  for (std::size_t i = 0; i < network.port_count(); i++) {
    const QueueCounters c = network.counters(i, now_);
    samples_.insert(samples_.end(),
                    {c.tx_bytes, c.tx_packets, network.backlog(i), c.drops, c.marks, c.pauses, c.paused});
  }
  for (const auto &each : network.mark_counters())
    samples_.push_back(each.marks);
  for (const HostCounters &each : network.hosts())
    samples_.insert(samples_.end(), {each.marked, each.cnps_sent, each.cnps_handled, each.out_of_sequence});
  sample_switches();
  sampled_++;
  events_.cancel({EventKind::kSample});
  if (events_.next_at() < kNever || !jobs.running()) // Otherwise nothing would ever happen again.
    events_.set({EventKind::kSample}, now_ + sample_);
}

void Engine::sample_switches() {
  for (std::size_t i = 0; i < network.port_count(); i++)
    for (int queue = 0; queue < kPriorities && !network.is_host(i); queue++)
      if (sampled_queues_ & bit(queue)) {
        const QueueCounters c = network.queue_counters(i, queue, now_);
        samples_.insert(samples_.end(), {c.tx_bytes, c.tx_packets, network.queue_backlog(i, queue), c.drops, c.marks,
                                         c.pauses, c.paused, static_cast<std::int64_t>(network.red_average(i, queue))});
      }
  for (const SharedBuffer &each : network.buffers())
    samples_.insert(samples_.end(), {each.state().shared, each.state().headroom, each.state().most});
}

} // namespace packets
