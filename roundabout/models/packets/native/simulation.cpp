// SPDX-License-Identifier: Apache-2.0
#include "roundabout/models/packets/native/simulation.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <type_traits>

namespace packets {
namespace {

template <typename Columns> constexpr std::size_t kColumns = sizeof(Columns) / sizeof(std::int64_t);

} // namespace

Simulation::Simulation(const nic_plan &nic, std::span<const port_plan> ports, std::size_t host_count, Picos sample,
                       Picos lead)
    : nic_(nic), random_(nic.seed), fabric(nic_, ports, random_), ecn(random_), mmu(events_, fabric, ecn),
      forwarding(events_, random_, fabric, mmu, ecn, hosts), link_changes(events_, fabric, mmu, forwarding),
      hosts(events_, random_, nic_, fabric, forwarding, host_count, jobs), cross_traffic(events_, hosts),
      jobs(events_, hosts, cross_traffic), sample_(sample), lead_(lead) {}

void Simulation::use_red(std::uint32_t port, double weight) {
  ecn.use_red(fabric.ports[port], weight, nic_.payload_bytes);
}

void Simulation::begin() {
  has_begun_ = true;
  const auto count = [](std::size_t targets) { return static_cast<std::uint32_t>(targets); };
  const std::uint32_t ports = count(fabric.ports.size());
  events_.begin({ports, ports, 1, count(hosts.pairs.size()), count(jobs.worker_count()), count(jobs.job_count()), 1,
                 count(cross_traffic.count())});
  jobs.begin();
  hosts.begin();
  link_changes.begin();
  events_.set({EventKind::kSample}, lead_);
  cross_traffic.begin();
}

void Simulation::sample_queues(std::uint8_t queues) {
  sampled_queues_ = queues;
  for (Port &port : fabric.ports)
    port.counts_queues = true;
}

std::int64_t Simulation::run(Picos until, std::int64_t events, bool while_jobs) {
  if (!has_begun_)
    begin();
  for (; events > 0 && (!while_jobs || jobs.running() > 0); events--) {
    const Picos at = events_.next_at();
    if (at > until || at == kNever)
      break;
    now_ = at;
    dispatch(events_.next_target());
  }
  return events;
}

void Simulation::dispatch(EventTarget target) {
  switch (target.kind()) {
  case EventKind::kArrival:
    forwarding.arrive(target.index(), now_);
    break;
  case EventKind::kTransmission:
    forwarding.on_transmission(target.index(), now_);
    break;
  case EventKind::kDelayed:
    std::visit(
        [&](const auto &event) {
          if constexpr (std::is_same_v<decltype(event), const PfcEvent &>)
            forwarding.handle(event, now_);
          else if constexpr (std::is_same_v<decltype(event), const LinkEvent &> ||
                             std::is_same_v<decltype(event), const AvoidEvent &>)
            link_changes.handle(event, now_);
          else
            hosts.handle(event, now_);
        },
        events_.pop_delayed());
    break;
  case EventKind::kQueuePair:
    hosts.on_timer(target.index(), now_);
    break;
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
  }
}

std::size_t Simulation::row() const {
  std::size_t switch_ports = 0;
  for (const Port &port : fabric.ports)
    switch_ports += !port.is_host;
  const auto queues = static_cast<std::size_t>(std::popcount(sampled_queues_));
  return kColumns<port_sample> * fabric.ports.size() + kColumns<host_sample> * hosts.counters.size() +
         kColumns<queue_sample> * queues * switch_ports + kColumns<buffer_sample> * mmu.buffers().size() +
         fabric.mark_counters().size();
}

void Simulation::copy_samples(std::int64_t *into) const {
  const std::size_t width = row(), counters = fabric.mark_counters().size(), others = width - counters;
  auto sampled = samples_.begin();
  for (const std::size_t marks : sampled_marks_) {
    const auto length = static_cast<std::ptrdiff_t>(others + marks);
    std::fill(std::copy(sampled, sampled + length, into), into + width, 0);
    sampled += length;
    into += width;
  }
}

template <typename Columns> void Simulation::append(const Columns &columns) {
  const auto values = std::bit_cast<std::array<std::int64_t, kColumns<Columns>>>(columns);
  samples_.insert(samples_.end(), values.begin(), values.end());
}

void Simulation::sample() {
  for (const Port &port : fabric.ports) {
    const QueueCounters c = port.read_counters(now_);
    append(port_sample{c.tx_bytes, c.tx_packets, port.backlog(), c.drops, c.marks, c.pauses, c.paused});
  }
  for (const host_sample &each : hosts.counters)
    append(each);
  sample_switches();
  for (const auto &each : fabric.mark_counters())
    samples_.push_back(each.marks);
  sampled_marks_.push_back(fabric.mark_counters().size());
  events_.cancel({EventKind::kSample});
  if (events_.next_at() < kNever || !jobs.running()) // Otherwise nothing would ever happen again.
    events_.set({EventKind::kSample}, now_ + sample_);
}

void Simulation::sample_switches() {
  for (const Port &port : fabric.ports)
    for (int queue = 0; queue < kPriorities && !port.is_host; queue++)
      if (sampled_queues_ & bit(queue)) {
        const QueueCounters c = port.read_counters(queue, now_);
        append(queue_sample{c.tx_bytes, c.tx_packets, port.queues[queue].bytes, c.drops, c.marks, c.pauses, c.paused,
                            static_cast<std::int64_t>(ecn.red_average(port, queue))});
      }
  for (const SharedBuffer &each : mmu.buffers())
    append(each.state());
}

} // namespace packets
