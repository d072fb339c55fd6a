// SPDX-License-Identifier: Apache-2.0
// The engine for roundabout/models/packets/engine.py: plain structures and numbers go in and out.
#include "roundabout/models/packets/native/engine.hpp"

#include <algorithm>

using packets::Engine;

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

Engine *packets_engine(const packets::NicPlan *nic, const packets::PortPlan *ports, std::size_t count,
                       std::size_t hosts, std::int64_t sample_ps) {
  return new Engine(*nic, {ports, count}, hosts, sample_ps);
}

void packets_free(Engine *engine) { delete engine; }

// What a switch's ports share, with the headroom of the link opposite to each port.
void packets_share_buffer(Engine *engine, const packets::BufferPlan *plan, const std::uint32_t *ports,
                          const std::int64_t *headroom, std::size_t count) {
  engine->network.share_buffer(*plan, {ports, count}, {headroom, count});
}

void packets_weigh_queues(Engine *engine, std::uint32_t port, const std::int64_t *quanta, std::size_t count) {
  engine->network.weigh_queues(port, {quanta, count});
}

void packets_use_red(Engine *engine, std::uint32_t port, double weight) { engine->network.use_red(port, weight); }
void packets_sample_queues(Engine *engine, int queues) { engine->sample_queues(static_cast<std::uint8_t>(queues)); }

std::uint32_t packets_add_pair(Engine *engine, const std::uint32_t *out, std::size_t hops, const std::uint32_t *back,
                               std::size_t back_hops, int priority, std::uint32_t from_host, std::uint32_t to_host,
                               const reaction_plan *plan) {
  return engine->network.add_pair({out, hops}, {back, back_hops}, priority, from_host, to_host, plan);
}

std::uint32_t packets_add_mltcp_job(Engine *engine, const mltcp_plan *plan) {
  return engine->network.add_mltcp_job(*plan);
}

void packets_join(Engine *engine, std::uint32_t pair, std::uint32_t mltcp_job) {
  engine->network.join(pair, mltcp_job);
}

std::uint32_t packets_add_connection(Engine *engine, const std::uint32_t *out, std::size_t hops,
                                     const std::uint32_t *back, std::size_t back_hops, int priority,
                                     std::uint32_t from_host, std::uint32_t to_host, const packets::TcpPlan *plan) {
  return engine->network.add_connection({out, hops}, {back, back_hops}, priority, from_host, to_host, *plan);
}

std::uint32_t packets_add_job(Engine *engine, const JobNumbers *numbers, const double *stretches, std::size_t count) {
  packets::JobPlan plan;
  plan.workers = static_cast<std::uint32_t>(numbers->workers);
  plan.iterations = numbers->iterations;
  plan.begins = numbers->begins;
  plan.departs = numbers->departs < 0 ? packets::kNever : numbers->departs;
  plan.timetable = {numbers->shift, numbers->period, numbers->threshold, numbers->late};
  plan.stretches.assign(stretches, stretches + count);
  return engine->jobs.add_job(plan);
}

void packets_add_phase(Engine *engine, std::uint32_t job, std::int64_t length_ps, int sends) {
  engine->jobs.add_phase(job, length_ps, sends != 0);
}

void packets_add_message(Engine *engine, std::uint32_t job, std::uint32_t pair, std::uint32_t sender,
                         std::uint32_t receiver, std::int64_t bytes, std::int64_t lead, const std::uint32_t *feeders,
                         std::size_t count) {
  engine->jobs.add_message(job, pair, sender, receiver, bytes, lead, {feeders, count});
}

// Plays at most that many events; returns how many were not needed.
std::int64_t packets_run(Engine *engine, std::int64_t until_ps, std::int64_t events, int while_jobs) {
  return engine->run(until_ps, events, while_jobs != 0);
}

std::size_t packets_running(const Engine *engine) { return engine->jobs.running(); }
std::int64_t packets_now(const Engine *engine) { return engine->now(); }
std::int64_t packets_last_end(const Engine *engine) { return engine->jobs.last_end(); }
std::int64_t packets_paused_since(const Engine *engine, std::uint32_t port) {
  return engine->network.paused_since(port);
}
std::int64_t packets_hops(const Engine *engine) { return engine->network.hops(); }
std::size_t packets_pool(const Engine *engine) { return engine->network.pool_size(); }

std::int64_t packets_completed(const Engine *engine, std::uint32_t job) { return engine->jobs.completed(job); }

// Start, compute_end, end and delay of the first `count` iterations of a worker.
void packets_iterations(const Engine *engine, std::uint32_t job, std::uint32_t rank, std::size_t count,
                        packets::IterationRecord *into) {
  std::copy_n(engine->jobs.records(job, rank).begin(), count, into);
}

std::size_t packets_sample_count(const Engine *engine) { return engine->sample_count(); }
std::size_t packets_row(const Engine *engine) { return engine->row(); }
void packets_samples(const Engine *engine, std::int64_t *into) { std::ranges::copy(engine->samples(), into); }

// The port and the host of each counter of marks; how many there are.
std::size_t packets_mark_counters(const Engine *engine, std::uint32_t *into) {
  for (const auto &each : engine->network.mark_counters())
    if (into) {
      *into++ = each.port;
      *into++ = each.host;
    }
  return engine->network.mark_counters().size();
}

void packets_pair_result(Engine *engine, std::uint32_t pair, PairResult *into) {
  const packets::QueuePair &found = engine->network.pair(pair);
  *into = {found.packets, found.resent, found.delivered, found.marked, found.acked, {}};
  if (found.reaction_point)
    reaction_counters(found.reaction_point, into->reaction);
}

// Of a queue pair that is a connection of TCP.
void packets_connection_result(Engine *engine, std::uint32_t pair, ConnectionResult *into) {
  const packets::Connection &c = engine->network.tcp()[engine->network.pair(pair).tcp];
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
