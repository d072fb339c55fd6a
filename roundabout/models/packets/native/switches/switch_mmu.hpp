// SPDX-License-Identifier: Apache-2.0
// The memory management unit of switches: admission of packets to buffers, and priority flow control (PFC, IEEE
// 802.1Qbb) of the links by which packets arrive.
#pragma once

#include "roundabout/models/packets/native/event_queue.hpp"
#include "roundabout/models/packets/native/fabric.hpp"
#include "roundabout/models/packets/native/switches/buffer.hpp"
#include "roundabout/models/packets/native/switches/ecn.hpp"

#include <span>
#include <vector>

namespace packets {

class SwitchMmu {
public:
  SwitchMmu(EventQueue &events, Fabric &fabric, EcnMarker &ecn) : events_(events), fabric_(fabric), ecn_(ecn) {}

  // Called before the first packet. The ports of a switch share its memory; `headroom` has, for each port, that of the
  // link to the switch in the opposite direction.
  void share_buffer(const buffer_plan &plan, std::span<const std::uint32_t> ports, std::span<const Bytes> headroom);

  // Returns true if the switch has room for a packet that waits at `port`; its bytes count until it is released.
  bool admit(Port &port, const Packet &packet, Picos now);
  void release(const Port &port, const Packet &packet, Picos now);
  // Pauses the port of a link that has come up for the priorities of which the switch at its end still holds too much.
  void pause_again(std::uint32_t link, Picos now);

  const std::vector<SharedBuffer> &buffers() const { return buffers_; }

private:
  bool admit_shared(Port &port, const Packet &packet, Picos now);
  void release_shared(const Port &port, const Packet &packet, Picos now);
  // Pauses or resumes a priority of the port that feeds `link`.
  void send_pfc_frame(std::uint32_t link, int priority, bool is_xoff, Picos now);

  EventQueue &events_;
  Fabric &fabric_;
  EcnMarker &ecn_;
  std::vector<SharedBuffer> buffers_;
  std::vector<Headroom> headrooms_; // by link, if any switch shares a buffer
};

} // namespace packets
