// SPDX-License-Identifier: Apache-2.0
#include "roundabout/models/packets/native/tcp/tcp_receiver.hpp"

#include "roundabout/models/packets/native/hosts.hpp"

#include <algorithm>

namespace packets {
namespace {

constexpr int kQuickAcks = 16; // segments at a connection's begin that Linux acknowledges at once, and after a pause
constexpr int kQuickAcksOfMarks = 2;
constexpr Bytes kWindowGrowth = 2;

} // namespace

void TcpReceiver::take_segment(const Packet &packet, Picos now) {
  QueuePair &pair = hosts_.pairs[packet.pair];
  Connection &c = connections_[pair.tcp];
  host_sample &host = hosts_.counters[pair.to_host];
  pair.delivered++;
  pair.marked += packet.marked;
  host.marked += packet.marked;
  bool at_once = packet.wants_ack;
  at_once |= packet.echo; // The sender has reduced its window, which may be very short (tcp_ecn_accept_cwr).
  if (congestion_needs_accurate_echo(c.control)) {
    if (packet.marked != c.saw_ce) {
      if (c.unacknowledged > 0) // An ACK of segments of the other kind leaves first.
        acknowledge(packet.pair, c, now, false);
      at_once = true;
    }
    c.echoes = c.saw_ce = packet.marked;
  } else {
    if (packet.echo) // The sender has reduced its window.
      c.echoes = false;
    if (packet.marked && !c.echoes) {
      c.echoes = true;
      c.quick_acks = std::max(c.quick_acks, kQuickAcksOfMarks);
    }
  }
  if (c.received_at < 0 || now - c.received_at > c.rto)
    c.quick_acks = kQuickAcks;
  c.received_at = now;
  bool is_duplicate = false;
  if (c.window < c.plan.grown_window_bytes) { // It grows by two segments for each, which is acknowledged at once.
    c.window += kWindowGrowth * packet.payload;
    c.quick_acks = std::max(c.quick_acks, 1);
  }
  if (packet.seq == pair.expected) {
    Bytes end = packet.seq + packet.payload;
    at_once |= !c.beyond.empty();
    std::size_t filled = 0;
    for (; filled < c.beyond.size() && c.beyond[filled].begin <= end; filled++)
      end = std::max(end, c.beyond[filled].end);
    c.beyond.erase(c.beyond.begin(), c.beyond.begin() + static_cast<std::ptrdiff_t>(filled));
    c.newest -= std::min(c.newest, filled);
    c.unacknowledged++;
    hosts_.advance(packet.pair, end - pair.expected, now);
  } else {
    host.out_of_sequence += packet.seq > pair.expected;
    is_duplicate = packet.seq < pair.expected || !insert_beyond(c, packet.seq, packet.seq + packet.payload);
    at_once = true;
  }
  if (at_once || c.quick_acks > 0 || c.unacknowledged >= c.plan.ack_segments) {
    acknowledge(packet.pair, c, now, is_duplicate);
  } else if (c.ack_at == kNever) {
    c.ack_at = now + c.plan.delayed_ack_ps;
    schedule_timers(events_, packet.pair, c);
  }
}

bool TcpReceiver::insert_beyond(Connection &c, Bytes begin, Bytes end) {
  auto at = c.beyond.end();
  if (!c.beyond.empty() && c.beyond.back().end >= begin) // Otherwise it is beyond all others, as in most cases.
    at = std::ranges::lower_bound(c.beyond, begin, {}, &Interval::end);
  c.newest = static_cast<std::size_t>(at - c.beyond.begin());
  if (at == c.beyond.end() || at->begin > end) {
    c.beyond.insert(at, {begin, end});
    return true;
  }
  if (at->begin <= begin && at->end >= end)
    return false;
  at->begin = std::min(at->begin, begin);
  at->end = std::max(at->end, end);
  const auto next = at + 1;
  if (next != c.beyond.end() && next->begin <= at->end) {
    at->end = std::max(at->end, next->end);
    c.beyond.erase(next);
  }
  return true;
}

void TcpReceiver::acknowledge(std::uint32_t index, Connection &c, Picos now, bool is_duplicate) {
  const std::uint32_t which = hosts_.make_reply(index, Kind::kAck, c.plan.header_bytes);
  Packet &packet = forwarding_.packets[which];
  packet.echo = c.echoes;
  packet.is_duplicate = is_duplicate;
  packet.blocks = static_cast<std::uint8_t>(std::min(c.beyond.size(), kBlocks));
  if (packet.blocks) {
    if (blocks_.size() < forwarding_.packets.size())
      blocks_.resize(forwarding_.packets.size());
    for (std::size_t i = 0; i < packet.blocks; i++) // The newest is first (RFC 2018).
      blocks_[which][i] = c.beyond[(c.newest + i) % c.beyond.size()];
  }
  c.counters.acks++;
  c.unacknowledged = 0;
  c.quick_acks -= c.quick_acks > 0;
  c.ack_at = kNever;
  hosts_.send_reply(which, now);
}

} // namespace packets
