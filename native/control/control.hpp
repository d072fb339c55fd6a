// SPDX-License-Identifier: Apache-2.0
// Who started us speaks through standard input and signals; every wait listens to both.
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

  // Polls `fds` until one is ready or the monotonic `deadline_ns` has come, which it meets to some
  // microseconds.
  // Throws Stopped on a signal or when standard input closes.
  void wait(std::vector<pollfd> &fds, std::optional<Nanos> deadline_ns);

  // The next whole line that came on standard input.
  std::optional<std::string> line();

  // The next line, which is waited for. Throws Stopped.
  std::string await_line();

private:
  void read_input();

  Fd signals_;
  std::string input_;
};

// The instant in the line `start MONOTONIC_NS`. Throws Failure for any other line, and where that instant has passed or
// is more than a day ahead.
Nanos parse_start(const std::string &line);

} // namespace native
