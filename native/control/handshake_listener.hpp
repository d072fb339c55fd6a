// SPDX-License-Identifier: Apache-2.0
// The way in for connections from whoever is on the network.
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

// A listening socket that is left alone for a moment once it cannot be accepted from: else a process without
// descriptors would ask again without a pause.
class Listener {
public:
  explicit Listener(Fd fd) : fd_(std::move(fd)) {}

  pollfd interest() const { return {monotonic_ns() < rests_until_ns_ ? -1 : fd_.get(), POLLIN, 0}; }
  std::optional<Nanos> rests_until() const;

  // An accepted connection that never blocks, or none.
  Fd accept();

private:
  Fd fd_;
  Nanos rests_until_ns_ = 0;
};

// Connections stay at the door, few and not for long, until they have said a hello of a fixed size. The one that has
// waited longest makes room for the newest: silent ones cannot keep others out.
class Door {
public:
  // What becomes of a connection that has said its hello.
  using Enter = std::function<void(Fd, const std::string &)>;

  Door(Fd listener, std::size_t hello_bytes, std::size_t most_guests)
      : listener_(std::move(listener)), hello_bytes_(hello_bytes), most_guests_(most_guests) {}

  void add_interests(std::vector<pollfd> &fds) const;

  // When to look again though no socket is ready.
  std::optional<Nanos> deadline() const;

  // Accepts who came, hears who speaks, and shows out who kept silent.
  void look(const Enter &enter);

  std::uint64_t shown_out() const { return shown_out_; }

private:
  struct Guest {
    Fd fd;
    Nanos deadline_ns;
    std::string hello = {};
  };

  void accept_some();
  bool stays(Guest &guest, Nanos now_ns, const Enter &enter);

  Listener listener_;
  std::size_t hello_bytes_;
  std::size_t most_guests_;
  std::deque<Guest> guests_;
  std::uint64_t shown_out_ = 0;
};

} // namespace native
