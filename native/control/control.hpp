// SPDX-License-Identifier: Apache-2.0
// The starting program controls this one by standard input and signals; every wait watches both.
#pragma once

#include "native/clock.hpp"
#include "native/fd.hpp"

#include <optional>
#include <poll.h>
#include <string>
#include <vector>

namespace native {

class Control {
public:
  // Blocks SIGTERM, SIGINT and SIGHUP (they arrive as Stopped) and ignores SIGPIPE.
  Control();

  // Polls `fds` until one is ready, or until the monotonic `deadline_ns`, with an accuracy of some microseconds. Throws
  // Stopped on a signal or when standard input closes.
  void wait(std::vector<pollfd> &fds, std::optional<Nanos> deadline_ns);

  // Returns the next complete line of standard input, if one has arrived.
  std::optional<std::string> line();

  // Waits for the next line of standard input, and returns it. Throws Stopped as wait() does.
  std::string await_line();

private:
  void read_input();

  Fd signals_;
  std::string input_;
};

// Returns the instant in the line `start MONOTONIC_NS`. Throws Failure for any other line, and if the instant has
// passed or is more than a day ahead.
Nanos parse_start(const std::string &line);

} // namespace native
