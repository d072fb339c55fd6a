// SPDX-License-Identifier: Apache-2.0
// Random early detection (Floyd and Jacobson, IEEE/ACM ToN 1993): the average queue, and which packets it signals.
#pragma once

#include "roundabout/models/packets/native/numbers.hpp"

#include <utility>

namespace packets {

// Of one port; the paper's min_th, max_th, max_p, w_q, and the time of a full packet.
struct RedPlan {
  Bytes min_bytes, max_bytes;
  double max_p, weight;
  Picos packet_ps;
};

// Of one queue. Sizes are in bytes; the probability is per packet, as in the paper's figure 2.
class RedQueue {
public:
  double average() const { return average_; }

  // A packet comes to a queue of so many bytes.
  void on_arrival(const RedPlan &plan, Bytes queued, Picos now) {
    if (queued > 0 || now < idle_since_)
      average_ += plan.weight * (static_cast<double>(queued) - average_);
    else
      average_ *= power(1 - plan.weight, (now - std::exchange(idle_since_, now)) / plan.packet_ps);
  }

  // Whether that packet is to be marked, or dropped. The distances of signals are uniform from 1 to 1/p packets, as in
  // the paper's section 8; its figure 2 counts the packet itself, by which they are a packet shorter.
  bool signals(const RedPlan &plan, Random &random) {
    const auto least = static_cast<double>(plan.min_bytes), most = static_cast<double>(plan.max_bytes);
    if (average_ < least) {
      count_ = 0;
      return false;
    }
    if (average_ < most) {
      const double p = plan.max_p * (average_ - least) / (most - least), left = 1 - static_cast<double>(count_) * p;
      if (left > 0 && random.uniform() >= p / left) {
        count_++;
        return false;
      }
    }
    count_ = 0;
    return true;
  }

  // Its last packet leaves by then.
  void on_empty(Picos at) { idle_since_ = at; }

private:
  // By squaring: a library's pow may differ from machine to machine.
  static double power(double base, std::int64_t exponent) {
    double found = 1;
    for (; exponent > 0; exponent /= 2, base *= base)
      if (exponent % 2)
        found *= base;
    return found;
  }

  double average_ = 0;
  std::int64_t count_ = 0; // packets without a signal since the last one, while the average is between the thresholds
  Picos idle_since_ = 0;
};

} // namespace packets
