// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "collectors/sampler/sources/netlink.hpp"

#include <cstdint>
#include <linux/if_link.h>
#include <string>
#include <vector>

namespace sampler {

// One interface and its counters, cumulative but for the backlog.
struct Port {
  std::string name;
  std::uint32_t ifindex = 0;
  bool loopback = false;
  bool present = false; // true if the following fields were read
  bool up = false;      // true if the kernel reports the link as up, up to 1 s late
  rtnl_link_stats64 link{};
  // Statistics of the root qdisc, including its children.
  std::uint64_t qdisc_backlog_bytes = 0;
  std::uint64_t qdisc_drops = 0;
  std::uint64_t qdisc_bytes = 0;
};

// The chosen interfaces of a network namespace, read by netlink with one request for each interface, and one for all
// queues.
class Ports {
public:
  // Chooses interfaces of this process's namespace by name; without names all but loopback. Throws native::Failure with
  // the name of a missing interface.
  Ports(const std::vector<std::string> &names, bool queues);

  // Chooses no interfaces.
  Ports() = default;

  // Reads and returns the present counters. A removed interface is not `present` until one of the same name appears.
  const std::vector<Port> &read();
  const std::vector<Port> &all() const { return ports_; }
  bool has(std::uint32_t ifindex) const;

  // A descriptor that is readable after a link has changed; call look_again() then.
  int changes_fd() const { return changes_.fd(); }
  void look_again();

private:
  std::vector<Port> list();
  void read_link(Port &port);
  void read_queues();

  Netlink changes_{RTMGRP_LINK};
  Netlink netlink_;
  bool queues_ = false;
  std::vector<Port> ports_;
};

} // namespace sampler
