// SPDX-License-Identifier: Apache-2.0
// The exceptions that end a host program early. main() catches both.
#pragma once

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>

namespace native {

// An error for the user, described in one line with what was found and what was expected.
struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A request to end: a signal came, or standard input closed.
struct Stopped : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Returns the Failure of a system call, with errno's text after `what`.
inline Failure system_failure(const std::string &what) { return Failure(what + ": " + std::strerror(errno)); }

} // namespace native
