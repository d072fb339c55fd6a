// SPDX-License-Identifier: Apache-2.0
// The segments of a TCP sender that are not acknowledged yet, with the state of each.
#pragma once

#include "roundabout/models/packets/native/numbers.hpp"

#include <vector>

namespace packets {

struct Segment {
  Bytes seq;
  Picos sent_at;              // the last time
  std::uint32_t older, newer; // neighbors in the order in which segments were sent
  std::uint16_t length;
  bool is_sacked, is_lost;
  bool is_resent;  // since it was taken for lost
  bool was_resent; // ever: it gives no round-trip time (Karn and Partridge, 1987)
  bool is_listed;  // among those that may yet be taken for lost
  bool is_last;    // of its message

  Bytes end() const { return seq + length; }
};

// Segments are numbered in the order of the stream, and kept in a ring. A list goes through those that are on their way
// by the time at which they were sent, so that a loss is found without looking at them all.
class Scoreboard {
public:
  Segment &operator[](std::uint32_t number) { return ring_[number & (ring_.size() - 1)]; }
  std::uint32_t begin() const { return begin_; }
  std::uint32_t end() const { return end_; }
  std::uint32_t size() const { return end_ - begin_; }
  bool is_empty() const { return begin_ == end_; }

  std::uint32_t sacked = 0, lost = 0, resent = 0; // counts of segments that are
  std::uint32_t in_flight() const { return size() - sacked - lost + resent; }

  std::uint32_t oldest() const { return oldest_; }

  std::uint32_t append(Bytes seq, std::uint16_t length, bool is_last, Picos now) {
    if (size() == ring_.size())
      grow();
    const std::uint32_t number = end_++;
    (*this)[number] = {seq, now, kNone, kNone, length, false, false, false, false, false, is_last};
    list(number);
    return number;
  }

  void resend(std::uint32_t number, Picos now) {
    Segment &segment = (*this)[number];
    segment.sent_at = now;
    segment.was_resent = true;
    if (segment.is_lost && !segment.is_resent) {
      segment.is_resent = true;
      resent++;
    }
    unlist(number);
    list(number);
  }

  void mark_lost(std::uint32_t number) {
    Segment &segment = (*this)[number];
    if (!segment.is_lost) {
      segment.is_lost = true;
      lost++;
    }
    if (segment.is_resent) {
      segment.is_resent = false;
      resent--;
    }
    unlist(number);
    if (is_before(number, hint_))
      hint_ = number;
  }

  // It has arrived, as a selective acknowledgement says.
  void mark_sacked(std::uint32_t number) {
    Segment &segment = (*this)[number];
    forget(segment);
    segment.is_sacked = true;
    sacked++;
    unlist(number);
  }

  // It has arrived with all before it.
  void pop() {
    Segment &segment = (*this)[begin_];
    if (segment.is_sacked)
      sacked--;
    forget(segment);
    unlist(begin_);
    begin_++;
    if (is_before(hint_, begin_))
      hint_ = begin_;
  }

  // The first segment that is lost and was not sent again, or kNone.
  std::uint32_t next_lost() {
    if (lost == resent)
      return kNone;
    while ((*this)[hint_].is_sacked || !(*this)[hint_].is_lost || (*this)[hint_].is_resent)
      hint_++;
    return hint_;
  }

  // The first segment that begins at `seq` or later.
  std::uint32_t find(Bytes seq) {
    std::uint32_t low = begin_, count = size();
    while (count > 0) {
      const std::uint32_t half = count / 2;
      if ((*this)[low + half].seq < seq) {
        low += half + 1;
        count -= half + 1;
      } else {
        count = half;
      }
    }
    return low;
  }

private:
  static bool is_before(std::uint32_t one, std::uint32_t other) { return static_cast<std::int32_t>(one - other) < 0; }

  void forget(Segment &segment) {
    lost -= segment.is_lost;
    resent -= segment.is_resent;
    segment.is_lost = segment.is_resent = false;
  }

  void list(std::uint32_t number) {
    Segment &segment = (*this)[number];
    segment.is_listed = true;
    segment.older = newest_;
    segment.newer = kNone;
    (newest_ == kNone ? oldest_ : (*this)[newest_].newer) = number;
    newest_ = number;
  }

  void unlist(std::uint32_t number) {
    Segment &segment = (*this)[number];
    if (!segment.is_listed)
      return;
    segment.is_listed = false;
    (segment.older == kNone ? oldest_ : (*this)[segment.older].newer) = segment.newer;
    (segment.newer == kNone ? newest_ : (*this)[segment.newer].older) = segment.older;
  }

  void grow() {
    std::vector<Segment> larger(ring_.empty() ? 64 : 2 * ring_.size());
    for (std::uint32_t number = begin_; number != end_; number++)
      larger[number & (larger.size() - 1)] = (*this)[number];
    ring_ = std::move(larger);
  }

  std::vector<Segment> ring_;
  std::uint32_t begin_ = 0, end_ = 0;
  std::uint32_t hint_ = 0; // no segment before it is lost and waits to be sent again
  std::uint32_t oldest_ = kNone, newest_ = kNone;
};

} // namespace packets
