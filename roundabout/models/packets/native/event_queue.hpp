// SPDX-License-Identifier: Apache-2.0
// The event queue: the next event of each target, and a heap of rare events that are delayed.
#pragma once

#include "roundabout/models/packets/native/numbers.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <numeric>
#include <utility>
#include <variant>
#include <vector>

namespace packets {

// The kind of an event says what the index of its target counts. Of two events at one instant, the one of the kind that
// is declared first comes first.
enum class EventKind : std::uint8_t {
  kArrival,      // at the far end of a port's link
  kTransmission, // of a port's next packet
  kDelayed,      // the earliest one; its only index is 0
  kQueuePair,    // a timer of a queue pair or of a TCP connection
  kWorker,       // enters its next phase
  kDeparture,    // of a job
  kSample,       // of all counters; its only index is 0
  kCrossTraffic, // begins a flow, or compares rates
};
inline constexpr std::size_t kEventKinds = 8;

// A kind and an index in one word, so that a node of the queue has room for it.
class EventTarget {
public:
  constexpr EventTarget(EventKind kind, std::uint32_t index = 0)
      : word_(static_cast<std::uint32_t>(kind) << kIndexBits | index) {}

  constexpr EventKind kind() const { return static_cast<EventKind>(word_ >> kIndexBits); }
  constexpr std::uint32_t index() const { return word_ & ((1U << kIndexBits) - 1); }
  // Returns `first` if the mask has all bits, and `second` if it has none.
  static constexpr EventTarget choose(EventTarget first, EventTarget second, std::uint32_t mask) {
    second.word_ ^= (first.word_ ^ second.word_) & mask;
    return second;
  }
  constexpr bool operator==(const EventTarget &) const = default;

private:
  static constexpr int kIndexBits = 28;
  std::uint32_t word_;
};

// Delayed events have no limit of one per target.
struct CnpEvent { // The sender's NIC has processed a CNP.
  std::uint32_t queue_pair;
};
struct PfcEvent { // A pause frame has arrived.
  std::uint32_t port;
  std::uint8_t priority;
  bool is_xoff;
  std::uint16_t failures; // of the port's link when the frame was sent
};
struct HandshakeEvent { // A fresh connection may send.
  std::uint32_t queue_pair;
};
struct LinkEvent { // A link changes.
  std::uint32_t change;
};
struct RouteEvent { // Queue pairs take other routes.
  std::uint32_t first_change;
};
struct AvoidEvent { // Switches choose among other links.
  std::uint32_t change;
};
using DelayedEvent = std::variant<CnpEvent, PfcEvent, HandshakeEvent, LinkEvent, RouteEvent, AvoidEvent>;

// Each target has one next event, and they are in a tournament, so its size is that of the network, however many
// packets are in flight. Of two events of one kind at one instant, that of the lower index comes first. Queue pairs
// that are added during the simulation come after all other targets.
class EventQueue {
public:
  // Number of targets of each kind.
  using Counts = std::array<std::uint32_t, kEventKinds>;

  void begin(const Counts &counts) {
    counts_ = counts;
    initial_queue_pairs_ = counts[static_cast<std::size_t>(EventKind::kQueuePair)];
    late_offset_ = 0;
    for (std::size_t kind = static_cast<std::size_t>(EventKind::kQueuePair) + 1; kind < kEventKinds; kind++)
      late_offset_ += counts[kind];
    resize(std::accumulate(counts.begin(), counts.end(), std::size_t{0}));
  }

  // Makes room for a queue pair that is added during the simulation.
  void add_queue_pair(std::uint32_t index) {
    const std::size_t leaves = leaf_of({EventKind::kQueuePair, index}) - leaves_ + 1;
    if (leaves <= leaves_)
      return;
    const std::vector<Node> former(nodes_.begin() + static_cast<std::ptrdiff_t>(leaves_), nodes_.end());
    resize(leaves);
    for (const Node &each : former)
      if (each.at < kNever)
        set(each.target, each.at);
  }

  Picos next_at() const { return nodes_[1].at; }
  EventTarget next_target() const { return nodes_[1].target; }
  Picos at(EventTarget target) const { return nodes_[leaf_of(target)].at; }

  // Inlined because nearly all callers have a constant kind: a call costs 3 percent of the engine's speed.
  [[gnu::always_inline]] void set(EventTarget target, Picos at) {
    std::size_t place = leaf_of(target);
    Node winner{at, target};
    nodes_[place] = winner;
    if (nodes_[1].target == target) { // It stood at all places up to the root.
      while (place > 1) {
        winner = earlier(winner, place);
        place /= 2;
        nodes_[place] = winner;
      }
      return;
    }
    while (place > 1) {
      winner = earlier(winner, place);
      place /= 2;
      if (nodes_[place].target == winner.target && nodes_[place].at == winner.at)
        return;
      nodes_[place] = winner;
    }
  }

  void cancel(EventTarget target) { set(target, kNever); }

  void delay(Picos at, DelayedEvent event) {
    delayed_.push_back({at, delayed_count_++, event});
    std::ranges::push_heap(delayed_, std::greater<>());
    set({EventKind::kDelayed}, delayed_.front().at);
  }

  DelayedEvent pop_delayed() {
    std::ranges::pop_heap(delayed_, std::greater<>());
    const DelayedEvent event = delayed_.back().event;
    delayed_.pop_back();
    set({EventKind::kDelayed}, delayed_.empty() ? kNever : delayed_.front().at);
    return event;
  }

private:
  struct Node {
    Picos at = kNever;
    EventTarget target{EventKind::kSample};
  };

  struct Delayed {
    Picos at;
    std::uint64_t order; // The older of two events at one instant comes first.
    DelayedEvent event;
    bool operator>(const Delayed &other) const { return at != other.at ? at > other.at : order > other.order; }
  };

  std::size_t leaf_of(EventTarget target) const {
    const std::size_t leaf = first_leaf_[static_cast<std::size_t>(target.kind())] + target.index();
    return target.kind() == EventKind::kQueuePair && target.index() >= initial_queue_pairs_ ? leaf + late_offset_
                                                                                            : leaf;
  }

  void resize(std::size_t leaves) {
    leaves_ = 2;
    while (leaves_ < leaves)
      leaves_ *= 2;
    std::size_t first = leaves_;
    for (std::size_t kind = 0; kind < kEventKinds; kind++) {
      first_leaf_[kind] = first;
      first += counts_[kind];
    }
    nodes_.assign(2 * leaves_, Node{});
  }

  // Returns the earlier one of a node at `place` and its rival; at one instant the left one.
  // A branch here would be mispredicted at every second level, so masks choose.
  Node earlier(const Node &node, std::size_t place) const {
    const Node &rival = nodes_[place ^ 1];
    const std::uint64_t mask = rival.at - static_cast<Picos>(place & 1) < node.at ? ~std::uint64_t{0} : 0;
    Node found = node;
    found.at ^= (node.at ^ rival.at) & static_cast<Picos>(mask);
    found.target = EventTarget::choose(rival.target, node.target, static_cast<std::uint32_t>(mask));
    return found;
  }

  std::size_t leaves_ = 0;
  std::vector<Node> nodes_;
  Counts counts_{};
  std::array<std::size_t, kEventKinds> first_leaf_{}; // Node of each kind's index 0.
  std::size_t late_offset_ = 0;                       // Targets between initial queue pairs and later ones.
  std::uint32_t initial_queue_pairs_ = kNone;
  std::vector<Delayed> delayed_; // a heap
  std::uint64_t delayed_count_ = 0;
};

} // namespace packets
