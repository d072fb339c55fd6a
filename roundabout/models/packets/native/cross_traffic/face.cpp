// SPDX-License-Identifier: Apache-2.0
// Cross traffic for roundabout/models/packets/cross_traffic.py.
#include "roundabout/models/packets/native/engine.hpp"

#include <algorithm>

using packets::Engine;

extern "C" {

// Jobs, and the samples of counters, begin that long after cross traffic.
void packets_set_lead(Engine *engine, std::int64_t lead_ps) { engine->set_lead(lead_ps); }

std::uint32_t packets_add_traffic(Engine *engine) { return engine->cross_traffic.add_traffic(); }

// Without a plan the pair is a connection of TCP.
void packets_add_pool(Engine *engine, std::uint32_t traffic, std::uint32_t pair, std::int64_t most_connections,
                      int is_fresh, const reaction_plan *plan) {
  engine->cross_traffic.add_pool(traffic, pair, most_connections, is_fresh != 0, plan);
}

void packets_set_flows(Engine *engine, std::uint32_t traffic, const packets::PlannedFlow *flows, std::size_t count) {
  engine->cross_traffic.set_flows(traffic, {flows, count});
}

void packets_set_streams(Engine *engine, std::uint32_t traffic, const packets::StreamPlan *plan) {
  engine->cross_traffic.set_streams(traffic, *plan);
}

// As many as there are flows.
void packets_flow_records(const Engine *engine, std::uint32_t traffic, packets::FlowRecord *into) {
  std::ranges::copy(engine->cross_traffic.records(traffic), into);
}

void packets_traffic_result(const Engine *engine, std::uint32_t traffic, packets::TrafficResult *into) {
  *into = engine->cross_traffic.result(traffic);
}
}
