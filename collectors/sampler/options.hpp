// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "native/clock.hpp"

#include <string>
#include <sys/types.h>
#include <variant>
#include <vector>

namespace sampler {

inline const std::vector<std::string> kAll{"all"};

// What drivers tell about RoCE: per priority, on the wire, and where a host loses packets or stalls.
inline const std::vector<std::string> kRoceStatistics{
    "[rt]x_prio[0-7]_*", "[rt]x_bytes_phy", "[rt]x_packets_phy",      "*_discards_phy",
    "rx_out_of_buffer",  "*_vport_rdma_*",  "outbound_pci_stalled_*",
};

struct Options {
  std::string name = "sampler";
  native::Nanos port_period_ns = 10'000'000;
  native::Nanos machine_period_ns = 1'000'000'000;
  bool cpu = false;
  bool queues = false;
  std::vector<std::string> interfaces; // none: all but loopback, and none at all below a `sys_root`
  pid_t netns_of_pid = 0;              // 0: the network namespace that we are in
  std::string ecn_maps;                // "": none
  std::string transports;              // "": none
  std::vector<std::string> rdma_devices;
  std::vector<std::string> ethtool_patterns = kRoceStatistics;
  std::string sys_root; // what stands for / before sys and proc
};

// The options, or the exit status when the command line asked for help (0) or was wrong (2, said on standard error).
std::variant<Options, int> parse_options(int argc, char **argv);

} // namespace sampler
