// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "native/errors.hpp"
#include "native/fd.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <sys/epoll.h>
#include <sys/eventfd.h>

namespace crossgen {

// A descriptor that becomes readable when ring() is called, to wake a thread that polls it.
class Bell {
public:
  Bell() : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (!fd_)
      throw native::system_failure("cannot make an eventfd");
  }

  int fd() const { return fd_.get(); }
  void ring() const { eventfd_write(fd_.get(), 1); }
  void silence() const {
    eventfd_t rung;
    eventfd_read(fd_.get(), &rung);
  }

private:
  native::Fd fd_;
};

// An epoll instance that identifies each watched descriptor by an address.
class Poller {
public:
  Poller() : fd_(epoll_create1(EPOLL_CLOEXEC)) {
    if (!fd_)
      throw native::system_failure("cannot make an epoll instance");
  }

  void add(int fd, std::uint32_t events, void *what) const { control(EPOLL_CTL_ADD, fd, events, what); }
  void change(int fd, std::uint32_t events, void *what) const { control(EPOLL_CTL_MOD, fd, events, what); }
  void remove(int fd) const { control(EPOLL_CTL_DEL, fd, 0, nullptr); }

  std::span<const epoll_event> wait(int timeout_ms) {
    const int ready = epoll_wait(fd_.get(), events_.data(), static_cast<int>(events_.size()), timeout_ms);
    if (ready < 0 && errno != EINTR)
      throw native::system_failure("cannot wait for sockets");
    return {events_.data(), static_cast<std::size_t>(ready < 0 ? 0 : ready)};
  }

private:
  void control(int operation, int fd, std::uint32_t events, void *what) const {
    epoll_event event{};
    event.events = events;
    event.data.ptr = what;
    if (epoll_ctl(fd_.get(), operation, fd, &event) != 0)
      throw native::system_failure("cannot watch a socket");
  }

  native::Fd fd_;
  std::array<epoll_event, 64> events_{};
};

} // namespace crossgen
