// SPDX-License-Identifier: Apache-2.0
#include "roundabout/models/packets/native/switches/switch_mmu.hpp"

#include <algorithm>

namespace packets {

void SwitchMmu::share_buffer(const buffer_plan &plan, std::span<const std::uint32_t> ports,
                             std::span<const Bytes> headroom) {
  headrooms_.resize(fabric_.ports.size());
  for (std::size_t i = 0; i < ports.size(); i++) {
    fabric_.ports[ports[i]].buffer = static_cast<std::uint32_t>(buffers_.size());
    headrooms_[ports[i] ^ 1].bytes = headroom[i];
  }
  buffers_.emplace_back(plan);
}

// Without a shared buffer, each queue has a limit, and each incoming link has one with XOFF below it.
bool SwitchMmu::admit(Port &port, const Packet &packet, Picos now) {
  if (port.buffer != kNone)
    return admit_shared(port, packet, now);
  const std::uint32_t link = fabric_.link_before(packet);
  Port &before = fabric_.ports[link];
  Bytes &held = before.held[packet.priority];
  if (packet.kind == Kind::kData) {
    const bool has_room =
        (port.queue_bytes < 0 || port.queues[packet.priority].bytes + packet.frame <= port.queue_bytes) &&
        (before.xoff_bytes < 0 || held + packet.frame <= before.buffer_bytes);
    const bool has_no_mark = !packet.is_ecn && ecn_.draws_mark(port, port.queues[packet.priority].bytes);
    if (!has_room || has_no_mark)
      return false;
    if (before.xoff_bytes >= 0 && held + packet.frame > before.xoff_bytes && !(before.xoff_sent & bit(packet.priority)))
      send_pfc_frame(link, packet.priority, true, now);
  }
  held += packet.frame;
  return true;
}

// With a shared buffer, thresholds are dynamic. In a lossy switch they limit queues, and a frame above is dropped. In a
// lossless switch they limit incoming links: a frame above pauses its link and waits in the headroom.
bool SwitchMmu::admit_shared(Port &port, const Packet &packet, Picos now) {
  SharedBuffer &buffer = buffers_[port.buffer];
  const std::uint32_t link = fabric_.link_before(packet);
  Port &before = fabric_.ports[link];
  const int priority = packet.priority;
  const Bytes queued = port.queues[priority].bytes, frame = packet.frame;
  if (packet.kind == Kind::kData && !packet.is_ecn && ecn_.draws_mark(port, queued))
    return false;
  if (!buffer.is_lossless()) {
    if (!buffer.admits(queued, frame) || (port.queue_bytes >= 0 && queued + frame > port.queue_bytes))
      return false;
    buffer.take(frame, 0);
  } else {
    Headroom &headroom = headrooms_[link];
    Bytes &used = headroom.used[priority];
    if (buffer.admits(before.held[priority] - used, frame)) {
      buffer.take(frame, 0);
    } else {
      const bool has_room = used + frame <= headroom.bytes;
      // The last frame to leave sends XON, so there must be no XOFF without a frame that waits here.
      if (!(before.xoff_sent & bit(priority)) && (has_room || before.held[priority] > 0))
        send_pfc_frame(link, priority, true, now);
      if (!has_room)
        return false;
      used += frame;
      buffer.take(0, frame);
    }
  }
  before.held[priority] += frame;
  return true;
}

void SwitchMmu::release(const Port &port, const Packet &packet, Picos now) {
  if (port.buffer != kNone) {
    release_shared(port, packet, now);
    return;
  }
  const std::uint32_t link = fabric_.link_before(packet);
  Port &before = fabric_.ports[link];
  before.held[packet.priority] -= packet.frame;
  if ((before.xoff_sent & bit(packet.priority)) && before.held[packet.priority] <= before.xon_bytes)
    send_pfc_frame(link, packet.priority, false, now);
}

// Bytes leave the link's headroom first, so that the headroom is free when the link resumes.
void SwitchMmu::release_shared(const Port &port, const Packet &packet, Picos now) {
  SharedBuffer &buffer = buffers_[port.buffer];
  const std::uint32_t link = fabric_.link_before(packet);
  Port &before = fabric_.ports[link];
  const int priority = packet.priority;
  Bytes &used = headrooms_[link].used[priority];
  const Bytes from_headroom = std::min<Bytes>(packet.frame, used);
  used -= from_headroom;
  before.held[priority] -= packet.frame;
  buffer.give_back(packet.frame - from_headroom, from_headroom);
  if ((before.xoff_sent & bit(priority)) && used == 0 && before.held[priority] <= buffer.xon())
    send_pfc_frame(link, priority, false, now);
}

// The frame takes the link's other direction, after the packet that is being sent there. The two directions of a link
// are neighbors.
void SwitchMmu::send_pfc_frame(std::uint32_t link, int priority, bool is_xoff, Picos now) {
  const Port &other = fabric_.ports[link ^ 1];
  fabric_.ports[link].xoff_sent ^= bit(priority);
  events_.delay(std::max(now, other.free_at) + other.control_ps + other.delay,
                PfcEvent{link, static_cast<std::uint8_t>(priority), is_xoff, fabric_.ports[link].failures});
}

void SwitchMmu::pause_again(std::uint32_t link, Picos now) {
  Port &before = fabric_.ports[link];
  const bool is_shared = link < headrooms_.size() && headrooms_[link].bytes > 0;
  for (int priority = 0; priority < kPriorities; priority++) {
    const bool is_beyond = is_shared ? headrooms_[link].used[priority] > 0
                                     : before.xoff_bytes >= 0 && before.held[priority] > before.xoff_bytes;
    if (is_beyond) {
      before.xoff_sent |= bit(priority);
      before.set_paused(priority, true, now);
    }
  }
}

} // namespace packets
