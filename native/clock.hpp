// SPDX-License-Identifier: Apache-2.0
// The two clocks of every record: the monotonic clock measures, and UTC relates records of different hosts.
#pragma once

#include <cerrno>
#include <cstdint>
#include <ctime>

namespace native {

using Nanos = std::int64_t;

inline Nanos read_clock(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return Nanos{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

// Sleeps until the monotonic clock shows `deadline_ns`; signals do not end the sleep.
inline void sleep_until(Nanos deadline_ns) {
  const timespec deadline{deadline_ns / 1'000'000'000, deadline_ns % 1'000'000'000};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &deadline, nullptr) == EINTR) {
  }
}

inline Nanos monotonic_ns() { return read_clock(CLOCK_MONOTONIC); }
inline Nanos utc_ns() { return read_clock(CLOCK_REALTIME); }

} // namespace native
