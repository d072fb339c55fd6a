// SPDX-License-Identifier: Apache-2.0
#include "roundabout/models/packets/native/roce/roce_receiver.hpp"

#include "roundabout/models/packets/native/hosts.hpp"

namespace packets {

void RoceReceiver::attach(QueuePair &pair, const reaction_plan &plan) {
  pair.cnp_gap = plan.cnp_gap_ps;
  pair.notification_point = notification_point(pair, plan.cnp_scope);
  if (plan.retransmission == SELECTIVE_REPEAT)
    arrived_.emplace_back();
}

// NICs keep the gap between CNPs for each queue pair, for each host that receives them, or for each port.
std::uint32_t RoceReceiver::notification_point(const QueuePair &pair, std::uint32_t scope) {
  const auto fresh = static_cast<std::uint32_t>(cnp_at_.size());
  std::uint32_t found = fresh;
  if (scope != CNP_PER_QP) {
    const std::uint32_t sender = scope == CNP_PER_HOST ? pair.from_host : kNone;
    found = cnp_of_.try_emplace({fabric_.last_port(pair.out), sender}, fresh).first->second;
  }
  if (found == fresh)
    cnp_at_.push_back(-kNever / 2);
  return found;
}

void RoceReceiver::take_data(const Packet &packet, Picos now) {
  QueuePair &pair = hosts_.pairs[packet.pair];
  pair.delivered++;
  if (packet.marked) { // It is the notification point.
    pair.marked++;
    host_sample &host = hosts_.counters[pair.to_host];
    host.marked++;
    Picos &cnp_at = cnp_at_[pair.notification_point];
    if (now - cnp_at >= pair.cnp_gap) {
      cnp_at = now;
      host.cnps_sent++;
      answer(packet.pair, Kind::kCnp, now);
    }
  }
  bool filled = false;
  if (packet.seq == pair.expected) {
    pair.nack_sent = false;
    hosts_.advance(packet.pair, packet.payload, now);
    if (pair.repeat != kNone && !arrived_[pair.repeat].empty()) {
      Ranges &arrived = arrived_[pair.repeat];
      const Bytes end = arrived.skip(pair.expected);
      arrived.erase_below(end);
      hosts_.advance(packet.pair, end - pair.expected, now);
      filled = true;
    }
  } else if (packet.seq > pair.expected) {
    hosts_.counters[pair.to_host].out_of_sequence++;
    if (pair.repeat != kNone) {
      keep_out_of_order(packet, now);
      return;
    }
    if (!pair.nack_sent)
      answer(packet.pair, Kind::kNack, now);
    pair.nack_sent = true;
    return;
  }
  if (packet.wants_ack || filled)
    answer(packet.pair, Kind::kAck, now);
}

void RoceReceiver::keep_out_of_order(const Packet &packet, Picos now) {
  arrived_[hosts_.pairs[packet.pair].repeat].insert(packet.seq, packet.seq + packet.payload);
  const std::uint32_t nack = answer(packet.pair, Kind::kNack, now);
  if (sacks_.size() <= nack)
    sacks_.resize(forwarding_.packets.size());
  sacks_[nack] = packet.seq;
}

std::uint32_t RoceReceiver::answer(std::uint32_t index, Kind kind, Picos now) {
  const std::uint32_t which = hosts_.make_reply(index, kind, nic_.control_bytes);
  hosts_.send_reply(which, now);
  return which;
}

} // namespace packets
