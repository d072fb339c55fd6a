// SPDX-License-Identifier: Apache-2.0
#include "collectors/sampler/record.hpp"

#include <initializer_list>
#include <string>
#include <unistd.h>

namespace sampler {
namespace {

constexpr std::size_t kMostPendingBytes = 8 << 20;
constexpr std::size_t kBatchBytes = 16 << 10;
constexpr native::Nanos kBatchNs = 500'000'000;
constexpr int kReaderPatienceMs = 2'000;

// What cannot be known.
constexpr std::int64_t kUnknown = -1;

void append(std::string &line, std::initializer_list<std::uint64_t> values) {
  for (const std::uint64_t value : values)
    line.append(",").append(std::to_string(value));
}

std::string begin(const char *kind, const Span &span) {
  return std::string(kind) + ',' + std::to_string(span.before_ns) + ',' + std::to_string(span.after_ns);
}

} // namespace

Record::Record(bool cpu) : lines_(STDOUT_FILENO, kMostPendingBytes) {
  lines_.add("#port,before_ns,after_ns,interface,ifindex,tx_bytes,tx_packets,rx_bytes,rx_packets,tx_dropped,rx_dropped,"
             "qdisc_backlog_bytes,qdisc_drops,qdisc_bytes,marks,ecn_packets");
  lines_.add("#tcp,before_ns,after_ns,in_segs,out_segs,retrans_segs,loss_probes,timeouts,ce_received");
  lines_.add("#sampler,before_ns,after_ns,samples,missed,dropped_lines");
  if (cpu)
    lines_.add("#cpu,before_ns,after_ns,busy_ticks,idle_ticks,steal_ticks,softnet_processed,softnet_dropped,"
               "softnet_squeezed");
}

void Record::port(const Span &span, const Port &port, const std::optional<EcnCounts> &ecn) {
  std::string line = begin("port", span) + ',' + port.name;
  append(line,
         {port.ifindex, port.link.tx_bytes, port.link.tx_packets, port.link.rx_bytes, port.link.rx_packets,
          port.link.tx_dropped, port.link.rx_dropped, port.qdisc_backlog_bytes, port.qdisc_drops, port.qdisc_bytes});
  if (ecn)
    append(line, {ecn->marks, ecn->ect_packets});
  else
    line.append("," + std::to_string(kUnknown) + "," + std::to_string(kUnknown));
  lines_.add(line);
}

void Record::cpu(const Span &span, const CpuTicks &ticks, const Softnet &softnet) {
  std::string line = begin("cpu", span);
  append(line, {ticks.busy, ticks.idle, ticks.steal, softnet.processed, softnet.dropped, softnet.squeezed});
  lines_.add(line);
}

void Record::tcp(const Span &span, const TcpCounts &counts) {
  std::string line = begin("tcp", span);
  append(line, {counts.in_segs, counts.out_segs, counts.retrans_segs, counts.loss_probes, counts.timeouts,
                counts.ce_received});
  lines_.add(line);
}

void Record::sampler(const Span &span, std::uint64_t samples, std::uint64_t missed) {
  std::string line = begin("sampler", span);
  append(line, {samples, missed, lines_.dropped()});
  lines_.add(line);
}

void Record::flush(native::Nanos now_ns) {
  if (lines_.pending_bytes() < kBatchBytes && now_ns - flushed_ns_ < kBatchNs)
    return;
  flushed_ns_ = now_ns;
  lines_.flush();
}

void Record::finish() { lines_.finish(kReaderPatienceMs); }

} // namespace sampler
