// SPDX-License-Identifier: Apache-2.0
// The job as described to its workers (trainers/PROTOCOL.md), after checks.
#pragma once

#include "native/clock.hpp"

#include <cstdint>
#include <netinet/in.h>
#include <optional>
#include <string>
#include <vector>

namespace replay {

constexpr std::size_t kLongestJobName = 63;
constexpr unsigned kMaxChannels = 2; // NCCL's trees are two

struct Peer {
  std::string name;
  std::string address;
  std::uint16_t port = 0;
  std::uint16_t source_port = 0; // of its first connection to any peer; 0: the kernel chooses all
  in_addr ip{};
  std::vector<in_addr> nics; // addresses of the host's NICs; empty: it has one
  unsigned nic = 0;          // the place of the worker's own among them
  bool shares_host = false;  // with other workers of the job

  // Returns the peer as text such as "s2 (10.77.0.3)", with the port if several workers share the address.
  std::string text() const;

  // Returns the address of a NIC of the worker's host, counted anew behind the last.
  in_addr nic_address(unsigned number) const { return nics.empty() ? ip : nics[number % nics.size()]; }
};

// Payload from one worker to another in one phase, over connections of its channel.
struct Transfer {
  unsigned from = 0;
  unsigned to = 0;
  std::uint64_t bytes = 0;
  // How many bytes `from` may have sent beyond those that each feeder has sent it in the phase and channel.
  std::optional<std::uint64_t> lead_bytes;
  unsigned channel = 0;
  std::vector<unsigned> feeders = {};

  // Returns the number of one of its `connections` among those of all channels between its workers.
  unsigned number(unsigned connection, unsigned connections) const { return channel * connections + connection; }

  // Returns true if the receiver answers once it has everything. In a ring the data that come back serve as the answer.
  bool answered() const { return lead_bytes.value_or(0) == 0; }
};

// One phase of an iteration: computing for compute_ns, or (alone_ns > 0) transfers, which take alone_ns when nothing
// else is on the links.
struct Phase {
  std::string name;
  native::Nanos compute_ns = 0;
  native::Nanos alone_ns = 0;
  std::vector<Transfer> transfers;

  bool communicates() const { return alone_ns > 0; }
};

// When iterations may begin: shift_ns after the agreed start, and every period_ns from then on. An iteration that could
// begin more than threshold_ns before such an instant, and more than late_ns (a fifth of a period) after the last one,
// waits for the next. A job that is late by less catches up, because periods are longer than iterations.
// roundabout/spec/cassini.py has the same rule.
struct Timetable {
  native::Nanos shift_ns = 0;
  native::Nanos period_ns = 1;
  native::Nanos threshold_ns = 0;
  native::Nanos late_ns = 0;

  // Returns the delay of an iteration that is ready `since_start_ns` after the agreed start; 0 if it may begin at once.
  native::Nanos delay_ns(native::Nanos since_start_ns) const;
};

struct Job {
  std::string name;
  std::vector<Peer> workers; // by rank
  unsigned connections = 1;  // of each transfer
  unsigned iterations = 0;
  std::uint64_t seed = 0;
  double jitter = 0;
  native::Nanos begins_ns = 0; // after the agreed start
  std::optional<native::Nanos> departs_ns;
  bool pxn = false;  // whether data leave by the NIC of the number of that to which they come
  unsigned dscp = 0; // of all that it sends
  std::optional<Timetable> timetable;
  std::vector<Phase> phases;
  std::uint64_t fingerprint = 0; // hash of the description
};

// Parses and checks a job's description. Throws native::Failure with the name of the wrong field.
Job parse_job(const std::string &json);

} // namespace replay
