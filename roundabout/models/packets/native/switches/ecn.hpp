// SPDX-License-Identifier: Apache-2.0
// ECN marking: by thresholds of the queue as it is (Kmin, Kmax and Pmax, as DCQCN's switches do), or by random early
// detection of its average (RED; Floyd and Jacobson, IEEE/ACM ToN 1993).
#pragma once

#include "roundabout/models/packets/native/switches/port.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace packets {

// Parameters of one port: the paper's min_th, max_th, max_p, w_q, and the transmission time of a full packet.
struct RedPlan {
  Bytes min_bytes, max_bytes;
  double max_p, weight;
  Picos packet_ps;
};

// The average of one queue. Sizes are in bytes; the probability is per packet, as in the paper's figure 2.
class RedQueue {
public:
  double average() const { return average_; }

  // Updates the average when a packet arrives at a queue of `queued` bytes.
  void on_arrival(const RedPlan &plan, Bytes queued, Picos now) {
    if (queued > 0 || now < idle_since_)
      average_ += plan.weight * (static_cast<double>(queued) - average_);
    else
      average_ *= power(1 - plan.weight, (now - std::exchange(idle_since_, now)) / plan.packet_ps);
  }

  // Returns true if that packet is to be marked or dropped. The distances of signals are uniform from 1 to 1/p packets,
  // as in the paper's section 8; its figure 2 counts the packet itself, by which they are a packet shorter.
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

  // The queue is empty, and its last packet has left at `at`.
  void on_empty(Picos at) { idle_since_ = at; }

private:
  // Computes by squaring, because results of a library's pow differ between machines.
  static double power(double base, std::int64_t exponent) {
    double found = 1;
    for (; exponent > 0; exponent /= 2, base *= base)
      if (exponent % 2)
        found *= base;
    return found;
  }

  double average_ = 0;
  std::int64_t count_ = 0; // Packets since the last signal, while the average is between the thresholds.
  Picos idle_since_ = 0;
};

class EcnMarker {
public:
  explicit EcnMarker(Random &random) : random_(random) {}

  // Lets a port use RED between its thresholds. Full packets have a payload of `payload_bytes`.
  void use_red(Port &port, double weight, Bytes payload_bytes) {
    const auto packet_ps = static_cast<Picos>((static_cast<std::uint64_t>(payload_bytes) * port.payload_ps_q20) >> 20);
    port.red = static_cast<std::uint32_t>(reds_.size());
    reds_.push_back({{port.kmin_bytes, port.kmax_bytes, port.pmax, weight, packet_ps}, {}});
    port.pmax = 0; // Nothing is marked by the queue as it is.
    port.drops_early = port.marks_on_arrival = true;
  }

  // Returns true if a packet is to be marked by the thresholds of a queue of `queued` bytes.
  bool draws_mark(const Port &port, Bytes queued) {
    if (port.pmax <= 0 || queued <= port.kmin_bytes)
      return false;
    if (queued > port.kmax_bytes)
      return true;
    const double share = static_cast<double>(queued - port.kmin_bytes) /
                         static_cast<double>(std::max<Bytes>(port.kmax_bytes - port.kmin_bytes, 1));
    return random_.uniform() < port.pmax * share;
  }

  // The rest is for ports that use RED. Returns true if the packet that arrives has a signal.
  bool on_red_arrival(const Port &port, const Packet &packet, Picos now) {
    Red &red = reds_[port.red];
    RedQueue &queue = red.queues[packet.priority];
    queue.on_arrival(red.plan, port.queues[packet.priority].bytes, now);
    red.has_signal = packet.kind == Kind::kData && queue.signals(red.plan, random_);
    return red.has_signal;
  }
  bool has_red_signal(const Port &port) const { return reds_[port.red].has_signal; } // the last arrival
  void on_red_empty(const Port &port, int queue, Picos at) { reds_[port.red].queues[queue].on_empty(at); }
  double red_average(const Port &port, int queue) const {
    return port.red == kNone ? 0 : reds_[port.red].queues[queue].average();
  }

private:
  struct Red {
    RedPlan plan;
    RedQueue queues[kPriorities];
    bool has_signal = false; // the last arrival
  };

  Random &random_;
  std::vector<Red> reds_;
};

} // namespace packets
