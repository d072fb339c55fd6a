// SPDX-License-Identifier: Apache-2.0
// Selective repeat of a queue pair, after IRN (Mittal et al., SIGCOMM'18): the receiver keeps what
// arrives out of order and answers each such packet with a NACK, which has what is expected next and what has just
// arrived. The sender sends again what is missing, and no packet twice without a timeout. After a timeout it takes all
// that is missing for lost, as TCP does (RFC 6675). Where packets may overtake each other, only a timeout shows a loss.
// IRN's limit of bytes in flight is not here.
#pragma once

#include "roundabout/models/packets/native/numbers.hpp"

#include <algorithm>
#include <map>

namespace packets {

// Bytes of a stream, as ranges that do not touch. Empty but after a loss.
class Ranges {
public:
  bool empty() const { return ends_.empty(); }
  void clear() { ends_.clear(); }
  Bytes last_end() const { return ends_.empty() ? 0 : ends_.rbegin()->second; }

  void insert(Bytes begin, Bytes end) {
    auto found = ends_.upper_bound(begin);
    if (found != ends_.begin() && std::prev(found)->second >= begin) {
      found = std::prev(found);
      begin = found->first;
      end = std::max(end, found->second);
    }
    while (found != ends_.end() && found->first <= end) {
      end = std::max(end, found->second);
      found = ends_.erase(found);
    }
    ends_[begin] = end;
  }

  // The end of the range that holds a byte, or the byte itself where none does.
  Bytes skip(Bytes byte) const {
    const auto found = ends_.upper_bound(byte);
    return found != ends_.begin() && std::prev(found)->second > byte ? std::prev(found)->second : byte;
  }

  void erase_below(Bytes byte) {
    while (!ends_.empty() && ends_.begin()->second <= byte)
      ends_.erase(ends_.begin());
  }

private:
  std::map<Bytes, Bytes> ends_; // by begin
};

// The sender's state. The receiver's is the ranges that have arrived out of order.
struct SelectiveRepeat {
  Ranges sacked;      // selectively acknowledged
  Bytes repair = 0;   // missing packets before it were sent again
  Bytes lost_end = 0; // packets that begin before it, and are missing, are lost
  Bytes recovery = 0; // what was sent when recovery began; over once all of it has arrived

  void begin(Bytes at) {
    sacked.clear();
    repair = lost_end = recovery = at;
  }

  // The next lost packet, or `lost_end` and more where there is none.
  Bytes next_lost(Bytes acked) const { return sacked.skip(std::max(repair, acked)); }

  // A sack before `acked` is late, and its end may be that of another message's packet.
  void on_sack(Bytes acked, Bytes sack_begin, Bytes sack_end) {
    if (sack_begin > acked)
      sacked.insert(sack_begin, sack_end);
    sacked.erase_below(acked);
  }

  // All missing bytes before the sack are lost.
  void on_nack(Bytes acked, Bytes sack_begin, Bytes sack_end, Bytes sent) {
    if (acked >= recovery) { // a loss after all that the last one was known by
      recovery = sent;
      repair = acked;
    }
    on_sack(acked, sack_begin, sack_end);
    lost_end = std::max({lost_end, sack_begin, acked + 1});
  }

  void on_timeout(Bytes acked, Bytes sent) {
    recovery = lost_end = sent;
    repair = acked;
  }
};

} // namespace packets
