// SPDX-License-Identifier: Apache-2.0
#include "roundabout/models/packets/native/switches/link_changes.hpp"

namespace packets {

void LinkChanges::add(std::uint32_t port, const link_plan &plan) { changes_.push_back({port, plan}); }

void LinkChanges::avoid(std::span<const std::uint32_t> ports, Picos at) {
  avoidances_.push_back({at, {ports.begin(), ports.end()}});
}

void LinkChanges::begin() {
  for (std::uint32_t i = 0; i < changes_.size(); i++)
    events_.delay(changes_[i].plan.at_ps, LinkEvent{i});
  for (std::uint32_t i = 0; i < avoidances_.size(); i++)
    events_.delay(avoidances_[i].at, AvoidEvent{i});
}

void LinkChanges::handle(const AvoidEvent &event, Picos) { fabric_.avoid(avoidances_[event.change].ports); }

void LinkChanges::handle(const LinkEvent &event, Picos now) {
  const auto &[first, plan] = changes_[event.change];
  for (const std::uint32_t index : {first, first ^ 1}) {
    Port &port = fabric_.ports[index];
    const bool was_up = port.is_up;
    fabric_.set_rates(port, plan.payload_bytes_per_s, plan.line_bytes_per_s);
    port.is_up = plan.is_up != 0;
    port.link_loss = plan.loss;
    port.loses = !port.is_up || plan.loss > 0;
    if (was_up && !port.is_up)
      fail(index, now);
    else if (!was_up && port.is_up)
      mmu_.pause_again(index, now);
  }
}

// A port whose link is down is not paused, and its pauses of before are forgotten: the frames that would end them
// cannot arrive. A host goes on sending into the link that is down.
void LinkChanges::fail(std::uint32_t index, Picos now) {
  Port &port = fabric_.ports[index];
  port.failures++;
  port.xoff_sent = 0;
  for (int priority = 0; priority < kPriorities; priority++)
    if (port.paused & bit(priority))
      port.set_paused(priority, false, now);
  forwarding_.drop_all(index, now);
  if (port.ready)
    forwarding_.wake(index, now);
}

} // namespace packets
