// SPDX-License-Identifier: Apache-2.0
#include "roundabout/models/packets/native/cross_traffic/cross_traffic.hpp"

#include <algorithm>

namespace packets {
namespace {

constexpr Picos kStreamLength = 10'000'000'000'000'000; // 10^4 s: longer than any trial

} // namespace

std::uint32_t CrossTraffic::add_traffic() {
  traffics_.emplace_back();
  return static_cast<std::uint32_t>(traffics_.size() - 1);
}

void CrossTraffic::add_pool(std::uint32_t index, std::uint32_t pair, std::int64_t max_connections, bool is_fresh,
                            const reaction_plan *plan) {
  Traffic &traffic = traffics_[index];
  Pool pool;
  if (plan)
    pool.plan = *plan;
  pool.first_pair = pair;
  pool.max_connections = static_cast<std::size_t>(max_connections);
  pool.is_fresh = is_fresh;
  traffic.pools.push_back(std::move(pool));
}

void CrossTraffic::set_flows(std::uint32_t index, std::span<const flow_plan> flows) {
  traffics_[index].flows.assign(flows.begin(), flows.end());
  traffics_[index].records.resize(flows.size(), {.start_ps = -1, .end_ps = -1});
}

void CrossTraffic::set_streams(std::uint32_t index, const stream_plan &plan) { traffics_[index].streams = plan; }

void CrossTraffic::begin() {
  for (std::uint32_t i = 0; i < traffics_.size(); i++) {
    const Traffic &traffic = traffics_[i];
    const bool has_streams = traffic.streams.streams > 0;
    events_.set({EventKind::kCrossTraffic, i}, has_streams             ? 0
                                               : traffic.flows.empty() ? kNever
                                                                       : traffic.flows[0].at_ps);
  }
}

void CrossTraffic::handle(std::uint32_t index, Picos now) {
  const EventTarget target{EventKind::kCrossTraffic, index};
  Traffic &traffic = traffics_[index];
  if (traffic.streams.streams > 0) {
    if (traffic.pools[0].pairs.empty())
      begin_streams(index, now);
    else
      compare_rate(index, now);
    events_.set(target, now + traffic.streams.step_ps);
    return;
  }
  while (traffic.next < traffic.flows.size() && traffic.flows[traffic.next].at_ps <= now)
    launch(index, static_cast<std::uint32_t>(traffic.next++), now);
  events_.set(target, traffic.next < traffic.flows.size() ? traffic.flows[traffic.next].at_ps : kNever);
}

// Makes one more connection of a pool: the one that is in the network, or another like it.
std::uint32_t CrossTraffic::connect(std::uint32_t index, std::uint32_t place) {
  Pool &pool = traffics_[index].pools[place];
  const std::uint32_t pair =
      pool.pairs.empty() ? pool.first_pair : hosts_.add_queue_pair_like(pool.first_pair, &pool.plan);
  pool.pairs.push_back(pair);
  if (slots_.size() <= pair)
    slots_.resize(pair + 1);
  slots_[pair] = {index, place, kNone};
  hosts_.shake_hands(pair);
  return pair;
}

void CrossTraffic::launch(std::uint32_t index, std::uint32_t flow, Picos now) {
  const auto place = static_cast<std::uint32_t>(traffics_[index].flows[flow].pool);
  Pool &pool = traffics_[index].pools[place];
  if (!pool.idle.empty()) {
    const std::uint32_t pair = pool.idle.back();
    pool.idle.pop_back();
    begin_flow(pair, flow, now);
  } else if (pool.pairs.size() < pool.max_connections) {
    begin_flow(connect(index, place), flow, now);
  } else {
    pool.waiting.push_back(flow);
  }
}

void CrossTraffic::begin_flow(std::uint32_t index, std::uint32_t flow, Picos now) {
  Slot &slot = slots_[index];
  Traffic &traffic = traffics_[slot.traffic];
  const Pool &pool = traffic.pools[slot.pool];
  slot.flow = flow;
  traffic.records[flow].start_ps = now;
  QueuePair &pair = hosts_.pairs[index];
  const Bytes begin = pair.expected, end = begin + traffic.flows[flow].bytes;
  pair.awaited = end;
  if (pool.is_fresh)
    hosts_.open(index, end, now);
  else
    hosts_.post(index, begin, end, 0, now);
}

void CrossTraffic::message_received(std::uint32_t index, Picos now) {
  const Slot &slot = slots_[index];
  if (slot.flow != kNone)
    traffics_[slot.traffic].records[slot.flow].end_ps = now;
}

void CrossTraffic::message_taken(std::uint32_t index, Picos now) {
  Slot &slot = slots_[index];
  if (slot.flow == kNone)
    return;
  slot.flow = kNone;
  Pool &pool = traffics_[slot.traffic].pools[slot.pool];
  if (pool.served < pool.waiting.size()) {
    const std::uint32_t next = pool.waiting[pool.served++];
    if (pool.served == pool.waiting.size()) {
      pool.waiting.clear();
      pool.served = 0;
    }
    begin_flow(index, next, now);
  } else {
    pool.idle.push_back(index);
  }
}

void CrossTraffic::begin_streams(std::uint32_t index, Picos now) {
  Traffic &traffic = traffics_[index];
  traffic.tried_at = now;
  traffic.tried_before = result(index).delivered;
  const double each = traffic.streams.bytes_per_s / static_cast<double>(traffic.streams.streams);
  for (std::int64_t i = 0; i < traffic.streams.streams; i++) {
    const std::uint32_t number = connect(index, 0);
    QueuePair &pair = hosts_.pairs[number];
    pair.awaited = static_cast<Bytes>(each * (static_cast<double>(kStreamLength) / kPsPerSecond));
    hosts_.post(number, 0, pair.awaited, kStreamLength, now);
  }
}

void CrossTraffic::compare_rate(std::uint32_t index, Picos now) {
  Traffic &traffic = traffics_[index];
  stream_plan &plan = traffic.streams;
  const Picos lasted = now - traffic.tried_at;
  const Bytes unwritten = plan.streams * plan.write_bytes;
  const auto arrived = static_cast<double>(result(index).delivered - traffic.tried_before + unwritten);
  const double wanted = plan.min_share * plan.bytes_per_s * static_cast<double>(lasted) / kPsPerSecond;
  if (lasted < plan.probe_ps || plan.streams >= plan.max_streams || arrived >= wanted)
    return;
  const auto &pairs = traffic.pools[0].pairs;
  for (auto each = pairs.end() - plan.streams; each != pairs.end(); each++)
    hosts_.stop(*each);
  plan.streams++;
  begin_streams(index, now);
}

traffic_result CrossTraffic::result(std::uint32_t index) const {
  const Traffic &traffic = traffics_[index];
  traffic_result found{0, 0, 0, 0, 0, 0, traffic.streams.streams};
  for (const Pool &pool : traffic.pools)
    for (const std::uint32_t each : pool.pairs) {
      const QueuePair &pair = hosts_.pairs[each];
      found.delivered += pair.expected;
      found.packets += pair.packets;
      found.resent += pair.resent;
      found.arrived += pair.delivered;
      found.marked += pair.marked;
      found.connections++;
    }
  return found;
}

} // namespace packets
