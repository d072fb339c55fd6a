// SPDX-License-Identifier: Apache-2.0
#include "collectors/sampler/ports.hpp"

#include "native/errors.hpp"

#include <algorithm>
#include <linux/gen_stats.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/socket.h>

namespace sampler {
namespace {

// A netlink request with its fixed header.
template <typename Body> struct Request {
  nlmsghdr header{};
  Body body{};

  explicit Request(std::uint16_t type) {
    header.nlmsg_len = sizeof *this;
    header.nlmsg_type = type;
    header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  }
};

template <typename Body> const Body &body_of(const nlmsghdr &message) {
  return *static_cast<const Body *>(NLMSG_DATA(&message));
}

using Attribute = std::function<void(int type, const void *data, std::size_t size)>;

void each_attribute(const void *first, std::size_t size, const Attribute &take) {
  const auto *at = static_cast<const char *>(first);
  while (size >= sizeof(rtattr)) {
    const auto *attribute = reinterpret_cast<const rtattr *>(at);
    if (attribute->rta_len < sizeof(rtattr) || attribute->rta_len > size)
      return;
    take(attribute->rta_type & NLA_TYPE_MASK, at + RTA_LENGTH(0), attribute->rta_len - RTA_LENGTH(0));
    const std::size_t step = std::min<std::size_t>(RTA_ALIGN(attribute->rta_len), size);
    at += step;
    size -= step;
  }
}

template <typename Body> void each_attribute_of(const nlmsghdr &message, const Attribute &take) {
  if (message.nlmsg_len < NLMSG_LENGTH(sizeof(Body)))
    return;
  const auto *first = reinterpret_cast<const char *>(&message) + NLMSG_SPACE(sizeof(Body));
  each_attribute(first, message.nlmsg_len - NLMSG_LENGTH(sizeof(Body)), take);
}

// Attributes of an older kernel are shorter than ours, of a newer one longer.
template <typename Value> void copy_to(Value &value, const void *data, std::size_t size) {
  std::memcpy(&value, data, std::min(size, sizeof value));
}

std::string join(const std::vector<Port> &ports) {
  std::string text;
  for (const Port &port : ports)
    text += (text.empty() ? "" : ", ") + port.name;
  return text.empty() ? "none" : text;
}

} // namespace

Ports::Ports(const std::vector<std::string> &names)
    : socket_(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE)) {
  if (!socket_)
    throw native::system_failure("cannot open a netlink socket");
  const Request<ifinfomsg> request(RTM_GETLINK);
  dump(&request, sizeof request, [this](const nlmsghdr &message) {
    const auto &link = body_of<ifinfomsg>(message);
    Port port;
    port.ifindex = static_cast<std::uint32_t>(link.ifi_index);
    port.loopback = (link.ifi_flags & IFF_LOOPBACK) != 0;
    each_attribute_of<ifinfomsg>(message, [&port](int type, const void *data, std::size_t) {
      if (type == IFLA_IFNAME)
        port.name = static_cast<const char *>(data);
    });
    ports_.push_back(std::move(port));
  });
  if (names.empty())
    std::erase_if(ports_, [](const Port &port) { return port.loopback; });
  else
    choose(names);
}

void Ports::choose(const std::vector<std::string> &names) {
  std::vector<Port> chosen;
  for (const std::string &name : names) {
    const auto port = std::find_if(ports_.begin(), ports_.end(), [&](const Port &each) { return each.name == name; });
    if (port == ports_.end())
      throw native::Failure("--interfaces: there is no \"" + name + "\" here; there is: " + join(ports_));
    chosen.push_back(*port);
  }
  ports_ = std::move(chosen);
}

const std::vector<Port> &Ports::read() {
  links_seen_ = 0;
  // Only the 64-bit counters of each link: a tenth of what RTM_GETLINK would make the kernel write.
  Request<if_stats_msg> links(RTM_GETSTATS);
  links.body.filter_mask = IFLA_STATS_FILTER_BIT(IFLA_STATS_LINK_64);
  dump(&links, sizeof links, [this](const nlmsghdr &message) { take_link(message); });
  if (links_seen_ != ports_.size())
    throw native::Failure("an interface has gone: expected " + join(ports_));
  const Request<tcmsg> qdiscs(RTM_GETQDISC);
  dump(&qdiscs, sizeof qdiscs, [this](const nlmsghdr &message) { take_qdisc(message); });
  return ports_;
}

Port *Ports::find(std::uint32_t ifindex) {
  const auto port =
      std::find_if(ports_.begin(), ports_.end(), [&](const Port &each) { return each.ifindex == ifindex; });
  return port == ports_.end() ? nullptr : &*port;
}

void Ports::take_link(const nlmsghdr &message) {
  Port *port = find(body_of<if_stats_msg>(message).ifindex);
  if (port == nullptr)
    return;
  links_seen_++;
  each_attribute_of<if_stats_msg>(message, [port](int type, const void *data, std::size_t size) {
    if (type == IFLA_STATS_LINK_64)
      copy_to(port->link, data, size);
  });
}

void Ports::take_qdisc(const nlmsghdr &message) {
  const auto &qdisc = body_of<tcmsg>(message);
  Port *port = find(static_cast<std::uint32_t>(qdisc.tcm_ifindex));
  if (port == nullptr || qdisc.tcm_parent != TC_H_ROOT)
    return;
  const auto take = [port](int type, const void *data, std::size_t size) {
    gnet_stats_basic basic{};
    gnet_stats_queue queue{};
    if (type == TCA_STATS_BASIC) {
      copy_to(basic, data, size);
      port->qdisc_bytes = basic.bytes;
    } else if (type == TCA_STATS_QUEUE) {
      copy_to(queue, data, size);
      port->qdisc_backlog_bytes = queue.backlog;
      port->qdisc_drops = queue.drops;
    }
  };
  each_attribute_of<tcmsg>(message, [&take](int type, const void *data, std::size_t size) {
    if (type == TCA_STATS2)
      each_attribute(data, size, take);
  });
}

void Ports::dump(const void *request, std::size_t size, const Handler &handle) {
  if (send(socket_.get(), request, size, 0) < 0)
    throw native::system_failure("cannot ask for counters by netlink");
  while (true) {
    const ssize_t n = recv(socket_.get(), buffer_.data(), buffer_.size(), 0);
    if (n < 0 && errno != EINTR)
      throw native::system_failure("cannot read counters by netlink");
    if (n > 0 && handle_part(static_cast<std::size_t>(n), handle))
      return;
  }
}

// Whether this part was the dump's last.
bool Ports::handle_part(std::size_t size, const Handler &handle) {
  auto left = static_cast<unsigned>(size);
  for (const auto *message = reinterpret_cast<const nlmsghdr *>(buffer_.data()); NLMSG_OK(message, left);
       message = NLMSG_NEXT(message, left)) {
    if (message->nlmsg_type == NLMSG_DONE)
      return true;
    if (message->nlmsg_type == NLMSG_ERROR) {
      errno = -body_of<nlmsgerr>(*message).error;
      throw native::system_failure("the kernel refused to give counters by netlink");
    }
    handle(*message);
  }
  return false;
}

} // namespace sampler
