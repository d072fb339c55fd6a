// SPDX-License-Identifier: Apache-2.0
#include "native/control/control.hpp"

#include "native/errors.hpp"

#include <algorithm>
#include <charconv>
#include <csignal>
#include <string_view>
#include <sys/prctl.h>
#include <sys/signalfd.h>

namespace native {
namespace {

// The kernel may end a poll late by 0.1 % of its timeout: a long sleep stops 1 % early and is then completed.
constexpr Nanos kShortSleepNs = 20'000'000;

constexpr std::size_t kMaxInputBytes = 4096;

timespec careful_timeout(Nanos left_ns) {
  left_ns = std::max<Nanos>(left_ns, 0);
  if (left_ns > kShortSleepNs)
    left_ns -= left_ns / 100;
  return {left_ns / 1'000'000'000, left_ns % 1'000'000'000};
}

} // namespace

Control::Control() {
  std::signal(SIGPIPE, SIG_IGN);
  sigset_t set;
  sigemptyset(&set);
  for (int signal : {SIGTERM, SIGINT, SIGHUP})
    sigaddset(&set, signal);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  signals_ = Fd(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals_)
    throw system_failure("cannot watch for signals");
  prctl(PR_SET_TIMERSLACK, 1);
}

void Control::wait(std::vector<pollfd> &fds, std::optional<Nanos> deadline_ns) {
  const std::size_t own = fds.size();
  fds.push_back({STDIN_FILENO, POLLIN, 0});
  fds.push_back({signals_.get(), POLLIN, 0});
  int ready = 0;
  do {
    timespec timeout{};
    if (deadline_ns)
      timeout = careful_timeout(*deadline_ns - monotonic_ns());
    ready = ppoll(fds.data(), fds.size(), deadline_ns ? &timeout : nullptr, nullptr);
  } while (ready == 0 && monotonic_ns() < *deadline_ns);
  if (ready < 0 && errno != EINTR)
    throw system_failure("cannot wait for sockets");

  const bool input = fds[own].revents != 0;
  const bool signalled = fds[own + 1].revents != 0;
  fds.resize(own);
  if (signalled) {
    signalfd_siginfo info{};
    if (read(signals_.get(), &info, sizeof info) == sizeof info)
      throw Stopped("SIG" + std::string(sigabbrev_np(static_cast<int>(info.ssi_signo))));
  }
  if (input)
    read_input();
}

void Control::read_input() {
  char chunk[kMaxInputBytes];
  const ssize_t n = read(STDIN_FILENO, chunk, sizeof chunk);
  if (n <= 0)
    throw Stopped("standard input closed");
  input_.append(chunk, static_cast<std::size_t>(n));
  if (input_.size() > kMaxInputBytes)
    throw Failure("expected a line of at most 4096 bytes on standard input, found more");
}

std::optional<std::string> Control::line() {
  const auto end = input_.find('\n');
  if (end == std::string::npos)
    return std::nullopt;
  std::string line = input_.substr(0, end);
  input_.erase(0, end + 1);
  return line;
}

std::string Control::await_line() {
  std::vector<pollfd> nothing_else;
  std::optional<std::string> found;
  while (!(found = line()))
    wait(nothing_else, std::nullopt);
  return *found;
}

Nanos parse_start(const std::string &line) {
  constexpr std::string_view kStart = "start ";
  constexpr Nanos kFurthestNs = 86'400'000'000'000;
  Nanos start_ns = 0;
  const char *end = line.data() + line.size();
  const bool is_start = line.starts_with(kStart);
  const auto parsed = std::from_chars(line.data() + (is_start ? kStart.size() : 0), end, start_ns);
  if (!is_start || parsed.ptr != end || parsed.ec != std::errc{} || start_ns < 0)
    throw Failure("expected `start MONOTONIC_NS` on standard input, found `" + line + "`");
  const Nanos ahead_ns = start_ns - monotonic_ns();
  if (ahead_ns < 0)
    throw Failure("the agreed start was " + std::to_string(-ahead_ns / 1000) +
                  " us ago when it was read; agree on a later one");
  if (ahead_ns > kFurthestNs)
    throw Failure("expected a start within a day, found one in " + std::to_string(ahead_ns / 1'000'000'000) + " s");
  return start_ns;
}

} // namespace native
