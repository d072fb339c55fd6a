// SPDX-License-Identifier: Apache-2.0
// A writer of whole lines that does not wait for a slow reader.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace native {

class Lines {
public:
  // Writes to `fd`, and buffers at most `limit_bytes` for a slow reader; further lines are dropped and counted.
  Lines(int fd, std::size_t limit_bytes) : fd_(fd), limit_bytes_(limit_bytes) {}

  // Appends a line to the pending output, or drops it if the buffer is full.
  void add(std::string_view line);

  // Writes as much as possible without waiting. Throws Stopped if the reader is gone.
  void flush();

  // Writes the rest, waiting for the reader for at most `timeout_ms`.
  void finish(int timeout_ms);

  std::uint64_t dropped() const { return dropped_; }
  std::size_t pending_bytes() const { return pending_.size(); }

private:
  void write_out(int timeout_ms);

  int fd_;
  std::size_t limit_bytes_;
  std::string pending_;
  std::uint64_t dropped_ = 0;
};

} // namespace native
