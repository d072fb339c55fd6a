// SPDX-License-Identifier: Apache-2.0
#include "collectors/sampler/sources/ports.hpp"

#include <algorithm>
#include <linux/gen_stats.h>
#include <linux/pkt_sched.h>
#include <net/if.h>

namespace sampler {
namespace {

std::string join(const std::vector<Port> &ports) {
  std::string text;
  for (const Port &port : ports)
    text += (text.empty() ? "" : ", ") + port.name;
  return text.empty() ? "none" : text;
}

void check(int refused) {
  errno = refused;
  if (refused != 0)
    throw native::system_failure("the kernel refused to give counters by netlink");
}

void take_queue(Port &port, const nlmsghdr &message) {
  const auto take = [&port](int type, const void *data, std::size_t size) {
    gnet_stats_basic basic{};
    gnet_stats_queue queue{};
    if (type == TCA_STATS_BASIC) {
      copy_to(basic, data, size);
      port.qdisc_bytes = basic.bytes;
    } else if (type == TCA_STATS_QUEUE) {
      copy_to(queue, data, size);
      port.qdisc_backlog_bytes = queue.backlog;
      port.qdisc_drops = queue.drops;
    }
  };
  each_attribute_of<tcmsg>(message, [&take](int type, const void *data, std::size_t size) {
    if (type == TCA_STATS2)
      each_attribute(data, size, take);
  });
}

} // namespace

Ports::Ports(const std::vector<std::string> &names, bool queues) : queues_(queues) {
  const std::vector<Port> found = list();
  if (names.empty())
    std::copy_if(found.begin(), found.end(), std::back_inserter(ports_),
                 [](const Port &port) { return !port.loopback; });
  for (const std::string &name : names) {
    const auto port = std::find_if(found.begin(), found.end(), [&](const Port &each) { return each.name == name; });
    if (port == found.end())
      throw native::Failure("--interfaces: there is no \"" + name + "\" here; there is: " + join(found));
    ports_.push_back(*port);
  }
}

std::vector<Port> Ports::list() {
  std::vector<Port> found;
  check(netlink_.query(NetlinkRequest<ifinfomsg>(RTM_GETLINK, NLM_F_DUMP), [&found](const nlmsghdr &message) {
    const auto &link = body_of<ifinfomsg>(message);
    Port &port = found.emplace_back();
    port.ifindex = static_cast<std::uint32_t>(link.ifi_index);
    port.loopback = (link.ifi_flags & IFF_LOOPBACK) != 0;
    port.up = (link.ifi_flags & IFF_RUNNING) != 0;
    each_attribute_of<ifinfomsg>(message, [&port](int type, const void *data, std::size_t) {
      if (type == IFLA_IFNAME)
        port.name = static_cast<const char *>(data);
    });
  }));
  return found;
}

bool Ports::has(std::uint32_t ifindex) const {
  return std::any_of(ports_.begin(), ports_.end(), [&](const Port &port) { return port.ifindex == ifindex; });
}

void Ports::look_again() {
  changes_.drain();
  const std::vector<Port> found = list();
  for (Port &port : ports_) {
    const auto now = std::find_if(found.begin(), found.end(), [&](const Port &each) { return each.name == port.name; });
    port.up = now != found.end() && now->up;
    if (now != found.end())
      port.ifindex = now->ifindex;
  }
}

const std::vector<Port> &Ports::read() {
  for (Port &port : ports_)
    read_link(port);
  if (queues_)
    read_queues();
  return ports_;
}

void Ports::read_link(Port &port) {
  // Only the 64-bit counters of the link: a tenth of what RTM_GETLINK would make the kernel write.
  NetlinkRequest<if_stats_msg> request(RTM_GETSTATS);
  request.body.ifindex = port.ifindex;
  request.body.filter_mask = IFLA_STATS_FILTER_BIT(IFLA_STATS_LINK_64);
  const int refused = netlink_.query(request, [&port](const nlmsghdr &message) {
    each_attribute_of<if_stats_msg>(message, [&port](int type, const void *data, std::size_t size) {
      if (type == IFLA_STATS_LINK_64)
        copy_to(port.link, data, size);
    });
  });
  port.present = refused != ENODEV;
  if (port.present)
    check(refused);
}

void Ports::read_queues() {
  check(netlink_.query(NetlinkRequest<tcmsg>(RTM_GETQDISC, NLM_F_DUMP), [this](const nlmsghdr &message) {
    const auto &qdisc = body_of<tcmsg>(message);
    for (Port &port : ports_)
      if (port.ifindex == static_cast<std::uint32_t>(qdisc.tcm_ifindex) && qdisc.tcm_parent == TC_H_ROOT)
        take_queue(port, message);
  }));
}

} // namespace sampler
