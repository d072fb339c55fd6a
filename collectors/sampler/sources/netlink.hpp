// SPDX-License-Identifier: Apache-2.0
// Requests to the kernel's rtnetlink, whose answers are read without memory allocation.
#pragma once

#include "native/errors.hpp"
#include "native/fd.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

namespace sampler {

// A request with its fixed header.
template <typename Body> struct NetlinkRequest {
  nlmsghdr header{};
  Body body{};

  NetlinkRequest(std::uint16_t type, std::uint16_t flags = 0) {
    header.nlmsg_len = sizeof *this;
    header.nlmsg_type = type;
    header.nlmsg_flags = static_cast<std::uint16_t>(NLM_F_REQUEST | flags);
  }
};

template <typename Body> const Body &body_of(const nlmsghdr &message) {
  return *static_cast<const Body *>(NLMSG_DATA(&message));
}

// Calls take(type, data, size) for every attribute in a buffer.
template <typename Take> void each_attribute(const void *first, std::size_t size, const Take &take) {
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

template <typename Body, typename Take> void each_attribute_of(const nlmsghdr &message, const Take &take) {
  if (message.nlmsg_len < NLMSG_LENGTH(sizeof(Body)))
    return;
  const auto *first = reinterpret_cast<const char *>(&message) + NLMSG_SPACE(sizeof(Body));
  each_attribute(first, message.nlmsg_len - NLMSG_LENGTH(sizeof(Body)), take);
}

// Copies as many bytes as both have, because attributes of older kernels are shorter, and of newer ones longer.
template <typename Value> void copy_to(Value &value, const void *data, std::size_t size) {
  std::memcpy(&value, data, std::min(size, sizeof value));
}

class Netlink {
public:
  // Opens a socket that receives the notifications of `groups` (RTMGRP_*).
  explicit Netlink(std::uint32_t groups = 0) : socket_(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE)) {
    sockaddr_nl address{};
    address.nl_family = AF_NETLINK;
    address.nl_groups = groups;
    if (!socket_ || bind(socket_.get(), reinterpret_cast<sockaddr *>(&address), sizeof address) != 0)
      throw native::system_failure("cannot open a netlink socket");
  }

  int fd() const { return socket_.get(); }

  // Sends a request, and calls `handle` with every message of the answer. Returns 0, or the kernel's errno.
  template <typename Body, typename Handle> int query(const NetlinkRequest<Body> &request, const Handle &handle) {
    if (send(socket_.get(), &request, sizeof request, 0) < 0)
      throw native::system_failure("cannot request counters by netlink");
    while (true) {
      const ssize_t n = recv(socket_.get(), buffer_.data(), buffer_.size(), 0);
      if (n < 0 && errno != EINTR)
        throw native::system_failure("cannot read counters by netlink");
      int refused = 0;
      if (n > 0 && take_part(static_cast<std::size_t>(n), handle, refused))
        return refused;
    }
  }

  // Discards all pending notifications, because one notification is enough to detect a change.
  void drain() {
    while (recv(socket_.get(), buffer_.data(), buffer_.size(), MSG_DONTWAIT) > 0 || errno == ENOBUFS)
      errno = 0;
  }

private:
  // Returns true if this part was the last of the answer.
  template <typename Handle> bool take_part(std::size_t size, const Handle &handle, int &refused) {
    auto left = static_cast<unsigned>(size);
    for (const auto *message = reinterpret_cast<const nlmsghdr *>(buffer_.data()); NLMSG_OK(message, left);
         message = NLMSG_NEXT(message, left)) {
      if (message->nlmsg_type == NLMSG_DONE)
        return true;
      if (message->nlmsg_type == NLMSG_ERROR) {
        refused = -body_of<nlmsgerr>(*message).error;
        return true;
      }
      handle(*message);
      if ((message->nlmsg_flags & NLM_F_MULTI) == 0)
        return true;
    }
    return false;
  }

  native::Fd socket_;
  alignas(nlmsghdr) std::array<char, 65'536> buffer_{};
};

} // namespace sampler
