// SPDX-License-Identifier: Apache-2.0
#include "roundabout/models/packets/native/window/window_sender.hpp"

#include "roundabout/models/packets/native/hosts.hpp"

#include <algorithm>

namespace packets {
namespace {

constexpr Picos kFirstTimeout = 1'000'000'000; // ps: a timeout before the first round-trip time, at least
constexpr int kMaxBackoff = 6;                 // doublings of the timeout
constexpr std::int64_t kLeastReordering = 5;   // packets, where windows set the limit (uet-htsim, min_retx_config)

} // namespace

WindowSender::~WindowSender() {
  for (WindowFlow &each : flows_)
    window_destroy(each.control);
}

window_path WindowSender::path_of(const QueuePair &pair) const {
  Packet full{};
  full.kind = Kind::kData;
  full.payload = static_cast<std::uint16_t>(nic_.payload_bytes);
  full.frame = static_cast<std::uint16_t>(nic_.payload_bytes + nic_.header_bytes);
  const std::vector<std::uint32_t> ports = fabric_.any_path(pair.out);
  Picos round_trip = fabric_.empty_round_trip(pair.out, pair.back);
  for (const std::uint32_t port : ports)
    round_trip += fabric_.transmission_time(fabric_.ports[port], full) - fabric_.ports[port].control_ps;
  return {.payload_bytes = nic_.payload_bytes,
          .round_trip_ps = round_trip,
          .links = static_cast<std::uint32_t>(ports.size())};
}

std::uint32_t WindowSender::add(const QueuePair &pair, const window_plan &plan) {
  const window_path path = path_of(pair);
  WindowFlow &flow = flows_.emplace_back();
  flow.control = window_create(&plan, &path);
  flow.plan = plan;
  flow.rto_min = plan.rto_min_ps;
  flow.reordering = plan.reordering;
  return static_cast<std::uint32_t>(flows_.size() - 1);
}

void WindowSender::begin_message(const QueuePair &pair, Picos now) {
  WindowFlow &flow = flows_[pair.window];
  flow.sent.clear();
  flow.in_flight = 0;
  flow.lost = 0;
  flow.first_lost = 0;
  flow.backoff = 0;
  flow.progress_at = now;
}

// --- when it sends ---------------------------------------------------------------------------------------------------

Picos WindowSender::may_send_at(QueuePair &pair, const WindowFlow &flow, Picos now) const {
  Picos created_at = now;
  pair.waits_for_lead = false;
  if (!pair.repairs) {
    if (pair.next >= pair.end)
      return kNever;
    const Bytes until = std::min(pair.next + nic_.payload_bytes, pair.end) - pair.begin;
    pair.waits_for_lead = !pair.feeders.empty() && until > hosts_.allowed_by_feeders(pair);
    if (pair.waits_for_lead)
      return kNever;
    created_at = pair.posted_at + static_cast<Picos>(static_cast<double>(until) * pair.ps_per_byte);
  }
  if (const Picos pacing = window_pacing_ps(flow.control); pacing > 0)
    return std::max({now, created_at, flow.sent_at + pacing});
  const Bytes payload = pair.repairs ? nic_.payload_bytes : payload_at(pair, pair.next);
  return flow.in_flight + payload > window_bytes(flow.control) ? kNever : std::max(now, created_at);
}

Picos WindowSender::timeout_at(const WindowFlow &flow) const {
  if (flow.in_flight == 0)
    return kNever;
  const Picos measured = flow.srtt ? flow.srtt + 4 * flow.rttvar : kFirstTimeout;
  return flow.progress_at + (std::max(measured, flow.rto_min) << flow.backoff);
}

// A flow that waits for its turn at the NIC has no timer.
void WindowSender::schedule(std::uint32_t index, Picos now) {
  QueuePair &pair = hosts_.pairs[index];
  if (pair.waits_for_turn)
    return;
  const WindowFlow &flow = flows_[pair.window];
  const Picos at = pair.stopped ? kNever : std::min(may_send_at(pair, flow, now), timeout_at(flow));
  events_.set({EventKind::kQueuePair, index}, at == kNever ? at : std::max(at, now));
}

void WindowSender::on_timer(std::uint32_t index, Picos now) {
  QueuePair &pair = hosts_.pairs[index];
  WindowFlow &flow = flows_[pair.window];
  if (may_send_at(pair, flow, now) <= now) {
    const std::uint32_t nic = fabric_.nic_port(pair.out);
    if (fabric_.ports[nic].is_idle(pair.priority, now)) {
      forwarding_.transmit(nic, send(index, now), now);
      return;
    }
    events_.cancel({EventKind::kQueuePair, index});
    hosts_.request_turn(index, now);
    return;
  }
  if (timeout_at(flow) <= now)
    on_timeout(pair, flow, now);
  schedule(index, now);
}

std::uint32_t WindowSender::send_next(std::uint32_t index, Picos now) {
  QueuePair &pair = hosts_.pairs[index];
  if (!pair.stopped && may_send_at(pair, flows_[pair.window], now) <= now)
    return send(index, now);
  schedule(index, now); // The window is smaller now, or the job has departed.
  return kNone;
}

// --- what it sends ---------------------------------------------------------------------------------------------------

std::size_t WindowSender::next_packet(QueuePair &pair, WindowFlow &flow) {
  if (!pair.repairs) {
    pair.next += payload_at(pair, pair.next);
    flow.sent.emplace_back();
    return flow.sent.size() - 1;
  }
  while (!flow.sent[flow.first_lost].is_lost)
    flow.first_lost++;
  SentPacket &packet = flow.sent[flow.first_lost];
  packet.is_lost = false;
  packet.was_resent = true;
  pair.repairs = --flow.lost > 0;
  pair.resent++;
  return flow.first_lost;
}

std::uint32_t WindowSender::send(std::uint32_t index, Picos now) {
  QueuePair &pair = hosts_.pairs[index];
  WindowFlow &flow = flows_[pair.window];
  const std::size_t place = next_packet(pair, flow);
  const Bytes seq = pair.acked + static_cast<Bytes>(place) * nic_.payload_bytes;
  const Bytes payload = payload_at(pair, seq);
  const std::uint32_t which = hosts_.make_data(index, seq, payload, nic_.header_bytes, now);
  Packet &packet = forwarding_.packets[which];
  packet.wants_ack = true;
  stamp(which, {.seq = seq, .sent_at = now, .entropy = packet.entropy});
  flow.sent[place].order = ++flow.transmissions;
  flow.sent[place].entropy = packet.entropy;
  if (flow.in_flight == 0)
    flow.progress_at = now;
  flow.in_flight += payload;
  flow.sent_at = now;
  pair.packets++;
  schedule(index, now);
  return which;
}

void WindowSender::stamp(std::uint32_t which, const Stamp &stamp) {
  if (stamps_.size() <= which)
    stamps_.resize(forwarding_.packets.size());
  stamps_[which] = stamp;
}

// --- ACKs and losses -------------------------------------------------------------------------------------------------

void WindowSender::take_ack(const Packet &ack, std::uint32_t which, Picos now) {
  QueuePair &pair = hosts_.pairs[ack.pair];
  if (pair.stopped)
    return;
  WindowFlow &flow = flows_[pair.window];
  const Stamp stamp = stamps_[which];
  const bool is_new = ack.seq > pair.acked;
  fabric_.learn(pair.out, stamp.entropy, ack.echo ? PathFeedback::kMarked : PathFeedback::kClean, now);
  const Bytes acked = acknowledge(pair, flow, stamp.seq);
  if (acked > 0) {
    const Picos rtt = now - stamp.sent_at;
    measure(flow, rtt);
    flow.progress_at = now;
    flow.backoff = 0;
    const window_ack received{
        .now_ps = now, .rtt_ps = rtt, .bytes = acked, .in_flight_bytes = flow.in_flight, .is_marked = ack.echo ? 1 : 0};
    window_on_ack(flow.control, &received);
    find_losses(pair, flow, now);
  }
  pop_acked(pair, flow, ack.seq);
  if (is_new && pair.acked >= pair.end && pair.is_done()) {
    events_.cancel({EventKind::kQueuePair, ack.pair});
    hosts_.complete(pair, now);
  } else {
    schedule(ack.pair, now);
  }
}

void WindowSender::take_nack(std::uint32_t index, std::uint32_t which, Picos now) {
  QueuePair &pair = hosts_.pairs[index];
  WindowFlow &flow = flows_[pair.window];
  const Bytes seq = stamps_[which].seq;
  const std::size_t place = find_sent(pair, flow, seq);
  if (pair.stopped || place == flow.sent.size() || flow.sent[place].is_lost)
    return;
  window_on_loss(flow.control, now, payload_at(pair, seq), flow.in_flight);
  lose(pair, flow, place, PathFeedback::kTrimmed, now);
  pair.repairs = true;
  schedule(index, now);
}

std::size_t WindowSender::find_sent(const QueuePair &pair, const WindowFlow &flow, Bytes seq) const {
  const auto place = static_cast<std::size_t>((seq - pair.acked) / nic_.payload_bytes);
  return seq < pair.acked || place >= flow.sent.size() || flow.sent[place].is_acked ? flow.sent.size() : place;
}

Bytes WindowSender::acknowledge(const QueuePair &pair, WindowFlow &flow, Bytes seq) {
  const std::size_t place = find_sent(pair, flow, seq);
  if (place == flow.sent.size())
    return 0;
  SentPacket &packet = flow.sent[place];
  const Bytes payload = payload_at(pair, seq);
  packet.is_acked = true;
  if (packet.is_lost) { // It was late alone.
    packet.is_lost = false;
    flow.lost--;
  } else {
    flow.in_flight -= payload;
  }
  flow.newest_acked = std::max(flow.newest_acked, packet.order);
  return payload;
}

void WindowSender::measure(WindowFlow &flow, Picos rtt) {
  if (flow.srtt == 0) {
    flow.srtt = rtt;
    flow.rttvar = rtt / 2;
    return;
  }
  flow.rttvar += (std::abs(flow.srtt - rtt) - flow.rttvar) / 4;
  flow.srtt += (rtt - flow.srtt) / 8;
}

// Packets are in the order of their first transmissions, so that none behind the first one that is not overdue is lost.
void WindowSender::find_losses(QueuePair &pair, WindowFlow &flow, Picos now) {
  std::int64_t limit = flow.reordering;
  if (limit == 0)
    limit = std::max(kLeastReordering, window_bytes(flow.control) * 3 / 2 / nic_.payload_bytes);
  for (std::size_t place = 0; place < flow.sent.size(); place++) {
    const SentPacket &packet = flow.sent[place];
    if (packet.is_acked || packet.is_lost)
      continue;
    if (packet.order + limit > flow.newest_acked) {
      if (packet.was_resent)
        continue;
      break;
    }
    lose(pair, flow, place, PathFeedback::kLost, now);
    const Bytes seq = pair.acked + static_cast<Bytes>(place) * nic_.payload_bytes;
    window_on_loss(flow.control, now, payload_at(pair, seq), flow.in_flight);
  }
  pair.repairs = flow.lost > 0;
}

void WindowSender::lose(const QueuePair &pair, WindowFlow &flow, std::size_t place, PathFeedback feedback, Picos now) {
  const Bytes seq = pair.acked + static_cast<Bytes>(place) * nic_.payload_bytes;
  flow.sent[place].is_lost = true;
  flow.lost++;
  flow.in_flight -= payload_at(pair, seq);
  flow.first_lost = std::min(flow.first_lost, place);
  fabric_.learn(pair.out, flow.sent[place].entropy, feedback, now);
}

void WindowSender::on_timeout(QueuePair &pair, WindowFlow &flow, Picos now) {
  Bytes first = 0;
  for (std::size_t place = 0; place < flow.sent.size(); place++) {
    if (flow.sent[place].is_acked || flow.sent[place].is_lost)
      continue;
    if (first == 0)
      first = payload_at(pair, pair.acked + static_cast<Bytes>(place) * nic_.payload_bytes);
    lose(pair, flow, place, PathFeedback::kLost, now);
  }
  pair.repairs = flow.lost > 0;
  flow.timeouts++;
  flow.backoff = std::min(flow.backoff + 1, kMaxBackoff);
  flow.progress_at = now;
  window_on_timeout(flow.control, now, first);
}

// Moves the begin of `sent` to what the receiver expects next. An ACK of a later packet can report of earlier ones
// whose own ACKs were lost; their bytes count as acknowledged without a delay.
void WindowSender::pop_acked(QueuePair &pair, WindowFlow &flow, Bytes expected) {
  while (pair.acked < std::min(expected, pair.end) && !flow.sent.empty()) {
    acknowledge(pair, flow, pair.acked);
    pair.acked += payload_at(pair, pair.acked);
    flow.sent.pop_front();
    flow.first_lost -= flow.first_lost > 0;
  }
  pair.repairs = flow.lost > 0;
}

// --- the receiver ----------------------------------------------------------------------------------------------------

void WindowSender::take_data(const Packet &packet, std::uint32_t which, Picos now) {
  QueuePair &pair = hosts_.pairs[packet.pair];
  const Stamp received = stamps_[which];
  host_sample &host = hosts_.counters[pair.to_host];
  pair.delivered++;
  pair.marked += packet.marked;
  host.marked += packet.marked;
  Ranges &arrived = flows_[pair.window].arrived;
  if (packet.seq > pair.expected) {
    host.out_of_sequence++;
    arrived.insert(packet.seq, packet.seq + packet.payload);
  } else if (packet.seq == pair.expected) {
    const Bytes end = std::max(packet.seq + packet.payload, arrived.skip(packet.seq + packet.payload));
    arrived.erase_below(end);
    hosts_.advance(packet.pair, end - pair.expected, now);
  }
  reply(packet.pair, Kind::kAck, packet.marked, received, now);
}

void WindowSender::take_trimmed(std::uint32_t pair, std::uint32_t which, Picos now) {
  reply(pair, Kind::kNack, false, stamps_[which], now);
}

void WindowSender::reply(std::uint32_t index, Kind kind, bool is_marked, Stamp received, Picos now) {
  const std::uint32_t which = hosts_.make_reply(index, kind, nic_.control_bytes);
  Packet &packet = forwarding_.packets[which];
  packet.echo = is_marked;
  if (flows_[hosts_.pairs[index].window].plan.algorithm == WINDOW_NSCC)
    packet.priority = kCnpPriority; // Ultra Ethernet's ACKs have a traffic class before data's.
  stamp(which, received);
  hosts_.send_reply(which, now);
}

} // namespace packets
