// SPDX-License-Identifier: Apache-2.0
#include "collectors/sampler/record.hpp"

#include <arpa/inet.h>
#include <charconv>
#include <limits>
#include <unistd.h>

namespace sampler {
namespace {

constexpr std::size_t kMaxPendingBytes = 8 << 20;
constexpr std::size_t kBatchBytes = 16 << 10;
constexpr native::Nanos kBatchNs = 500'000'000;
constexpr int kReaderTimeoutMs = 2'000;
constexpr std::uint64_t kMaxPrinted = std::numeric_limits<std::int64_t>::max(); // readers have signed numbers

std::string set_name(std::size_t number) { return "set" + std::to_string(number); }

} // namespace

Record::Record(const Kinds &kinds) : kinds_(kinds), lines_(STDOUT_FILENO, kMaxPendingBytes) {
  std::string port = "#port,before_ns,after_ns,interface,ifindex,up,tx_bytes,tx_packets,rx_bytes,rx_packets,tx_dropped,"
                     "rx_dropped";
  if (kinds.queues)
    port += ",qdisc_backlog_bytes,qdisc_drops,qdisc_bytes";
  if (kinds.marks)
    port += ",marks,ecn_packets";
  lines_.add(port);
  lines_.add("#tcp,before_ns,after_ns,in_segs,out_segs,retrans_segs,loss_probes,timeouts,ce_received");
  lines_.add("#counter,set,field,device,source,counter,unit,width_bits");
  lines_.add("#sampler,before_ns,after_ns,samples,missed,dropped_lines");
  if (kinds.marks)
    lines_.add("#marks,before_ns,after_ns,ifindex,source,marks");
  if (kinds.cpu)
    lines_.add("#cpu,before_ns,after_ns,busy_ticks,idle_ticks,steal_ticks,softirq_ticks,softnet_processed,"
               "softnet_dropped,softnet_squeezed");
}

void Record::begin(std::string_view kind, const Span &span) {
  line_.assign(kind);
  add(static_cast<std::uint64_t>(span.before_ns));
  add(static_cast<std::uint64_t>(span.after_ns));
}

void Record::add(std::uint64_t value) {
  char digits[20];
  const char *const last = std::to_chars(digits, digits + sizeof digits, value).ptr;
  add(std::string_view(digits, static_cast<std::size_t>(last - digits)));
}

void Record::add(std::string_view text) {
  line_.push_back(',');
  line_.append(text);
}

void Record::add_unknown(int fields) { line_.append(static_cast<std::size_t>(fields), ','); }

void Record::end() { lines_.add(line_); }

void Record::port(const Span &span, const Port &port, const std::optional<EcnCounts> &ecn) {
  begin("port", span);
  add(port.name);
  add(port.ifindex);
  add(port.up ? 1 : 0);
  if (port.present)
    for (const std::uint64_t value : {port.link.tx_bytes, port.link.tx_packets, port.link.rx_bytes,
                                      port.link.rx_packets, port.link.tx_dropped, port.link.rx_dropped})
      add(value);
  else
    add_unknown(6);
  if (kinds_.queues && port.present)
    for (const std::uint64_t value : {port.qdisc_backlog_bytes, port.qdisc_drops, port.qdisc_bytes})
      add(value);
  else if (kinds_.queues)
    add_unknown(3);
  if (kinds_.marks && ecn) {
    add(ecn->marks);
    add(ecn->ect_packets);
  } else if (kinds_.marks) {
    add_unknown(2);
  }
  end();
}

void Record::marks(const Span &span, const SourceMarks &marks) {
  char address[INET_ADDRSTRLEN] = "";
  inet_ntop(AF_INET, &marks.source.address, address, sizeof address);
  begin("marks", span);
  add(marks.source.ifindex);
  add(std::string_view(address));
  add(marks.marks);
  end();
}

void Record::describe(std::size_t number, const Group &group) {
  const std::string set = set_name(number);
  std::string header = "#" + set + ",before_ns,after_ns";
  for (std::size_t i = 0; i < group.counters.size(); i++) {
    const Counter &counter = group.counters[i];
    line_.assign("counter");
    add(std::string_view(set));
    add(i);
    for (const std::string_view text : {group.device, group.source, counter.name, counter.meaning.unit})
      add(text);
    add(static_cast<std::uint64_t>(counter.meaning.width_bits));
    end();
    header += "," + std::to_string(i);
  }
  lines_.add(header);
}

void Record::values(std::size_t number, const Span &span, const Group &group) {
  begin(set_name(number), span);
  for (const std::optional<std::uint64_t> &value : group.values)
    if (value && *value <= kMaxPrinted)
      add(*value);
    else
      add_unknown();
  end();
}

void Record::cpu(const Span &span, const CpuTicks &ticks, const Softnet &softnet) {
  begin("cpu", span);
  for (const std::uint64_t value :
       {ticks.busy, ticks.idle, ticks.steal, ticks.softirq, softnet.processed, softnet.dropped, softnet.squeezed})
    add(value);
  end();
}

void Record::tcp(const Span &span, const TcpCounts &counts) {
  begin("tcp", span);
  for (const std::uint64_t value :
       {counts.in_segs, counts.out_segs, counts.retrans_segs, counts.loss_probes, counts.timeouts, counts.ce_received})
    add(value);
  end();
}

void Record::sampler(const Span &span, std::uint64_t samples, std::uint64_t missed) {
  begin("sampler", span);
  for (const std::uint64_t value : {samples, missed, lines_.dropped()})
    add(value);
  end();
}

void Record::flush(native::Nanos now_ns) {
  if (lines_.pending_bytes() < kBatchBytes && now_ns - flushed_ns_ < kBatchNs)
    return;
  flushed_ns_ = now_ns;
  lines_.flush();
}

void Record::finish() { lines_.finish(kReaderTimeoutMs); }

} // namespace sampler
