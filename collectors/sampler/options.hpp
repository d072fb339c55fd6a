// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "native/clock.hpp"

#include <string>
#include <sys/types.h>
#include <variant>
#include <vector>

namespace sampler {

inline const std::vector<std::string> kAll{"all"};

// Patterns of the drivers' statistics for RoCE: by priority, on the wire, and where a host loses packets or stalls.
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
  std::vector<std::string> interfaces; // empty: all but loopback, or none if `sys_root` is set
  pid_t netns_of_pid = 0;              // 0: this process's network namespace
  std::string ecn_maps;                // "": none
  std::string transports;              // "": none
  std::vector<std::string> rdma_devices;
  std::vector<std::string> ethtool_patterns = kRoceStatistics;
  std::string sys_root; // the folder that replaces / as parent of sys and proc
};

// Returns the options, or an exit status: 0 after printing help, 2 for a wrong command line, after a message on
// standard error.
std::variant<Options, int> parse_options(int argc, char **argv);

} // namespace sampler
