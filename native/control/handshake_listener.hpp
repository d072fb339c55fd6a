// SPDX-License-Identifier: Apache-2.0
// Accepts connections from the network, and passes on those that send a complete hello.
#pragma once

#include "native/clock.hpp"
#include "native/fd.hpp"

#include <cstddef>
#include <deque>
#include <functional>
#include <optional>
#include <poll.h>
#include <span>
#include <string>
#include <vector>

namespace native {

// A listening socket that pauses for a moment after accept() fails. Otherwise a process without free descriptors would
// poll it in a busy loop.
class Listener {
public:
  explicit Listener(Fd fd) : fd_(std::move(fd)) {}

  pollfd interest() const { return {monotonic_ns() < rests_until_ns_ ? -1 : fd_.get(), POLLIN, 0}; }
  std::optional<Nanos> rests_until() const;

  // Accepts a connection, and returns its non-blocking socket; an empty Fd if there is none.
  Fd accept();

private:
  Fd fd_;
  Nanos rests_until_ns_ = 0;
};

// Holds a limited number of new connections for a limited time, until they have sent a hello of fixed size. The kernel
// holds connections that have sent nothing. A new connection without a complete hello replaces the oldest one if there
// are too many, so slow connections cannot keep others out. A connection that sends its hello at once is never
// replaced.
class Door {
public:
  // Receives a connection and its hello.
  using Enter = std::function<void(Fd, const std::string &)>;

  // Sets TCP_DEFER_ACCEPT on the listening socket.
  Door(Fd listener, std::size_t hello_bytes, std::size_t most_guests);

  void add_interests(std::vector<pollfd> &fds) const;

  // Returns when to call look() even if no socket is ready.
  std::optional<Nanos> deadline() const;

  // Accepts new connections, reads hellos and passes them to `enter`, and closes connections whose hello takes too
  // long. If `enter` throws, its connection is closed and all others stay.
  void look(const Enter &enter);

  std::uint64_t shown_out() const { return shown_out_; }

private:
  struct Guest {
    Fd fd;
    Nanos deadline_ns;
    std::string hello = {};
  };

  void read_hellos(const Enter &enter);
  void accept_some(const Enter &enter);
  bool stays(Guest &guest) const;
  void dismiss(Guest guest, const Enter &enter);

  Listener listener_;
  std::size_t hello_bytes_;
  std::size_t most_guests_;
  std::deque<Guest> guests_;
  std::uint64_t shown_out_ = 0;
};

} // namespace native
