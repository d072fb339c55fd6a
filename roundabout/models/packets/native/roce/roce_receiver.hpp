// SPDX-License-Identifier: Apache-2.0
// The receiver of RoCE queue pairs: acknowledgements, out-of-order packets, and DCQCN's notification point.
#pragma once

#include "roundabout/models/packets/native/roce/queue_pair.hpp"
#include "roundabout/models/packets/native/roce/selective_repeat.hpp"
#include "roundabout/models/packets/native/switches/forwarding.hpp"

#include <map>
#include <utility>
#include <vector>

namespace packets {

class RoceReceiver {
public:
  RoceReceiver(const nic_plan &nic, Fabric &fabric, Forwarding &forwarding, Hosts &hosts)
      : nic_(nic), fabric_(fabric), forwarding_(forwarding), hosts_(hosts) {}

  void attach(QueuePair &pair, const reaction_plan &plan); // to a queue pair between hosts

  void take_data(const Packet &packet, Picos now);
  // Returns the sequence number of the packet that caused the NACK which is at `nack` in the pool.
  Bytes sack_of(std::uint32_t nack) const { return nack < sacks_.size() ? sacks_[nack] : 0; }

private:
  std::uint32_t notification_point(const QueuePair &pair, std::uint32_t scope);
  void keep_out_of_order(const Packet &packet, Picos now);
  std::uint32_t answer(std::uint32_t pair, Kind kind, Picos now);

  const nic_plan &nic_;
  Fabric &fabric_;
  Forwarding &forwarding_;
  Hosts &hosts_;
  std::vector<Picos> cnp_at_;                                               // by notification point
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> cnp_of_; // shared ones, by port and host
  std::vector<Ranges> arrived_;                                             // out of order, by selective repeat
  std::vector<Bytes> sacks_;                                                // by the NACK's place in the pool
};

} // namespace packets
