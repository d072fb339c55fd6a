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
  bool present = false; // whether what is below was read
  bool up = false;      // whether the link carries traffic, as the kernel announces it (up to 1 s late)
  rtnl_link_stats64 link{};
  // Of the root qdisc, what is below it included.
  std::uint64_t qdisc_backlog_bytes = 0;
  std::uint64_t qdisc_drops = 0;
  std::uint64_t qdisc_bytes = 0;
};

// The chosen interfaces of a network namespace, read by netlink: one question an interface, and one more for all
// queues.
class Ports {
public:
  // Of the calling process's namespace; no names: all but loopback. Throws native::Failure naming an interface that is
  // not there.
  Ports(const std::vector<std::string> &names, bool queues);

  // None.
  Ports() = default;

  // Reads all counters anew. An interface that has gone is not `present` until one of its name has come.
  const std::vector<Port> &read();
  const std::vector<Port> &all() const { return ports_; }
  bool has(std::uint32_t ifindex) const;

  // Readable when some link has changed; then look_again().
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
