// SPDX-License-Identifier: Apache-2.0
#include "roundabout/models/packets/native/c_api.h"

#include "roundabout/models/packets/native/simulation.hpp"

#include <algorithm>

struct simulation : packets::Simulation {
  using Simulation::Simulation;
};

simulation *packets_create(const nic_plan *nic, const port_plan *ports, size_t count, size_t hosts, int64_t sample_ps,
                           int64_t lead_ps) {
  return new simulation(*nic, {ports, count}, hosts, sample_ps, lead_ps);
}
void packets_free(simulation *simulation) { delete simulation; }

void packets_share_buffer(simulation *simulation, const buffer_plan *plan, const uint32_t *ports,
                          const int64_t *headroom_bytes, size_t count) {
  simulation->mmu.share_buffer(*plan, {ports, count}, {headroom_bytes, count});
}
void packets_weigh_queues(simulation *simulation, uint32_t port, const int64_t *quanta_bytes, size_t count) {
  simulation->forwarding.weigh_queues(port, {quanta_bytes, count});
}
void packets_use_red(simulation *simulation, uint32_t port, double weight) { simulation->use_red(port, weight); }
void packets_sample_queues(simulation *simulation, int queues) {
  simulation->sample_queues(static_cast<uint8_t>(queues));
}

void packets_set_routing(simulation *simulation, const routing_plan *plan) { simulation->fabric.set_routing(*plan); }
void packets_change_link(simulation *simulation, uint32_t port, const link_plan *plan) {
  link_plan led = *plan;
  led.at_ps += simulation->lead();
  simulation->link_changes.add(port, led);
}
void packets_avoid_links(simulation *simulation, int64_t at_ps, const uint32_t *ports, size_t count) {
  simulation->link_changes.avoid({ports, count}, at_ps + simulation->lead());
}

uint32_t packets_add_pair(simulation *simulation, const uint32_t *out, size_t hops, const uint32_t *back,
                          size_t back_hops, int priority, uint32_t from_host, uint32_t to_host,
                          const reaction_plan *plan) {
  return simulation->hosts.add_queue_pair({out, hops}, {back, back_hops}, priority, from_host, to_host, plan);
}
uint32_t packets_add_connection(simulation *simulation, const uint32_t *out, size_t hops, const uint32_t *back,
                                size_t back_hops, int priority, uint32_t from_host, uint32_t to_host,
                                const tcp_plan *plan) {
  return simulation->hosts.add_connection({out, hops}, {back, back_hops}, priority, from_host, to_host, *plan);
}
uint32_t packets_add_window_flow(simulation *simulation, const uint32_t *out, size_t hops, const uint32_t *back,
                                 size_t back_hops, int priority, uint32_t from_host, uint32_t to_host,
                                 const window_plan *plan) {
  return simulation->hosts.add_window_flow({out, hops}, {back, back_hops}, priority, from_host, to_host, *plan);
}
void packets_change_route(simulation *simulation, uint32_t pair, int64_t at_ps, const uint32_t *out, size_t hops,
                          const uint32_t *back, size_t back_hops) {
  simulation->hosts.change_route(pair, at_ps + simulation->lead(), {out, hops}, {back, back_hops});
}
uint32_t packets_add_mltcp_job(simulation *simulation, const mltcp_plan *plan) {
  return simulation->hosts.add_mltcp_job(*plan);
}
void packets_join(simulation *simulation, uint32_t pair, uint32_t mltcp_job) {
  simulation->hosts.join(pair, mltcp_job);
}

uint32_t packets_add_job(simulation *simulation, const job_plan *plan, const double *stretches, size_t count) {
  job_plan led = *plan;
  led.begins_ps += simulation->lead();
  led.shift_ps += simulation->lead();
  led.departs_ps = plan->departs_ps < 0 ? packets::kNever : plan->departs_ps + simulation->lead();
  return simulation->jobs.add_job(led, {stretches, count});
}
void packets_add_phase(simulation *simulation, uint32_t job, int64_t length_ps, int sends) {
  simulation->jobs.add_phase(job, length_ps, sends != 0);
}
void packets_add_message(simulation *simulation, uint32_t job, uint32_t pair, uint32_t sender, uint32_t receiver,
                         int64_t bytes, int64_t lead_bytes, const uint32_t *feeders, size_t count) {
  simulation->jobs.add_message(job, pair, sender, receiver, bytes, lead_bytes, {feeders, count});
}

uint32_t packets_add_traffic(simulation *simulation) { return simulation->cross_traffic.add_traffic(); }
void packets_add_pool(simulation *simulation, uint32_t traffic, uint32_t pair, int64_t max_connections, int is_fresh,
                      const reaction_plan *plan) {
  simulation->cross_traffic.add_pool(traffic, pair, max_connections, is_fresh != 0, plan);
}
void packets_set_flows(simulation *simulation, uint32_t traffic, const flow_plan *flows, size_t count) {
  simulation->cross_traffic.set_flows(traffic, {flows, count});
}
void packets_set_streams(simulation *simulation, uint32_t traffic, const stream_plan *plan) {
  simulation->cross_traffic.set_streams(traffic, *plan);
}

int64_t packets_run(simulation *simulation, int64_t until_ps, int64_t events, int while_jobs) {
  return simulation->run(until_ps, events, while_jobs != 0);
}
size_t packets_running(const simulation *simulation) { return simulation->jobs.running(); }
int64_t packets_now_ps(const simulation *simulation) { return simulation->now(); }
int64_t packets_last_end_ps(const simulation *simulation) { return simulation->jobs.last_end(); }
int64_t packets_paused_since_ps(const simulation *simulation, uint32_t port) {
  return simulation->fabric.ports[port].first_paused_since();
}
int64_t packets_hops(const simulation *simulation) { return simulation->forwarding.hops(); }
int64_t packets_lost(const simulation *simulation, uint32_t port) { return simulation->fabric.ports[port].lost_data; }
size_t packets_pool(const simulation *simulation) { return simulation->forwarding.packets.size(); }

int64_t packets_completed(const simulation *simulation, uint32_t job) { return simulation->jobs.completed(job); }
void packets_iterations(const simulation *simulation, uint32_t job, uint32_t rank, size_t count,
                        iteration_record *into) {
  const packets::Picos lead = simulation->lead();
  for (const iteration_record &each : std::span(simulation->jobs.records(job, rank)).first(count))
    *into++ = {each.start_ps - lead, each.compute_end_ps - lead, each.end_ps - lead, each.delay_ps};
}

size_t packets_sample_count(const simulation *simulation) { return simulation->sample_count(); }
size_t packets_row(const simulation *simulation) { return simulation->row(); }
void packets_samples(const simulation *simulation, int64_t *into) { simulation->copy_samples(into); }
size_t packets_mark_counters(const simulation *simulation, uint32_t *into) {
  for (const auto &each : simulation->fabric.mark_counters())
    if (into) {
      *into++ = each.port;
      *into++ = each.host;
    }
  return simulation->fabric.mark_counters().size();
}

void packets_pair_result(const simulation *simulation, uint32_t pair, pair_result *into) {
  const packets::QueuePair &found = simulation->hosts.pairs[pair];
  *into = {found.packets, found.resent, found.delivered, found.marked, found.acked, 0, 0, 0, 0, 0, 0};
  if (found.reaction_point)
    reaction_read(found.reaction_point, into);
}

void packets_connection_result(const simulation *simulation, uint32_t pair, connection_result *into) {
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
           0,
           0,
           0,
           0};
  congestion_read(c.control, into);
}

void packets_window_result(const simulation *simulation, uint32_t pair, window_result *into) {
  const packets::WindowFlow &flow = simulation->hosts.window[simulation->hosts.pairs[pair].window];
  *into = {0, flow.srtt, flow.timeouts, 0, 0, 0, 0, 0, 0};
  window_read(flow.control, into);
}

void packets_flow_records(const simulation *simulation, uint32_t traffic, flow_record *into) {
  std::ranges::copy(simulation->cross_traffic.records(traffic), into);
}
void packets_traffic_result(const simulation *simulation, uint32_t traffic, traffic_result *into) {
  *into = simulation->cross_traffic.result(traffic);
}
