// SPDX-License-Identifier: Apache-2.0
// The C API that roundabout/models/packets/engine.py calls: plain structures and numbers go in and out.
#include "roundabout/models/packets/native/simulation.hpp"

#include <algorithm>

using packets::Simulation;

namespace {

// As Python has it.
struct JobNumbers {
  std::int64_t workers, iterations, begins, departs; // departs below 0: never
  std::int64_t shift, period, threshold, late;       // without a period there is no timetable
};

struct PairResult {
  std::int64_t packets, resent, delivered, marked, acked;
  std::uint64_t reaction[REACTION_COUNTERS];
};

struct ConnectionResult {
  std::int64_t timeouts, probes, recoveries, reductions_by_marks, acks, lost, in_flight;
  std::int64_t cwnd, ssthresh, srtt_ps, min_rtt_ps;
  congestion_state state;
};

} // namespace

extern "C" {

Simulation *packets_engine(const packets::NicPlan *nic, const packets::PortPlan *ports, std::size_t count,
                           std::size_t hosts, std::int64_t sample_ps) {
  return new Simulation(*nic, {ports, count}, hosts, sample_ps);
}

void packets_free(Simulation *simulation) { delete simulation; }

// The headroom is that of the link in the opposite direction of each port.
void packets_share_buffer(Simulation *simulation, const packets::BufferPlan *plan, const std::uint32_t *ports,
                          const std::int64_t *headroom, std::size_t count) {
  simulation->mmu.share_buffer(*plan, {ports, count}, {headroom, count});
}

void packets_weigh_queues(Simulation *simulation, std::uint32_t port, const std::int64_t *quanta, std::size_t count) {
  simulation->forwarding.weigh_queues(port, {quanta, count});
}

void packets_use_red(Simulation *simulation, std::uint32_t port, double weight) { simulation->use_red(port, weight); }
void packets_sample_queues(Simulation *simulation, int queues) {
  simulation->sample_queues(static_cast<std::uint8_t>(queues));
}

std::uint32_t packets_add_pair(Simulation *simulation, const std::uint32_t *out, std::size_t hops,
                               const std::uint32_t *back, std::size_t back_hops, int priority, std::uint32_t from_host,
                               std::uint32_t to_host, const reaction_plan *plan) {
  return simulation->hosts.add_queue_pair({out, hops}, {back, back_hops}, priority, from_host, to_host, plan);
}

std::uint32_t packets_add_mltcp_job(Simulation *simulation, const mltcp_plan *plan) {
  return simulation->hosts.add_mltcp_job(*plan);
}

void packets_join(Simulation *simulation, std::uint32_t pair, std::uint32_t mltcp_job) {
  simulation->hosts.join(pair, mltcp_job);
}

std::uint32_t packets_add_connection(Simulation *simulation, const std::uint32_t *out, std::size_t hops,
                                     const std::uint32_t *back, std::size_t back_hops, int priority,
                                     std::uint32_t from_host, std::uint32_t to_host, const packets::TcpPlan *plan) {
  return simulation->hosts.add_connection({out, hops}, {back, back_hops}, priority, from_host, to_host, *plan);
}

std::uint32_t packets_add_job(Simulation *simulation, const JobNumbers *numbers, const double *stretches,
                              std::size_t count) {
  packets::JobPlan plan;
  plan.workers = static_cast<std::uint32_t>(numbers->workers);
  plan.iterations = numbers->iterations;
  plan.begins = numbers->begins;
  plan.departs = numbers->departs < 0 ? packets::kNever : numbers->departs;
  plan.timetable = {numbers->shift, numbers->period, numbers->threshold, numbers->late};
  plan.stretches.assign(stretches, stretches + count);
  return simulation->jobs.add_job(plan);
}

void packets_add_phase(Simulation *simulation, std::uint32_t job, std::int64_t length_ps, int sends) {
  simulation->jobs.add_phase(job, length_ps, sends != 0);
}

void packets_add_message(Simulation *simulation, std::uint32_t job, std::uint32_t pair, std::uint32_t sender,
                         std::uint32_t receiver, std::int64_t bytes, std::int64_t lead, const std::uint32_t *feeders,
                         std::size_t count) {
  simulation->jobs.add_message(job, pair, sender, receiver, bytes, lead, {feeders, count});
}

// Simulates at most that many events; returns how many are left.
std::int64_t packets_run(Simulation *simulation, std::int64_t until_ps, std::int64_t events, int while_jobs) {
  return simulation->run(until_ps, events, while_jobs != 0);
}

std::size_t packets_running(const Simulation *simulation) { return simulation->jobs.running(); }
std::int64_t packets_now(const Simulation *simulation) { return simulation->now(); }
std::int64_t packets_last_end(const Simulation *simulation) { return simulation->jobs.last_end(); }
std::int64_t packets_paused_since(const Simulation *simulation, std::uint32_t port) {
  return simulation->fabric.ports[port].first_paused_since();
}
std::int64_t packets_hops(const Simulation *simulation) { return simulation->forwarding.hops(); }
std::size_t packets_pool(const Simulation *simulation) { return simulation->forwarding.packets.size(); }

std::int64_t packets_completed(const Simulation *simulation, std::uint32_t job) {
  return simulation->jobs.completed(job);
}

// Writes the first `count` iterations of a worker.
void packets_iterations(const Simulation *simulation, std::uint32_t job, std::uint32_t rank, std::size_t count,
                        packets::IterationRecord *into) {
  std::copy_n(simulation->jobs.records(job, rank).begin(), count, into);
}

std::size_t packets_sample_count(const Simulation *simulation) { return simulation->sample_count(); }
std::size_t packets_row(const Simulation *simulation) { return simulation->row(); }
void packets_samples(const Simulation *simulation, std::int64_t *into) {
  std::ranges::copy(simulation->samples(), into);
}

// Writes the port and the host of each counter of marks, if `into` is not null; returns the number of counters.
std::size_t packets_mark_counters(const Simulation *simulation, std::uint32_t *into) {
  for (const auto &each : simulation->fabric.mark_counters())
    if (into) {
      *into++ = each.port;
      *into++ = each.host;
    }
  return simulation->fabric.mark_counters().size();
}

void packets_pair_result(Simulation *simulation, std::uint32_t pair, PairResult *into) {
  const packets::QueuePair &found = simulation->hosts.pairs[pair];
  *into = {found.packets, found.resent, found.delivered, found.marked, found.acked, {}};
  if (found.reaction_point)
    reaction_counters(found.reaction_point, into->reaction);
}

// The queue pair must be a TCP connection.
void packets_connection_result(Simulation *simulation, std::uint32_t pair, ConnectionResult *into) {
  const packets::Connection &c = simulation->hosts.tcp[simulation->hosts.pairs[pair].tcp];
  *into = {c.counters.timeouts,
           c.counters.probes,
           c.counters.recoveries,
           c.counters.reductions_by_marks,
           c.counters.acks,
           c.lost,
           c.board.in_flight(),
           c.view.cwnd,
           c.view.ssthresh,
           c.srtt,
           c.min_rtt,
           {}};
  congestion_read_state(c.control, &into->state);
}
}
