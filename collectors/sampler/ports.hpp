// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "native/fd.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <string>
#include <vector>

namespace sampler {

// One interface and its counters, cumulative but for the backlog.
struct Port {
  std::string name;
  std::uint32_t ifindex = 0;
  bool loopback = false;
  rtnl_link_stats64 link{};
  // Of the root qdisc, what is below it included.
  std::uint64_t qdisc_backlog_bytes = 0;
  std::uint64_t qdisc_drops = 0;
  std::uint64_t qdisc_bytes = 0;
};

// The chosen interfaces of a network namespace, read by netlink: two dumps a reading, whatever their number.
class Ports {
public:
  // Of the calling process's namespace; no names: all but loopback. Throws native::Failure naming an interface that is
  // not there.
  explicit Ports(const std::vector<std::string> &names);

  // Reads all counters anew. Throws native::Failure if an interface has gone.
  const std::vector<Port> &read();

private:
  using Handler = std::function<void(const nlmsghdr &)>;

  void choose(const std::vector<std::string> &names);
  void dump(const void *request, std::size_t size, const Handler &handle);
  bool handle_part(std::size_t size, const Handler &handle);
  Port *find(std::uint32_t ifindex);
  void take_link(const nlmsghdr &message);
  void take_qdisc(const nlmsghdr &message);

  native::Fd socket_;
  std::vector<Port> ports_;
  std::size_t links_seen_ = 0;
  alignas(nlmsghdr) std::array<char, 65'536> buffer_{};
};

} // namespace sampler
