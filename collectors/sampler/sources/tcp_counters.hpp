// SPDX-License-Identifier: Apache-2.0
// Counters of a network namespace's TCP, from /proc/net.
#pragma once

#include <cstdint>
#include <string>

namespace sampler {

// Returns a counter in the text of /proc/net/snmp or /proc/net/netstat, such as `OutSegs` of `Tcp`. Throws
// native::Failure if it is missing.
std::uint64_t parse_counter(const std::string &text, const std::string &group, const std::string &name);

} // namespace sampler
