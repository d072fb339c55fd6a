// SPDX-License-Identifier: Apache-2.0
#include "roundabout/models/packets/native/hosts.hpp"

#include "roundabout/models/packets/native/jobs/jobs.hpp"

#include <algorithm>
#include <tuple>
#include <unordered_map>

namespace packets {

Hosts::Hosts(EventQueue &events, Random &random, const nic_plan &nic, Fabric &fabric, Forwarding &forwarding,
             std::size_t count, Jobs &jobs)
    : counters(count), tcp(events, random, fabric, forwarding, *this), window(events, nic, fabric, forwarding, *this),
      events_(events), random_(random), nic_(nic), fabric_(fabric), forwarding_(forwarding), jobs_(jobs),
      roce_sender_(events, random, nic, fabric, forwarding, *this), roce_receiver_(nic, fabric, forwarding, *this) {}

Hosts::~Hosts() {
  for (QueuePair &each : pairs)
    reaction_destroy(each.reaction_point);
}

std::uint32_t Hosts::add_mltcp_job(const mltcp_plan &plan) {
  mltcp_jobs_.emplace_back(mltcp_job_create(&plan));
  return static_cast<std::uint32_t>(mltcp_jobs_.size() - 1);
}

void Hosts::join(std::uint32_t pair, std::uint32_t job) {
  if (pairs[pair].tcp != kNone)
    tcp.join(pairs[pair].tcp, mltcp_jobs_[job].get());
  else if (pairs[pair].window != kNone)
    window.join(pairs[pair].window, mltcp_jobs_[job].get());
  else if (pairs[pair].reaction_point)
    reaction_join(pairs[pair].reaction_point, mltcp_jobs_[job].get());
}

std::uint32_t Hosts::add_queue_pair(std::span<const std::uint32_t> out, std::span<const std::uint32_t> back,
                                    int priority, std::uint32_t from_host, std::uint32_t to_host,
                                    const reaction_plan *plan) {
  QueuePair pair;
  std::tie(pair.out, pair.back) = fabric_.add_routes(out, back, from_host, to_host);
  pair.priority = static_cast<std::uint8_t>(priority);
  pair.from_host = from_host;
  pair.to_host = to_host;
  if (plan && !out.empty())
    attach(pair, *plan);
  pairs.push_back(pair);
  return static_cast<std::uint32_t>(pairs.size() - 1);
}

void Hosts::attach(QueuePair &pair, const reaction_plan &plan) {
  roce_sender_.attach(pair, plan);
  roce_receiver_.attach(pair, plan);
}

std::uint32_t Hosts::add_connection(std::span<const std::uint32_t> out, std::span<const std::uint32_t> back,
                                    int priority, std::uint32_t from_host, std::uint32_t to_host,
                                    const tcp_plan &plan) {
  const std::uint32_t pair = add_queue_pair(out, back, priority, from_host, to_host, nullptr);
  if (!out.empty())
    pairs[pair].tcp = tcp.add(plan, from_host);
  return pair;
}

std::uint32_t Hosts::add_window_flow(std::span<const std::uint32_t> out, std::span<const std::uint32_t> back,
                                     int priority, std::uint32_t from_host, std::uint32_t to_host,
                                     const window_plan &plan) {
  const std::uint32_t pair = add_queue_pair(out, back, priority, from_host, to_host, nullptr);
  if (!out.empty())
    pairs[pair].window = window.add(pairs[pair], plan);
  return pair;
}

std::uint32_t Hosts::add_queue_pair_like(std::uint32_t index, const reaction_plan *plan) {
  const QueuePair &like = pairs[index];
  QueuePair pair;
  pair.out = fabric_.copy_route(like.out);
  pair.back = fabric_.copy_route(like.back);
  pair.priority = like.priority;
  pair.from_host = like.from_host;
  pair.to_host = like.to_host;
  if (like.tcp != kNone)
    pair.tcp = tcp.add(tcp[like.tcp].plan, pair.from_host);
  else if (like.window != kNone)
    pair.window = window.add(pair, window_plan(window[like.window].plan));
  else if (like.out != kNone)
    attach(pair, *plan);
  pairs.push_back(pair);
  const auto added = static_cast<std::uint32_t>(pairs.size() - 1);
  events_.add_queue_pair(added);
  return added;
}

// --- routes ----------------------------------------------------------------------------------------------------------

void Hosts::change_route(std::uint32_t pair, Picos at, std::span<const std::uint32_t> out,
                         std::span<const std::uint32_t> back) {
  const QueuePair &own = pairs[pair];
  const auto [there, back_again] = fabric_.add_routes(out, back, own.from_host, own.to_host);
  route_changes_.push_back({at, pair, there, back_again});
}

void Hosts::begin() {
  std::ranges::stable_sort(route_changes_, {}, &RouteChange::at);
  for (std::uint32_t i = 0; i < route_changes_.size(); i++)
    if (i == 0 || route_changes_[i].at != route_changes_[i - 1].at)
      events_.delay(route_changes_[i].at, RouteEvent{i});
}

// Queue pairs that were added like another one have its routes, and change with it.
void Hosts::handle(const RouteEvent &event, Picos) {
  std::unordered_map<std::uint32_t, const RouteChange *> change_of; // by the first hop of the present route
  for (std::size_t i = event.first_change;
       i < route_changes_.size() && route_changes_[i].at == route_changes_[event.first_change].at; i++)
    change_of[pairs[route_changes_[i].pair].out] = &route_changes_[i];
  for (QueuePair &pair : pairs)
    if (const auto found = change_of.find(pair.out); found != change_of.end()) {
      pair.out = found->second->out;
      pair.back = found->second->back;
    }
}

// --- messages --------------------------------------------------------------------------------------------------------

void Hosts::post(std::uint32_t index, Bytes begin, Bytes end, Picos length, Picos now) {
  QueuePair &pair = pairs[index];
  pair.stopped = false;
  pair.acked = pair.next = pair.begin = begin;
  if (pair.window != kNone)
    window.begin_message(pair, now);
  else
    roce_sender_.begin_message(pair);
  pair.end = end;
  pair.posted_at = now;
  pair.ps_per_byte = static_cast<double>(length) / static_cast<double>(end - begin);
  wake(index, now);
}

void Hosts::wake(std::uint32_t index, Picos now) {
  if (pairs[index].tcp != kNone)
    tcp.wake(index, now);
  else if (pairs[index].window != kNone)
    window.schedule(index, now);
  else
    roce_sender_.schedule(index, now);
}

void Hosts::stop(std::uint32_t index) {
  pairs[index].stopped = true;
  if (pairs[index].tcp != kNone)
    tcp.stop(index);
  if (pairs[index].window != kNone)
    window.leave(pairs[index].window);
  reaction_leave(pairs[index].reaction_point);
  events_.cancel({EventKind::kQueuePair, index});
}

void Hosts::open(std::uint32_t index, Bytes end, Picos now) {
  QueuePair &pair = pairs[index];
  pair.stopped = true; // It sends nothing before its handshake.
  pair.begin = pair.next = pair.acked = pair.expected;
  pair.end = end;
  if (pair.tcp != kNone) {
    tcp.renew(pair.tcp, pair.begin);
    shake_hands(index);
  } else if (pair.window != kNone) {
    window.begin_connection(pair, now);
  } else if (pair.out != kNone) {
    roce_sender_.begin_connection(pair);
  }
  events_.cancel({EventKind::kQueuePair, index});
  events_.delay(now + fabric_.empty_round_trip(pair.out, pair.back), HandshakeEvent{index});
}

void Hosts::handle(const HandshakeEvent &event, Picos now) {
  const QueuePair &pair = pairs[event.queue_pair];
  post(event.queue_pair, pair.begin, pair.end, 0, now);
}

void Hosts::shake_hands(std::uint32_t index) {
  if (pairs[index].tcp != kNone)
    tcp.note_handshake(pairs[index].tcp, fabric_.empty_round_trip(pairs[index].out, pairs[index].back));
}

Bytes Hosts::allowed_by_feeders(const QueuePair &pair) const {
  Bytes allowed = pair.end - pair.begin;
  for (const Feeder &each : pair.feeders) {
    const Bytes fed = std::max<Bytes>(pairs[each.pair].expected - each.begin, 0);
    if (fed < each.bytes)
      allowed = std::min(allowed, pair.lead + fed);
  }
  return allowed;
}

void Hosts::advance(std::uint32_t index, Bytes bytes, Picos now) {
  QueuePair &pair = pairs[index];
  pair.expected += bytes;
  for (const std::uint32_t follower : pair.followers)
    if (pairs[follower].waits_for_lead) {
      pairs[follower].waits_for_lead = false;
      wake(follower, now);
    }
  if (pair.out == kNone)
    pair.acked = pair.expected;
  if (pair.expected == pair.awaited)
    jobs_.message_received(pair, now);
  if (pair.out == kNone && pair.expected == pair.end && pair.is_done())
    complete(pair, now);
}

void Hosts::complete(const QueuePair &pair, Picos now) { jobs_.message_taken(pair, now); }

// --- packets ---------------------------------------------------------------------------------------------------------

void Hosts::on_timer(std::uint32_t index, Picos now) {
  if (pairs[index].tcp != kNone)
    tcp.on_timer(index, now);
  else if (pairs[index].window != kNone)
    window.on_timer(index, now);
  else
    roce_sender_.on_timer(index, now);
}

std::uint32_t Hosts::send_next(Port &port, int priority, Picos now) {
  QueuePairList &turn = port.turns[priority];
  const std::uint32_t index = turn.head;
  QueuePair &pair = pairs[index];
  turn.head = pair.next_in_turn;
  if (turn.empty())
    port.ready &= static_cast<std::uint8_t>(~bit(priority));
  pair.waits_for_turn = false;
  if (pair.tcp != kNone)
    return tcp.send_next(index, now);
  return pair.window != kNone ? window.send_next(index, now) : roce_sender_.send_next(index, now);
}

void Hosts::receive(std::uint32_t which, Picos now) {
  const Packet packet = forwarding_.packets[which];
  forwarding_.packets.give_back(which);
  const bool is_tcp = pairs[packet.pair].tcp != kNone, has_window = pairs[packet.pair].window != kNone;
  switch (packet.kind) {
  case Kind::kData:
    if (is_tcp)
      tcp.take_segment(packet, now);
    else if (has_window)
      window.take_data(packet, which, now);
    else
      roce_receiver_.take_data(packet, now);
    break;
  case Kind::kTrimmed:
    window.take_trimmed(packet.pair, which, now);
    break;
  case Kind::kAck:
  case Kind::kNack:
    if (is_tcp)
      tcp.take_ack(packet, which, now);
    else if (has_window)
      packet.kind == Kind::kAck ? window.take_ack(packet, which, now) : window.take_nack(packet.pair, which, now);
    else
      roce_sender_.take_ack(packet, roce_receiver_.sack_of(which), now);
    break;
  case Kind::kCnp: {
    const auto jitter = static_cast<Picos>(static_cast<double>(nic_.cnp_jitter_ps) * random_.uniform());
    events_.delay(now + nic_.cnp_delay_ps + jitter, CnpEvent{packet.pair});
    break;
  }
  }
}

std::uint32_t Hosts::make_packet(std::uint32_t index, Kind kind, Bytes seq, Bytes frame_bytes) {
  const std::uint32_t which = forwarding_.packets.take();
  Packet &packet = forwarding_.packets[which];
  packet.seq = seq;
  packet.pair = index;
  packet.payload = 0;
  packet.frame = static_cast<std::uint16_t>(frame_bytes);
  packet.kind = kind;
  packet.priority = kind == Kind::kCnp ? kCnpPriority : pairs[index].priority;
  packet.marked = packet.wants_ack = packet.is_ecn = packet.echo = packet.is_duplicate = false;
  packet.blocks = 0;
  return which;
}

std::uint32_t Hosts::make_data(std::uint32_t index, Bytes seq, Bytes payload, Bytes header_bytes, Picos now) {
  const std::uint32_t which = make_packet(index, Kind::kData, seq, payload + header_bytes);
  Packet &packet = forwarding_.packets[which];
  packet.payload = static_cast<std::uint16_t>(payload);
  packet.is_ecn = true;
  fabric_.begin(packet, pairs[index].out, now);
  return which;
}

std::uint32_t Hosts::make_reply(std::uint32_t index, Kind kind, Bytes frame_bytes) {
  return make_packet(index, kind, pairs[index].expected, frame_bytes);
}

void Hosts::send_reply(std::uint32_t which, Picos now) {
  Packet &packet = forwarding_.packets[which];
  forwarding_.enqueue(fabric_.begin(packet, pairs[packet.pair].back, now), which, now);
}

// --- turns at the NIC ------------------------------------------------------------------------------------------------

void Hosts::request_turn(std::uint32_t index, Picos now) {
  rejoin_turn(index);
  forwarding_.wake(fabric_.nic_port(pairs[index].out), now);
}

void Hosts::rejoin_turn(std::uint32_t index) {
  QueuePair &pair = pairs[index];
  Port &port = fabric_.ports[fabric_.nic_port(pair.out)];
  QueuePairList &turn = port.turns[pair.priority];
  pair.waits_for_turn = true;
  pair.next_in_turn = kNone;
  (turn.empty() ? turn.head : pairs[turn.tail].next_in_turn) = index;
  turn.tail = index;
  port.ready |= bit(pair.priority);
}

void Hosts::keep_turn(std::uint32_t index) {
  QueuePair &pair = pairs[index];
  Port &port = fabric_.ports[fabric_.nic_port(pair.out)];
  QueuePairList &turn = port.turns[pair.priority];
  pair.waits_for_turn = true;
  pair.next_in_turn = turn.head;
  if (turn.empty())
    turn.tail = index;
  turn.head = index;
  port.ready |= bit(pair.priority);
}

} // namespace packets
