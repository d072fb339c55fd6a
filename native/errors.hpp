// SPDX-License-Identifier: Apache-2.0
// How a program for hosts ends before its time. main() catches both; nothing escapes it.
#pragma once

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>

namespace native {

// Something went wrong that a person must know: one line, found and expected.
struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// We were asked to end: a signal, or the pipe to whoever started us closed.
struct Stopped : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The failure of a system call, from errno.
inline Failure system_failure(const std::string &what) { return Failure(what + ": " + std::strerror(errno)); }

} // namespace native
