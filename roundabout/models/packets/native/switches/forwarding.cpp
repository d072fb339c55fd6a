// SPDX-License-Identifier: Apache-2.0
#include "roundabout/models/packets/native/switches/forwarding.hpp"

#include "roundabout/models/packets/native/hosts.hpp"

namespace packets {

void Forwarding::weigh_queues(std::uint32_t port, std::span<const Bytes> quanta) {
  fabric_.ports[port].scheduler = static_cast<std::uint32_t>(schedulers_.size());
  schedulers_.emplace_back(quanta);
}

void Forwarding::arrive(std::uint32_t link, Picos now) {
  Port &port = fabric_.ports[link];
  const std::uint32_t index = packets.pop(port.on_link);
  events_.set({EventKind::kArrival, link}, port.on_link.empty() ? kNever : packets[index].next_at);
  const std::uint32_t next = fabric_.next_port(packets[index], link, now);
  if (next == kNone)
    hosts_.receive(index, now);
  else
    enqueue(next, index, now);
}

void Forwarding::enqueue(std::uint32_t index, std::uint32_t which, Picos now) {
  Port &port = fabric_.ports[index];
  Packet &packet = packets[which];
  if (!port.is_up) {
    lose(port, which);
    return;
  }
  if (port.drops_early && drops_early(port, packet, now)) {
    port.counters[packet.priority].drops++;
    packets.give_back(which);
    return;
  }
  if (port.is_idle(packet.priority, now)) { // It passes an empty queue.
    transmit(index, which, now);
    return;
  }
  Queue &queue = port.queues[packet.priority];
  if (!port.is_host && !mmu_.admit(port, packet, now)) {
    reject(index, which, now);
    return;
  }
  if (port.marks_on_arrival && packet.kind == Kind::kData && packet.is_ecn &&
      (port.red == kNone ? ecn_.draws_mark(port, queue.bytes) : ecn_.has_red_signal(port)))
    fabric_.mark(port, packet);
  queue.bytes += packet.frame;
  packets.append(queue.waiting, which);
  port.ready |= bit(packet.priority);
  wake(index, now);
}

// A trimmed packet goes before all data, and its receiver requests it again (packet trimming, UEC 1.0).
void Forwarding::reject(std::uint32_t index, std::uint32_t which, Picos now) {
  Port &port = fabric_.ports[index];
  Packet &packet = packets[which];
  port.counters[packet.priority].drops++;
  if (!port.trims || packet.kind != Kind::kData) {
    packets.give_back(which);
    return;
  }
  packet.kind = Kind::kTrimmed;
  packet.payload = 0;
  packet.frame = static_cast<std::uint16_t>(fabric_.control_bytes());
  packet.priority = kCnpPriority;
  enqueue(index, which, now);
}

// Returns true if a packet is dropped before it can wait: at random, or as RED's signal if it is not ECN-capable.
bool Forwarding::drops_early(Port &port, Packet &packet, Picos now) {
  if (port.loss > 0 && packet.kind <= Kind::kAck && random_.uniform() < port.loss)
    return true;
  if (port.red == kNone)
    return false;
  const bool has_signal = ecn_.on_red_arrival(port, packet, now);
  if (has_signal && !packet.is_ecn)
    return true;
  if (port.is_idle(packet.priority, now)) { // It leaves at once.
    if (has_signal)
      fabric_.mark(port, packet);
    ecn_.on_red_empty(port, packet.priority, now + fabric_.transmission_time(port, packet));
  }
  return false;
}

void Forwarding::wake(std::uint32_t index, Picos now) {
  Port &port = fabric_.ports[index];
  if (port.is_due)
    return;
  if (port.free_at <= now) {
    transmit_next(index, now);
  } else {
    port.is_due = true;
    events_.set({EventKind::kTransmission, index}, port.free_at);
  }
}

void Forwarding::on_transmission(std::uint32_t index, Picos now) {
  Port &port = fabric_.ports[index];
  port.is_due = false;
  transmit_next(index, now);
  if (!port.is_due) // Otherwise its next transmission has replaced this one.
    events_.cancel({EventKind::kTransmission, index});
}

void Forwarding::transmit_next(std::uint32_t index, Picos now) {
  Port &port = fabric_.ports[index];
  const auto may = static_cast<std::uint8_t>(port.ready & ~port.paused);
  if (!may)
    return;
  const std::uint32_t which = dequeue(port, port.scheduler == kNone ? highest(may) : choose(port, may), now);
  if (which == kNone) { // The queue pair has nothing to send anymore.
    transmit_next(index, now);
    return;
  }
  Packet &packet = packets[which];
  if (!port.is_host) {
    mmu_.release(port, packet, now);
    if (!port.marks_on_arrival && packet.kind == Kind::kData && packet.is_ecn &&
        ecn_.draws_mark(port, port.queues[packet.priority].bytes))
      fabric_.mark(port, packet);
  }
  transmit(index, which, now);
  if (port.ready & ~port.paused) {
    port.is_due = true;
    events_.set({EventKind::kTransmission, index}, port.free_at);
  }
}

void Forwarding::transmit(std::uint32_t index, std::uint32_t which, Picos now) {
  Port &port = fabric_.ports[index];
  Packet &packet = packets[which];
  port.free_at = now + fabric_.transmission_time(port, packet);
  if (port.loses && (!port.is_up || random_.uniform() < port.link_loss)) {
    lose(port, which);
    return;
  }
  port.tx_bytes += packet.frame;
  port.tx_packets++;
  if (port.counts_queues) {
    port.counters[packet.priority].tx_bytes += packet.frame;
    port.counters[packet.priority].tx_packets++;
  }
  hops_++;
  const Picos at = port.free_at + port.delay;
  if (port.on_link.empty())
    events_.set({EventKind::kArrival, index}, at);
  else
    packets[port.on_link.tail].next_at = at;
  packets.append(port.on_link, which);
}

void Forwarding::lose(Port &port, std::uint32_t which) {
  port.lost_data += packets[which].kind == Kind::kData;
  packets.give_back(which);
}

void Forwarding::drop_all(std::uint32_t index, Picos now) {
  Port &port = fabric_.ports[index];
  for (int priority = 0; priority < kPriorities; priority++)
    while (!port.queues[priority].waiting.empty()) {
      const std::uint32_t which = dequeue(port, priority, now);
      if (!port.is_host)
        mmu_.release(port, packets[which], now);
      lose(port, which);
    }
  while (!port.on_link.empty())
    lose(port, packets.pop(port.on_link));
  events_.cancel({EventKind::kArrival, index});
}

int Forwarding::choose(Port &port, std::uint8_t may) {
  return schedulers_[port.scheduler].choose(
      may, [&](int queue) -> Bytes { return packets[port.queues[queue].waiting.head].frame; });
}

std::uint32_t Forwarding::dequeue(Port &port, int priority, Picos now) {
  Queue &queue = port.queues[priority];
  std::uint32_t found = kNone;
  if (!queue.waiting.empty()) {
    found = packets.pop(queue.waiting);
    queue.bytes -= packets[found].frame;
    if (queue.waiting.empty() && port.turns[priority].empty()) {
      port.ready &= static_cast<std::uint8_t>(~bit(priority));
      if (port.scheduler != kNone || port.red != kNone)
        on_empty_queue(port, packets[found], now);
    }
    return found;
  }
  return hosts_.send_next(port, priority, now);
}

void Forwarding::on_empty_queue(Port &port, const Packet &packet, Picos now) {
  if (port.scheduler != kNone)
    schedulers_[port.scheduler].on_empty(packet.priority);
  if (port.red != kNone)
    ecn_.on_red_empty(port, packet.priority, now + fabric_.transmission_time(port, packet));
}

void Forwarding::handle(const PfcEvent &event, Picos now) {
  Port &port = fabric_.ports[event.port];
  if (event.failures != port.failures) // The frame was lost.
    return;
  port.set_paused(event.priority, event.is_xoff, now);
  if (!event.is_xoff && (port.ready & bit(event.priority)))
    wake(event.port, now);
}

} // namespace packets
