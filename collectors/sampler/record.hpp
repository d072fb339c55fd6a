// SPDX-License-Identifier: Apache-2.0
// The output of sampler: CSV lines that begin with their kind. README.md describes the fields.
#pragma once

#include "collectors/sampler/group.hpp"
#include "collectors/sampler/sources/cpu_time.hpp"
#include "collectors/sampler/sources/ecn_map.hpp"
#include "collectors/sampler/sources/ports.hpp"
#include "native/clock.hpp"
#include "native/line_writer.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sampler {

// The clock before and after counters were read, which happened at some instant between.
struct Span {
  native::Nanos before_ns = 0;
  native::Nanos after_ns = 0;
};

struct TcpCounts {
  std::uint64_t in_segs = 0;
  std::uint64_t out_segs = 0;
  std::uint64_t retrans_segs = 0;
  std::uint64_t loss_probes = 0;
  std::uint64_t timeouts = 0;
  std::uint64_t ce_received = 0;
};

// The optional kinds of lines that are printed.
struct Kinds {
  bool queues = false;
  bool marks = false;
  bool cpu = false;
};

class Record {
public:
  // Writes the header lines of the kinds.
  explicit Record(const Kinds &kinds);

  void port(const Span &span, const Port &port, const std::optional<EcnCounts> &ecn);
  void marks(const Span &span, const SourceMarks &marks);
  // Writes the names and meanings of a group's counters; called once, before the group's first values.
  void describe(std::size_t number, const Group &group);
  void values(std::size_t number, const Span &span, const Group &group);
  void cpu(const Span &span, const CpuTicks &ticks, const Softnet &softnet);
  void tcp(const Span &span, const TcpCounts &counts);
  void sampler(const Span &span, std::uint64_t samples, std::uint64_t missed);

  // Writes pending lines to the reader if there are many, and at least once a second.
  void flush(native::Nanos now_ns);
  void finish();

private:
  void begin(std::string_view kind, const Span &span);
  void add(std::uint64_t value);
  void add(std::string_view text);
  void add_unknown(int fields = 1);
  void end();

  Kinds kinds_;
  native::Lines lines_;
  std::string line_;
  native::Nanos flushed_ns_ = 0;
};

} // namespace sampler
