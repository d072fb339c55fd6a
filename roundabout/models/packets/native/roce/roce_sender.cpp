// SPDX-License-Identifier: Apache-2.0
#include "roundabout/models/packets/native/roce/roce_sender.hpp"

#include "roundabout/models/packets/native/hosts.hpp"

#include <algorithm>

namespace packets {
namespace {

// In ps. A slower flow checks its reaction point's timers that often, so that its rate rises before its next packet.
constexpr Picos kMaxTimerGap = 20'000'000;

} // namespace

void RoceSender::attach(QueuePair &pair, const reaction_plan &plan) {
  pair.reaction_point = reaction_create(&plan);
  if (plan.retransmission == SELECTIVE_REPEAT) {
    pair.repeat = static_cast<std::uint32_t>(repeats_.size());
    repeats_.emplace_back();
  }
}

void RoceSender::begin_message(QueuePair &pair) {
  if (pair.repeat != kNone) {
    repeats_[pair.repeat].begin(pair.begin);
    pair.repairs = false;
  }
}

void RoceSender::begin_connection(QueuePair &pair) {
  reaction_begin(pair.reaction_point);
  pair.paced_until = 0;
  pair.in_burst = 0;
}

// A queue pair that waits for its turn at the NIC or for a feeder has no timer.
void RoceSender::schedule(std::uint32_t index, Picos now) {
  QueuePair &pair = hosts_.pairs[index];
  if (pair.waits_for_turn)
    return;
  Picos at = kNever;
  if (pair.stopped) {
    at = kNever;
  } else {
    const Bytes until = std::min(pair.next + nic_.payload_bytes, pair.end) - pair.begin;
    pair.waits_for_lead = false;
    if (!pair.feeders.empty() && !pair.all_sent() && !pair.repairs)
      pair.waits_for_lead = until > hosts_.allowed_by_feeders(pair);
    if (pair.waits_for_answer()) {
      if (pair.acked < pair.next && pair.out != kNone)
        at = now + nic_.timeout_ps;
    } else {
      const Picos created_at = pair.posted_at + static_cast<Picos>(static_cast<double>(until) * pair.ps_per_byte);
      at = std::max({now, pair.repairs ? now : created_at, pair.paced_until});
      if (pair.paced_until > now + kMaxTimerGap)
        at = std::min(at, now + kMaxTimerGap);
    }
  }
  events_.set({EventKind::kQueuePair, index}, at);
}

void RoceSender::on_timer(std::uint32_t index, Picos now) {
  QueuePair &pair = hosts_.pairs[index];
  if (pair.out == kNone) { // Within a host, a packet arrives when it is sent.
    const Bytes payload = std::min(nic_.payload_bytes, pair.end - pair.next);
    pair.next += payload;
    schedule(index, now);
    hosts_.advance(index, payload, now);
    return;
  }
  if (pair.waits_for_answer()) {
    on_timeout(index, now);
    return;
  }
  if (pair.paced_until > now) {
    limit(pair, reaction_on_send(pair.reaction_point, now, 0));
    schedule(index, now);
    return;
  }
  const std::uint32_t nic = fabric_.nic_port(pair.out);
  if (fabric_.ports[nic].is_idle(pair.priority, now)) {
    forwarding_.transmit(nic, send(index, now), now);
    return;
  }
  events_.cancel({EventKind::kQueuePair, index});
  hosts_.request_turn(index, now);
}

void RoceSender::on_timeout(std::uint32_t index, Picos now) {
  QueuePair &pair = hosts_.pairs[index];
  if (pair.repeat == kNone) {
    pair.resent += (pair.next - pair.acked + nic_.payload_bytes - 1) / nic_.payload_bytes;
    pair.next = pair.acked;
  } else {
    repeats_[pair.repeat].on_timeout(pair.acked, pair.next);
    pair.repairs = true;
  }
  schedule(index, now);
}

Bytes RoceSender::next_seq(QueuePair &pair) {
  if (!pair.repairs) {
    const Bytes seq = pair.next;
    pair.next += std::min(nic_.payload_bytes, pair.end - seq);
    return seq;
  }
  SelectiveRepeat &repeat = repeats_[pair.repeat];
  const Bytes seq = repeat.next_lost(pair.acked);
  repeat.repair = seq + nic_.payload_bytes;
  pair.repairs = repeat.next_lost(pair.acked) < repeat.lost_end;
  pair.resent++;
  return seq;
}

std::uint32_t RoceSender::send_next(std::uint32_t index, Picos now) {
  const QueuePair &pair = hosts_.pairs[index];
  if (!pair.stopped && !pair.all_sent())
    return send(index, now);
  schedule(index, now); // An acknowledgement or a departure came first.
  return kNone;
}

std::uint32_t RoceSender::send(std::uint32_t index, Picos now) {
  QueuePair &pair = hosts_.pairs[index];
  const Bytes seq = next_seq(pair);
  const Bytes payload = std::min(nic_.payload_bytes, pair.end - seq);
  const std::uint32_t which = hosts_.make_data(index, seq, payload, nic_.header_bytes, now);
  pair.packets++;
  pace(pair, payload, now);
  schedule(index, now);
  forwarding_.packets[which].wants_ack =
      pair.waits_for_answer() || (seq + payload) / nic_.ack_bytes != seq / nic_.ack_bytes;
  return which;
}

// The hardware rate limiter sends a burst, and then leaves a gap so that the rate is R_C.
void RoceSender::pace(QueuePair &pair, Bytes payload, Picos now) {
  const std::uint64_t rate = reaction_on_send(pair.reaction_point, now, static_cast<std::uint64_t>(payload));
  if (pair.in_burst == 0) {
    pair.burst_at = now;
    pair.burst_bytes = 0;
  }
  pair.burst_bytes += payload;
  if (++pair.in_burst < nic_.burst_packets && !pair.all_sent())
    return;
  pair.in_burst = 0;
  if (nic_.pace_jitter > 0)
    pair.gap_spread = nic_.pace_jitter * (random_.uniform() - 0.5);
  limit(pair, rate);
}

// The next burst leaves when the last one's bytes would have left at `rate`, plus the spread of its gap. A flow at
// R_max has no rate limiter, and so no spread, which would slow it below the link's rate.
void RoceSender::limit(QueuePair &pair, std::uint64_t rate) {
  const double spread = reaction_is_limited(pair.reaction_point) ? pair.gap_spread : 0;
  const double gap = static_cast<double>(pair.burst_bytes) * kPsPerSecond / static_cast<double>(rate);
  pair.paced_until = pair.burst_at + static_cast<Picos>(gap * (1 + spread));
}

void RoceSender::handle(const CnpEvent &event, Picos now) {
  QueuePair &pair = hosts_.pairs[event.queue_pair];
  hosts_.counters[pair.from_host].cnps_handled++;
  reaction_on_cnp(pair.reaction_point, now);
}

void RoceSender::take_ack(const Packet &packet, Bytes sack, Picos now) {
  QueuePair &pair = hosts_.pairs[packet.pair];
  const bool is_new = packet.seq > pair.acked, is_late = packet.seq < pair.acked;
  if (pair.stopped || (is_late && !fabric_.may_reorder()))
    return;
  pair.acked = std::max(pair.acked, packet.seq);
  if (pair.repeat != kNone) {
    SelectiveRepeat &repeat = repeats_[pair.repeat];
    const Bytes sack_end = std::min(sack + nic_.payload_bytes, pair.end);
    if (packet.kind != Kind::kNack)
      repeat.sacked.erase_below(pair.acked);
    else if (fabric_.may_reorder())
      repeat.on_sack(pair.acked, sack, sack_end);
    else
      repeat.on_nack(pair.acked, sack, sack_end, pair.next);
    const bool repaired = pair.repairs;
    pair.repairs = repeat.next_lost(pair.acked) < repeat.lost_end;
    if (pair.repairs != repaired || pair.waits_for_answer())
      schedule(packet.pair, now);
  } else if (packet.kind == Kind::kNack && packet.seq < pair.next) { // Go back.
    pair.resent += (pair.next - packet.seq + nic_.payload_bytes - 1) / nic_.payload_bytes;
    pair.next = packet.seq;
    schedule(packet.pair, now);
  } else {
    pair.next = std::max(pair.next, pair.acked); // It had gone back too far.
    if (pair.waits_for_answer())
      schedule(packet.pair, now);
  }
  if (is_new && pair.acked >= pair.end && pair.is_done())
    hosts_.complete(pair, now);
}

} // namespace packets
