// SPDX-License-Identifier: Apache-2.0
#include "native/line_writer.hpp"

#include "native/errors.hpp"

#include <algorithm>
#include <climits>
#include <poll.h>
#include <unistd.h>

namespace native {

void Lines::add(std::string_view line) {
  if (pending_.size() + line.size() + 1 > limit_bytes_) {
    dropped_++;
    return;
  }
  pending_.append(line).push_back('\n');
}

void Lines::flush() { write_out(0); }

void Lines::finish(int timeout_ms) { write_out(timeout_ms); }

void Lines::write_out(int timeout_ms) {
  std::size_t written = 0;
  while (written < pending_.size()) {
    // A pipe that polls writable takes PIPE_BUF bytes without blocking.
    pollfd out{fd_, POLLOUT, 0};
    if (poll(&out, 1, timeout_ms) != 1)
      break;
    const ssize_t n = write(fd_, pending_.data() + written, std::min<std::size_t>(pending_.size() - written, PIPE_BUF));
    if (n < 0)
      throw Stopped("standard output closed");
    written += static_cast<std::size_t>(n);
  }
  pending_.erase(0, written);
}

} // namespace native
