// SPDX-License-Identifier: Apache-2.0
// The receiver of TCP connections: reassembly, and acknowledgements with ECN echoes and SACK blocks.
#pragma once

#include "roundabout/models/packets/native/switches/forwarding.hpp"
#include "roundabout/models/packets/native/tcp/connection.hpp"

#include <array>
#include <vector>

namespace packets {

class TcpReceiver {
public:
  TcpReceiver(EventQueue &events, Fabric &fabric, Forwarding &forwarding, Hosts &hosts,
              std::vector<Connection> &connections)
      : events_(events), fabric_(fabric), forwarding_(forwarding), hosts_(hosts), connections_(connections) {}

  void take_segment(const Packet &packet, Picos now);
  void acknowledge(std::uint32_t pair, Connection &c, Picos now, bool is_duplicate);

  // Returns the SACK blocks of the acknowledgement that is at `ack` in the pool, if it has any.
  const Interval *blocks_of(std::uint32_t ack) const { return ack < blocks_.size() ? blocks_[ack].data() : nullptr; }

private:
  bool insert_beyond(Connection &c, Bytes begin, Bytes end); // Returns true if any of these bytes are new.

  EventQueue &events_;
  Fabric &fabric_;
  Forwarding &forwarding_;
  Hosts &hosts_;
  std::vector<Connection> &connections_;
  std::vector<std::array<Interval, kBlocks>> blocks_; // by the acknowledgement's place in the pool
};

} // namespace packets
