// SPDX-License-Identifier: Apache-2.0
// The C API of cross traffic, which roundabout/models/packets/engine.py calls.
#include "roundabout/models/packets/native/simulation.hpp"

#include <algorithm>

using packets::Simulation;

extern "C" {

// Jobs and samples begin that long after cross traffic.
void packets_set_lead(Simulation *simulation, std::int64_t lead_ps) { simulation->set_lead(lead_ps); }

std::uint32_t packets_add_traffic(Simulation *simulation) { return simulation->cross_traffic.add_traffic(); }

// The pair is a TCP connection if there is no plan.
void packets_add_pool(Simulation *simulation, std::uint32_t traffic, std::uint32_t pair, std::int64_t most_connections,
                      int is_fresh, const reaction_plan *plan) {
  simulation->cross_traffic.add_pool(traffic, pair, most_connections, is_fresh != 0, plan);
}

void packets_set_flows(Simulation *simulation, std::uint32_t traffic, const packets::PlannedFlow *flows,
                       std::size_t count) {
  simulation->cross_traffic.set_flows(traffic, {flows, count});
}

void packets_set_streams(Simulation *simulation, std::uint32_t traffic, const packets::StreamPlan *plan) {
  simulation->cross_traffic.set_streams(traffic, *plan);
}

// Writes one record for each flow.
void packets_flow_records(const Simulation *simulation, std::uint32_t traffic, packets::FlowRecord *into) {
  std::ranges::copy(simulation->cross_traffic.records(traffic), into);
}

void packets_traffic_result(const Simulation *simulation, std::uint32_t traffic, packets::TrafficResult *into) {
  *into = simulation->cross_traffic.result(traffic);
}
}
