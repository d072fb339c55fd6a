// SPDX-License-Identifier: Apache-2.0
#include "roundabout/models/packets/native/tcp/loss_recovery.hpp"

#include <algorithm>

namespace packets {
namespace {

constexpr std::uint32_t kReordering = 3; // Duplicates that show a loss without any wait (RFC 5681, RFC 8985).

bool is_sent_after(Picos at, Bytes end, Picos other_at, Bytes other_end) {
  return at != other_at ? at > other_at : end > other_end;
}

} // namespace

// The segment's time updates RACK's state (RFC 8985, section 6.2).
void note_delivered(Connection &c, const Segment &segment, Picos now, DeliverySamples &samples) {
  c.view.delivered++;
  const Picos rtt = now - segment.sent_at;
  if (!segment.was_resent) {
    if (samples.first_sent_at < 0)
      samples.first_sent_at = segment.sent_at;
    samples.last_sent_at = segment.sent_at;
  } else if (rtt < c.min_rtt) {
    return; // The acknowledgement is for an earlier transmission.
  }
  c.rack_rtt = rtt;
  if (is_sent_after(segment.sent_at, segment.end(), c.rack_sent_at, c.rack_end)) {
    c.rack_sent_at = segment.sent_at;
    c.rack_end = segment.end();
  }
}

void mark_sacked(Connection &c, const Interval &block, Picos now, DeliverySamples &samples) {
  Interval news = block; // without the blocks of the previous acknowledgement
  for (const Interval &each : c.known) {
    if (each.begin == block.begin && each.end <= block.end)
      news.begin = std::max(news.begin, each.end);
    else if (each.end == block.end && each.begin >= block.begin)
      news.end = std::min(news.end, each.begin);
  }
  for (std::uint32_t i = c.board.find(news.begin); i != c.board.end() && c.board[i].end() <= news.end; i++) {
    if (c.board[i].is_sacked)
      continue;
    note_delivered(c, c.board[i], now, samples);
    c.board.mark_sacked(i);
  }
}

void update_rtt(Connection &c, Picos rtt) {
  if (c.srtt == 0) {
    c.srtt = rtt;
    c.rttvar = rtt / 2;
  } else {
    c.rttvar += ((rtt > c.srtt ? rtt - c.srtt : c.srtt - rtt) - c.rttvar) / 4;
    c.srtt += (rtt - c.srtt) / 8;
  }
  c.min_rtt = c.min_rtt == 0 ? rtt : std::min(c.min_rtt, rtt);
  c.rto = c.srtt + std::max(4 * c.rttvar, c.plan.rto_min_ps);
  c.view.srtt_ps = c.srtt;
  c.view.min_rtt_ps = c.min_rtt;
}

Picos find_losses(Connection &c, Picos now) {
  Picos window = 0;
  if (c.state < TcpState::kRecovery && c.board.sacked < kReordering)
    window = std::min(c.min_rtt / 4, c.srtt / 8);
  Picos wait = 0;
  std::uint32_t next;
  for (std::uint32_t i = c.board.oldest(); i != kNone; i = next) {
    const Segment &segment = c.board[i];
    next = segment.newer;
    if (!is_sent_after(c.rack_sent_at, c.rack_end, segment.sent_at, segment.end()))
      break;
    const Picos left = segment.sent_at + c.rack_rtt + window - now;
    if (left > 0) {
      wait = std::max(wait, left + kTimerSlack);
      continue;
    }
    c.board.mark_lost(i);
    c.lost++;
  }
  return wait;
}

void begin_reduction(QueuePair &pair, Connection &c) {
  c.high_seq = pair.next;
  c.probed_seq = -1;
  c.prior_cwnd = c.view.cwnd;
  c.prr_delivered = c.prr_out = 0;
  c.view.ssthresh = congestion_ssthresh(c.control, &c.view);
  c.sends_cwr = c.plan.is_ecn != 0;
}

void end_reduction(Connection &c) {
  if (!congestion_owns_window(c.control) && c.view.ssthresh < INFINITE_SSTHRESH)
    c.view.cwnd = c.view.ssthresh;
  c.state = TcpState::kOpen;
}

void change_state(QueuePair &pair, Connection &c, bool echo) {
  if (c.state == TcpState::kLoss && pair.acked >= c.high_seq)
    c.state = TcpState::kOpen;
  else if (c.state == TcpState::kRecovery && pair.acked >= c.high_seq)
    end_reduction(c);
  else if (c.state == TcpState::kCwr && pair.acked > c.high_seq)
    end_reduction(c);
  if (c.state >= TcpState::kRecovery)
    return;
  if (c.board.lost > 0) {
    c.counters.recoveries++;
    if (c.state == TcpState::kOpen)
      begin_reduction(pair, c);
    c.state = TcpState::kRecovery;
  } else if (echo && c.state == TcpState::kOpen) {
    c.counters.reductions_by_marks += !congestion_owns_window(c.control);
    begin_reduction(pair, c);
    c.state = TcpState::kCwr;
  }
}

void reduce(Connection &c, std::uint32_t delivered, bool advanced, bool has_losses) {
  if (!delivered || !c.prior_cwnd)
    return;
  const auto in_flight = static_cast<std::int64_t>(c.board.in_flight());
  const std::int64_t delta = static_cast<std::int64_t>(c.view.ssthresh) - in_flight;
  c.prr_delivered += delivered;
  std::int64_t send = 0;
  if (delta < 0) {
    const auto due = static_cast<std::int64_t>(c.view.ssthresh) * c.prr_delivered + c.prior_cwnd - 1;
    send = due / c.prior_cwnd - c.prr_out;
  } else {
    send = std::max<std::int64_t>(static_cast<std::int64_t>(c.prr_delivered) - c.prr_out, delivered);
    if (advanced && !has_losses)
      send++;
    send = std::min(delta, send);
  }
  send = std::max<std::int64_t>(send, c.prr_out ? 0 : 1); // The first segment is sent again at once.
  c.view.cwnd = static_cast<std::uint32_t>(std::max<std::int64_t>(in_flight + send, 1));
}

void end_probe(QueuePair &pair, Connection &c, const Packet &packet, std::uint32_t delivered) {
  if (packet.seq < c.probed_seq)
    return;
  if (c.probe_was_new || packet.is_duplicate) {
    c.probed_seq = -1;
  } else if (packet.seq > c.probed_seq) { // The probe repaired a loss.
    c.probed_seq = -1;
    if (c.state == TcpState::kOpen && !congestion_owns_window(c.control)) {
      begin_reduction(pair, c);
      end_reduction(c);
    }
  } else if (!delivered) {
    c.probed_seq = -1;
  }
}

} // namespace packets
