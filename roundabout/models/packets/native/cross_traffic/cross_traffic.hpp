// SPDX-License-Identifier: Apache-2.0
// Cross traffic: flows that arrive by a schedule, each on a connection that is idle, and streams at a rate as iperf
// sends them.
#pragma once

#include "roundabout/models/packets/native/c_api.h"
#include "roundabout/models/packets/native/hosts.hpp"

#include <span>
#include <vector>

namespace packets {

class CrossTraffic {
public:
  CrossTraffic(EventQueue &events, Hosts &hosts) : events_(events), hosts_(hosts) {}

  std::uint32_t add_traffic();

  // Connections to one receiver, which are made when all others are busy. The first one is `pair`, which is in the
  // network already. With `is_fresh` a connection begins anew with each flow, a round trip after it. RoCE has a plan.
  void add_pool(std::uint32_t traffic, std::uint32_t pair, std::int64_t max_connections, bool is_fresh,
                const reaction_plan *plan);

  // Flows in the order of their starts.
  void set_flows(std::uint32_t traffic, std::span<const flow_plan> flows);
  // Streams over the traffic's first pool from the trial's begin on.
  void set_streams(std::uint32_t traffic, const stream_plan &plan);

  std::size_t count() const { return traffics_.size(); }
  void begin(); // schedules the first events
  void handle(std::uint32_t traffic, Picos now);

  void message_taken(std::uint32_t pair, Picos now);    // The sender has its acknowledgement.
  void message_received(std::uint32_t pair, Picos now); // The receiver has all of it.

  traffic_result result(std::uint32_t traffic) const;
  const std::vector<flow_record> &records(std::uint32_t traffic) const { return traffics_[traffic].records; }

private:
  struct Pool {
    reaction_plan plan{};
    std::uint32_t first_pair = kNone;
    std::size_t max_connections = 0;
    bool is_fresh = false;
    std::vector<std::uint32_t> pairs;
    std::vector<std::uint32_t> idle;    // the last one is used first, as crossgen does
    std::vector<std::uint32_t> waiting; // flows, in order
    std::size_t served = 0;             // of those that wait
  };

  struct Traffic {
    std::vector<flow_plan> flows;
    std::vector<flow_record> records;
    std::vector<Pool> pools;
    std::size_t next = 0;
    stream_plan streams{};
    Picos tried_at = 0;     // when the present number of streams began
    Bytes tried_before = 0; // delivered until then
  };

  // The traffic that a connection carries.
  struct Slot {
    std::uint32_t traffic = kNone, pool = kNone, flow = kNone;
  };

  std::uint32_t connect(std::uint32_t traffic, std::uint32_t pool);
  void launch(std::uint32_t traffic, std::uint32_t flow, Picos now);
  void begin_flow(std::uint32_t pair, std::uint32_t flow, Picos now);
  void begin_streams(std::uint32_t traffic, Picos now);
  void compare_rate(std::uint32_t traffic, Picos now);

  EventQueue &events_;
  Hosts &hosts_;
  std::vector<Traffic> traffics_;
  std::vector<Slot> slots_; // by queue pair
};

} // namespace packets
