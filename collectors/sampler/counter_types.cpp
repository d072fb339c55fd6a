// SPDX-License-Identifier: Apache-2.0
#include "collectors/sampler/counter_types.hpp"

#include <algorithm>
#include <array>

namespace sampler {
namespace {

constexpr int kQueueCounterBits = 32;

bool is_data(std::string_view name) { return name.ends_with("_data"); }

bool contains(std::string_view name, std::string_view part) { return name.find(part) != std::string_view::npos; }

// rx_64_bytes_phy and rx_65_to_127_bytes_phy count packets of those sizes.
bool counts_bytes(std::string_view name) {
  const auto end = name.rfind("_bytes");
  if (end == std::string_view::npos)
    return false;
  const std::string_view before = name.substr(0, end);
  return before.substr(before.rfind('_') + 1).find_first_not_of("0123456789") != std::string_view::npos;
}

} // namespace

Meaning rdma_hw_meaning(std::string_view name) {
  if (name == "lifespan")
    return {"ms"};
  constexpr std::array<std::string_view, 5> wide{"np_", "rp_", "cc_", "rdma_", "rx_icrc_"};
  const bool is_wide = std::any_of(wide.begin(), wide.end(), [&](auto prefix) { return name.starts_with(prefix); });
  return {"packets", is_wide ? 64 : kQueueCounterBits};
}

Meaning rdma_port_meaning(std::string_view name) {
  struct Narrow {
    std::string_view name;
    int width_bits;
  };
  constexpr std::array<Narrow, 12> narrow{{{"symbol_error", 16},
                                           {"link_error_recovery", 8},
                                           {"link_downed", 8},
                                           {"port_rcv_errors", 16},
                                           {"port_rcv_remote_physical_errors", 16},
                                           {"port_rcv_switch_relay_errors", 16},
                                           {"port_xmit_discards", 16},
                                           {"port_xmit_constraint_errors", 8},
                                           {"port_rcv_constraint_errors", 8},
                                           {"local_link_integrity_errors", 4},
                                           {"excessive_buffer_overrun_errors", 4},
                                           {"VL15_dropped", 16}}};
  if (is_data(name))
    return {"bytes"};
  if (name == "port_xmit_wait")
    return {"ticks", 32};
  const auto found = std::find_if(narrow.begin(), narrow.end(), [&](const Narrow &each) { return each.name == name; });
  return {contains(name, "link") || contains(name, "buffer") ? "events" : "packets",
          found == narrow.end() ? 64 : found->width_bits};
}

std::uint64_t rdma_port_factor(std::string_view name) { return is_data(name) ? 4 : 1; }

Meaning ethtool_meaning(std::string_view name) {
  if (counts_bytes(name))
    return {"bytes"};
  if (name.ends_with("_pause_duration"))
    return {"us"};
  if (name.ends_with("_pause_transition"))
    return {"events"};
  if (name.starts_with("outbound_pci_stalled"))
    return {contains(name, "_events") ? "s" : "percent"};
  return {"packets"};
}

} // namespace sampler
