// SPDX-License-Identifier: Apache-2.0
#include "roundabout/models/packets/native/tcp/tcp_sender.hpp"

#include "roundabout/models/packets/native/hosts.hpp"
#include "roundabout/models/packets/native/tcp/loss_recovery.hpp"

#include <algorithm>
#include <cmath>

namespace packets {
namespace {

constexpr Picos kPsPerMs = 1'000'000'000;
constexpr int kMaxBackoff = 10;
constexpr Picos kMaxTimeout = 120'000 * kPsPerMs; // Linux' TCP_RTO_MAX
// Linux holds a small burst back only while it has sent within the last ms, and for a third of a window.
constexpr Picos kDeferRecent = kPsPerMs;
constexpr Bytes kDeferDivisor = 3;
constexpr Picos kDeferAhead =
    kPsPerMs; // It does so only for an acknowledgement that is due within a ms (since Linux 6.18)
// fq paces by twice the window a round trip in slow start, and by 1.2 times later (net.ipv4.tcp_pacing_*_ratio).
constexpr double kPaceSlowStart = 2.0, kPaceLater = 1.2;

Picos timeout_of(const Connection &c) { return std::min(c.rto << c.backoff, kMaxTimeout); }

} // namespace

void TcpSender::wake(std::uint32_t index, Picos now) {
  QueuePair &pair = hosts_.pairs[index];
  Connection &c = connections_[pair.tcp];
  if (!pair.stopped)
    request_turn(pair, c, now);
  schedule_timers(events_, index, c);
}

void TcpSender::request_turn(QueuePair &pair, Connection &c, Picos now) {
  if (pair.waits_for_turn || c.ready_at != kNever || c.is_stopped || next_burst(pair, c, now) == 0)
    return;
  if (c.plan.jitter_ps > 0)
    c.ready_at = now + static_cast<Picos>(static_cast<double>(c.plan.jitter_ps) * random_.uniform());
  else
    hosts_.request_turn(hosts_.index_of(pair), now);
}

Bytes TcpSender::written(QueuePair &pair, const Connection &c, Picos now, Picos &next_at) const {
  const Bytes size = pair.end - pair.begin;
  Bytes done = size;
  const auto all_at = pair.posted_at + static_cast<Picos>(static_cast<double>(size) * pair.ps_per_byte);
  if (now < all_at) {
    const double write_ps = static_cast<double>(c.plan.write_bytes) * pair.ps_per_byte;
    const auto born_at = [&](Bytes writes) {
      return pair.posted_at +
             static_cast<Picos>(std::min(static_cast<double>(writes * c.plan.write_bytes), static_cast<double>(size)) *
                                pair.ps_per_byte);
    };
    const Bytes most = (size + c.plan.write_bytes - 1) / c.plan.write_bytes;
    const double elapsed_writes = static_cast<double>(now - pair.posted_at) / write_ps;
    Bytes writes = elapsed_writes < static_cast<double>(most) ? static_cast<Bytes>(elapsed_writes) : most;
    while (writes < most && born_at(writes + 1) <= now)
      writes++;
    if (writes < most)
      next_at = born_at(writes + 1);
    done = std::min(size, writes * c.plan.write_bytes);
  }
  const Bytes allowed = hosts_.allowed_by_feeders(pair);
  pair.waits_for_lead = allowed < done;
  return std::min(done, allowed);
}

std::uint32_t TcpSender::next_burst(QueuePair &pair, Connection &c, Picos now) {
  c.send_at = kNever;
  const std::uint32_t in_flight = c.board.in_flight();
  const std::uint32_t room = c.view.cwnd > in_flight ? c.view.cwnd - in_flight : 0;
  const bool has_lost = c.board.next_lost() != kNone;
  if (has_lost && !room)
    return 0;
  Picos next_at = kNever;
  const Bytes left = has_lost ? 0 : written(pair, c, now, next_at) - (pair.next - pair.begin);
  const bool is_end = pair.next + left == pair.end;
  if (!has_lost && (left <= 0 || (left < c.plan.mss_bytes && !is_end))) {
    c.send_at = next_at;
    return 0;
  }
  if (c.paced_until > now) {
    c.send_at = c.paced_until;
    return 0;
  }
  if (has_lost)
    return 1;
  if (!room) {
    validate_window(pair, c, true);
    return 0;
  }
  const Bytes window = pair.acked + c.plan.window_bytes - pair.next;
  const Bytes segments = left / c.plan.mss_bytes + (is_end && left % c.plan.mss_bytes ? 1 : 0);
  const Bytes most = burst_segments(c);
  const Bytes count = std::min({segments, most, static_cast<Bytes>(room), window / c.plan.mss_bytes});
  if (count <= 0)
    return 0;
  // A socket buffer that may go to its end does not wait if another stands behind it, and takes along what else may go
  // (Linux' tcp_grow_skb, since 6.10, and tcp_tso_should_defer).
  const Bytes buffer = std::max<Bytes>(c.plan.tso_bytes / c.plan.mss_bytes, 1);
  const Bytes rest = buffer - (pair.next - pair.begin) / c.plan.mss_bytes % buffer;
  const bool ends_buffer = count >= rest && segments > rest;
  if (count < most && count < segments && !ends_buffer && may_defer(pair, c, room, now)) {
    validate_window(pair, c, room < window / c.plan.mss_bytes);
    return 0;
  }
  return static_cast<std::uint32_t>(count);
}

// A burst is what segmentation offload takes, and no more than a ms at the pacing rate over long ways
// (tcp_tso_autosize).
Bytes TcpSender::burst_segments(const Connection &c) const {
  Bytes bytes = c.plan.tso_bytes;
  const Picos octave = c.min_rtt / (512 * 1'000'000LL);
  if (octave > 0)
    bytes = std::min(bytes, (octave < 32 ? bytes >> octave : 0) + static_cast<Bytes>(pacing_rate(c) / 1024));
  return std::max<Bytes>(bytes / c.plan.mss_bytes,
                         bytes < c.plan.mss_bytes || c.plan.tso_bytes < 2 * c.plan.mss_bytes ? 1 : 2);
}

bool TcpSender::may_defer(const QueuePair &pair, Connection &c, std::uint32_t room, Picos now) const {
  if (c.state >= TcpState::kRecovery || c.board.is_empty() || now - c.last_sent_at > kDeferRecent)
    return false;
  const Bytes mss = c.plan.mss_bytes;
  const Bytes limit = std::min(static_cast<Bytes>(room) * mss, pair.acked + c.plan.window_bytes - pair.next);
  if (limit >= std::min(c.plan.window_bytes, static_cast<Bytes>(c.view.cwnd) * mss) / kDeferDivisor)
    return false;
  const Picos expected = c.board[c.board.begin()].sent_at + c.srtt;
  return expected - now <= std::min(c.srtt / 2, kDeferAhead); // Otherwise its acknowledgement is too far away.
}

double TcpSender::pacing_rate(const Connection &c) const {
  const double ratio = c.view.cwnd < c.view.ssthresh / 2 ? kPaceSlowStart : kPaceLater;
  const auto srtt = static_cast<double>(std::max<Picos>(c.srtt, 1));
  return ratio * static_cast<double>(std::max(c.view.cwnd, c.board.size())) * static_cast<double>(c.plan.mss_bytes) *
         kPsPerSecond / srtt;
}

std::uint32_t TcpSender::send_next(std::uint32_t index, Picos now) {
  QueuePair &pair = hosts_.pairs[index];
  Connection &c = connections_[pair.tcp];
  if (c.is_stopped || pair.stopped)
    return kNone;
  const bool is_new_burst = c.burst == 0;
  if (is_new_burst) {
    if (c.board.is_empty())
      restart_after_idle(c, now);
    c.burst = next_burst(pair, c, now);
    if (!c.burst) {
      schedule_timers(events_, index, c);
      return kNone;
    }
    if (c.plan.is_paced && c.srtt > 0)
      c.paced_until =
          now + static_cast<Picos>(c.burst * static_cast<double>(c.plan.mss_bytes) * kPsPerSecond / pacing_rate(c));
  }
  const std::uint32_t lost = is_new_burst ? c.board.next_lost() : kNone;
  c.burst--;
  std::uint32_t which;
  if (lost != kNone) {
    c.board.resend(lost, now);
    pair.resent++;
    which = send(index, c, lost, now);
    if (lost == c.board.begin() || c.timer == TcpTimer::kOff)
      set_timer(c, TcpTimer::kTimeout, now + timeout_of(c));
  } else {
    const Bytes payload = std::min(c.plan.mss_bytes, pair.end - pair.next);
    const Bytes seq = pair.next;
    pair.next += payload;
    c.view.snd_nxt = static_cast<std::uint32_t>(pair.next);
    const std::uint32_t number = c.board.append(seq, static_cast<std::uint16_t>(payload), pair.next == pair.end, now);
    which = send(index, c, number, now);
    if (c.state == TcpState::kOpen || c.state == TcpState::kCwr || c.timer == TcpTimer::kOff)
      arm_timer(c, now);
  }
  if (c.burst > 0) {
    hosts_.keep_turn(index);
  } else {
    validate_window(pair, c, c.board.in_flight() >= c.view.cwnd);
    if (next_burst(pair, c, now) > 0)
      hosts_.rejoin_turn(index);
  }
  schedule_timers(events_, index, c);
  return which;
}

std::uint32_t TcpSender::send(std::uint32_t index, Connection &c, std::uint32_t number, Picos now) {
  QueuePair &pair = hosts_.pairs[index];
  const Segment &segment = c.board[number];
  const std::uint32_t which = hosts_.make_data(index, segment.seq, segment.length, c.plan.header_bytes, now);
  Packet &packet = forwarding_.packets[which];
  packet.is_ecn = c.plan.is_ecn != 0;
  packet.wants_ack = segment.is_last;
  packet.echo = c.sends_cwr && !segment.was_resent;
  if (packet.echo)
    c.sends_cwr = false;
  pair.packets++;
  c.last_sent_at = now;
  if (c.state == TcpState::kCwr || c.state == TcpState::kRecovery)
    c.prr_out++;
  return which;
}

// As in Linux' tcp_cwnd_validate.
void TcpSender::validate_window(const QueuePair &pair, Connection &c, bool is_limited) {
  if (pair.acked < c.cwnd_usage_seq && !is_limited &&
      (c.view.is_cwnd_limited || c.board.size() <= c.view.max_packets_out))
    return;
  c.view.is_cwnd_limited = is_limited;
  c.view.max_packets_out = c.board.size();
  c.cwnd_usage_seq = pair.next;
}

void TcpSender::restart_after_idle(Connection &c, Picos now) {
  if (c.last_sent_at < 0 || c.state != TcpState::kOpen)
    return;
  const Picos idle = now - c.last_sent_at;
  c.view.now_ps = now;
  congestion_on_idle(c.control, &c.view, idle);
  if (!c.plan.restarts_after_idle || congestion_owns_window(c.control) || idle <= c.rto)
    return;
  const auto least = std::min(static_cast<std::uint32_t>(c.plan.initial_window), c.view.cwnd);
  c.view.ssthresh = std::max(c.view.ssthresh, c.view.cwnd / 2 + c.view.cwnd / 4);
  for (Picos left = idle - c.rto; left > 0 && c.view.cwnd > least; left -= c.rto)
    c.view.cwnd /= 2;
  c.view.cwnd = std::max(c.view.cwnd, least);
}

// --- acknowledgements
// -------------------------------------------------------------------------------------------------

void TcpSender::take_ack(const Packet &packet, const Interval *blocks, Picos now) {
  QueuePair &pair = hosts_.pairs[packet.pair];
  Connection &c = connections_[pair.tcp];
  if (c.is_stopped || pair.stopped || packet.seq < pair.acked)
    return;
  tcp_view &view = c.view;
  view.now_ps = now;
  const Bytes advanced = packet.seq - pair.acked;
  const std::uint32_t delivered_before = view.delivered, lost_before = c.lost;
  DeliverySamples samples;
  pair.acked = packet.seq;
  view.snd_una = static_cast<std::uint32_t>(pair.acked);
  view.bytes_acked += static_cast<std::uint64_t>(advanced);
  // Selective acknowledgements first, as Linux' tcp_ack: the round trip by which RACK looks for losses is then that of
  // the segments before the hole, so a hole that one later segment shows is not taken for lost yet.
  for (std::size_t i = 0; i < packet.blocks; i++)
    mark_sacked(c, blocks[i], now, samples);
  if (packet.blocks)
    std::copy_n(blocks, packet.blocks, c.known);
  while (!c.board.is_empty() && c.board[c.board.begin()].end() <= packet.seq) {
    const Segment &segment = c.board[c.board.begin()];
    if (!segment.is_sacked)
      note_delivered(c, segment, now, samples);
    samples.has_resent |= segment.was_resent;
    c.board.pop();
  }
  const std::uint32_t delivered = view.delivered - delivered_before;
  if (packet.echo)
    view.delivered_ce += delivered;
  if (samples.first_sent_at >= 0 && !samples.has_resent)
    update_rtt(c, now - samples.first_sent_at);
  if (advanced > 0) {
    c.backoff = 0;
    congestion_on_bytes(c.control, &view, static_cast<std::uint64_t>(advanced));
  }
  if (c.probed_seq >= 0)
    end_probe(pair, c, packet, delivered);
  Picos wait = 0;
  if (delivered)
    wait = find_losses(c, now);
  const tcp_ack ack{delivered, c.lost - lost_before, samples.last_sent_at < 0 ? -1 : now - samples.last_sent_at};
  if (delivered)
    congestion_on_ack(c.control, &view, &ack);
  change_state(pair, c, packet.echo);
  if (congestion_owns_window(c.control))
    congestion_set_window(c.control, &view, &ack);
  else if (c.state == TcpState::kCwr || c.state == TcpState::kRecovery)
    reduce(c, delivered, advanced > 0, ack.losses > 0);
  else if (delivered)
    congestion_increase(c.control, &view, delivered);
  if (wait > 0)
    set_timer(c, TcpTimer::kReorder, now + wait);
  else if (advanced > 0 || c.timer == TcpTimer::kReorder)
    arm_timer(c, now);
  request_turn(pair, c, now);
  schedule_timers(events_, packet.pair, c);
  if (advanced > 0 && pair.acked >= pair.end && pair.is_done())
    hosts_.complete(pair, now);
}

// --- timers
// -----------------------------------------------------------------------------------------------------------

void TcpSender::set_timer(Connection &c, TcpTimer timer, Picos at) {
  c.timer = timer;
  c.timer_at = at;
}

void TcpSender::arm_timer(Connection &c, Picos now) {
  if (c.board.is_empty()) {
    set_timer(c, TcpTimer::kOff, kNever);
    return;
  }
  const Picos timeout = now + timeout_of(c);
  const bool may_probe = c.plan.has_tail_loss_probe && c.probed_seq < 0 && c.srtt > 0 && c.backoff == 0 &&
                         (c.state == TcpState::kOpen || c.state == TcpState::kCwr);
  if (may_probe) {
    const Picos probe = now + 2 * c.srtt + (c.board.size() == 1 ? c.plan.rto_min_ps : kTimerSlack);
    if (probe < timeout) {
      set_timer(c, TcpTimer::kProbe, probe);
      return;
    }
  }
  set_timer(c, TcpTimer::kTimeout, timeout);
}

void TcpSender::on_timer(std::uint32_t index, Connection &c, Picos now) {
  QueuePair &pair = hosts_.pairs[index];
  const TcpTimer timer = c.timer;
  set_timer(c, TcpTimer::kOff, kNever);
  if (timer == TcpTimer::kTimeout)
    on_timeout(pair, c, now);
  else if (timer == TcpTimer::kProbe)
    on_probe(index, c, now);
  else
    on_reorder(pair, c, now);
}

void TcpSender::on_timeout(QueuePair &pair, Connection &c, Picos now) {
  c.counters.timeouts++;
  c.view.now_ps = now;
  for (std::uint32_t i = c.board.begin(); i != c.board.end(); i++) {
    const Segment &segment = c.board[i];
    // A segment that was sent a moment ago is not lost yet.
    if (segment.is_sacked || (i != c.board.begin() && segment.is_listed && segment.sent_at + c.rack_rtt > now))
      continue;
    c.lost += !segment.is_lost;
    c.board.mark_lost(i);
  }
  if (c.state < TcpState::kRecovery || pair.acked >= c.high_seq || (c.state == TcpState::kLoss && c.backoff == 0)) {
    c.prior_cwnd = c.view.cwnd;
    c.view.ssthresh = congestion_ssthresh(c.control, &c.view);
    congestion_on_timeout(c.control, &c.view);
  }
  c.view.cwnd = c.board.in_flight() + 1;
  c.view.is_cwnd_limited = 1;
  c.state = TcpState::kLoss;
  c.high_seq = pair.next;
  c.probed_seq = -1;
  c.paced_until = 0;
  c.backoff = std::min(c.backoff + 1, kMaxBackoff);
  set_timer(c, TcpTimer::kTimeout, now + timeout_of(c));
}

void TcpSender::on_probe(std::uint32_t index, Connection &c, Picos now) {
  QueuePair &pair = hosts_.pairs[index];
  Picos next_at = kNever;
  const Bytes left = written(pair, c, now, next_at) - (pair.next - pair.begin);
  const bool is_new = (left >= c.plan.mss_bytes || (left > 0 && pair.next + left == pair.end)) &&
                      pair.next + c.plan.mss_bytes <= pair.acked + c.plan.window_bytes;
  std::uint32_t number = c.board.end() - 1;
  if (is_new) {
    const Bytes payload = std::min(c.plan.mss_bytes, pair.end - pair.next);
    const Bytes seq = pair.next;
    pair.next += payload;
    c.view.snd_nxt = static_cast<std::uint32_t>(pair.next);
    number = c.board.append(seq, static_cast<std::uint16_t>(payload), pair.next == pair.end, now);
  } else if (!c.board[number].is_sacked) {
    c.board.resend(number, now);
    pair.resent++;
  } else {
    arm_timer(c, now);
    return;
  }
  c.counters.probes++;
  c.probed_seq = pair.next;
  c.probe_was_new = is_new;
  set_timer(c, TcpTimer::kTimeout, now + timeout_of(c));
  const std::uint32_t nic = fabric_.nic_port(pair.out);
  forwarding_.enqueue(nic, send(index, c, number, now), now);
}

void TcpSender::on_reorder(QueuePair &pair, Connection &c, Picos now) {
  const std::uint32_t lost_before = c.lost;
  c.view.now_ps = now;
  const Picos wait = find_losses(c, now);
  const tcp_ack nothing{0, c.lost - lost_before, -1};
  change_state(pair, c, false);
  if (congestion_owns_window(c.control))
    congestion_set_window(c.control, &c.view, &nothing);
  else if (c.state == TcpState::kRecovery && c.lost != lost_before)
    reduce(c, 1, false, true);
  if (wait > 0)
    set_timer(c, TcpTimer::kReorder, now + wait);
  else
    arm_timer(c, now);
}

} // namespace packets
