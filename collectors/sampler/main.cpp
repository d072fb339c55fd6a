// SPDX-License-Identifier: Apache-2.0
// sampler: counters of ports, devices, TCP and CPU at fixed times.
#include "collectors/sampler/options.hpp"
#include "collectors/sampler/record.hpp"
#include "collectors/sampler/schedule.hpp"
#include "collectors/sampler/sources/ethtool.hpp"
#include "collectors/sampler/sources/proc_file.hpp"
#include "collectors/sampler/sources/rdma.hpp"
#include "collectors/sampler/sources/tcp_counters.hpp"
#include "collectors/sampler/sources/transports.hpp"
#include "native/control/control.hpp"
#include "native/errors.hpp"

#include <algorithm>
#include <fcntl.h>
#include <iostream>
#include <sched.h>

namespace {

using sampler::Span;
using Groups = std::vector<std::unique_ptr<sampler::Group>>;

// Polling stdin costs as much as a sample, so commands are read only at this interval.
constexpr native::Nanos kCommandIntervalNs = 50'000'000;

void enter_network_namespace(pid_t pid) {
  const std::string path = "/proc/" + std::to_string(pid) + "/ns/net";
  const native::Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd || setns(fd.get(), CLONE_NEWNET) != 0)
    throw native::system_failure("cannot enter the network namespace of process " + std::to_string(pid));
}

// Runs `read` between two looks at the clock.
template <typename Read> Span timed(const Read &read) {
  Span span;
  span.before_ns = native::monotonic_ns();
  read();
  span.after_ns = native::monotonic_ns();
  return span;
}

sampler::Ports find_ports(const sampler::Options &options) {
  return options.sys_root.empty() ? sampler::Ports(options.interfaces, options.queues) : sampler::Ports();
}

Groups find_groups(const sampler::Options &options, const sampler::Ports &ports) {
  Groups groups;
  if (!options.rdma_devices.empty())
    groups = sampler::find_rdma(options.sys_root + "/sys", options.rdma_devices);
  if (!options.transports.empty())
    for (auto &transport : sampler::find_transports(options.transports))
      groups.push_back(std::move(transport));
  for (const sampler::Port &port : ports.all())
    if (auto statistics = sampler::find_ethtool(port.name, options.ethtool_patterns))
      groups.push_back(std::move(statistics));
  return groups;
}

class Sampler {
public:
  Sampler(const sampler::Options &options, sampler::Record &record)
      : record_(record), ports_(find_ports(options)), groups_(find_groups(options, ports_)), spans_(groups_.size()),
        snmp_(options.sys_root + "/proc/net/snmp"), netstat_(options.sys_root + "/proc/net/netstat"),
        stat_(options.sys_root + "/proc/stat"), softnet_(options.sys_root + "/proc/net/softnet_stat"),
        cpu_(options.cpu), sample_schedule_(native::monotonic_ns(), options.port_period_ns),
        machine_schedule_(sample_schedule_.deadline_ns(), options.machine_period_ns) {
    if (!options.ecn_maps.empty())
      ecn_maps_.emplace(options.ecn_maps);
    for (std::size_t i = 0; i < groups_.size(); i++)
      record_.describe(i, *groups_[i]);
  }

  // Samples until a request to end arrives, which is thrown as native::Stopped.
  void run(native::Control &control) {
    while (true) {
      wait(control, std::min(sample_schedule_.deadline_ns(), machine_schedule_.deadline_ns()));
      const native::Nanos now_ns = native::monotonic_ns();
      if (sample_schedule_.due(now_ns))
        sample();
      if (machine_schedule_.due(now_ns))
        sample_machine();
      record_.flush(now_ns);
    }
  }

  // Takes a last sample, so that the record includes the final values of all counters.
  void finish() {
    sample();
    sample_machine();
    record_.finish();
  }

private:
  void wait(native::Control &control, native::Nanos deadline_ns) {
    if (deadline_ns - polled_ns_ < kCommandIntervalNs)
      return native::sleep_until(deadline_ns);
    control.wait(fds_, deadline_ns);
    polled_ns_ = deadline_ns;
    if (fds_[0].revents != 0)
      ports_.look_again();
  }

  // Reads everything in one burst before writing, so that the values are close in time.
  void sample() {
    const Span span = read_ports();
    for (std::size_t i = 0; i < groups_.size(); i++)
      spans_[i] = timed([&] { groups_[i]->read(); });
    record_ports(span);
    for (std::size_t i = 0; i < groups_.size(); i++)
      record_.values(i, spans_[i], *groups_[i]);
    samples_++;
  }

  Span read_ports() {
    ecn_.clear();
    return timed([&] {
      // Counters by source are read first, so that a port's marks are never fewer than those of its sources.
      if (ecn_maps_)
        ecn_maps_->read_sources();
      for (const sampler::Port &port : ports_.read())
        ecn_.push_back(ecn_maps_ ? ecn_maps_->port(port.ifindex) : std::nullopt);
    });
  }

  void record_ports(const Span &span) {
    for (std::size_t i = 0; i < ecn_.size(); i++)
      record_.port(span, ports_.all()[i], ecn_[i]);
    if (!ecn_maps_)
      return;
    for (const sampler::SourceMarks &marks : ecn_maps_->sources())
      if (ports_.has(marks.source.ifindex))
        record_.marks(span, marks);
  }

  void sample_machine() {
    sampler::TcpCounts counts;
    const Span tcp_span = timed([&] { counts = read_tcp(); });
    record_.tcp(tcp_span, counts);
    if (cpu_) {
      std::string stat, softnet;
      const Span cpu_span = timed([&] {
        stat = stat_.read();
        softnet = softnet_.read();
      });
      record_.cpu(cpu_span, sampler::parse_stat(stat), sampler::parse_softnet(softnet));
    }
    record_.sampler(tcp_span, samples_, sample_schedule_.missed());
  }

  sampler::TcpCounts read_tcp() const {
    const std::string snmp = snmp_.read();
    const std::string netstat = netstat_.read();
    return {sampler::parse_counter(snmp, "Tcp", "InSegs"),
            sampler::parse_counter(snmp, "Tcp", "OutSegs"),
            sampler::parse_counter(snmp, "Tcp", "RetransSegs"),
            sampler::parse_counter(netstat, "TcpExt", "TCPLossProbes"),
            sampler::parse_counter(netstat, "TcpExt", "TCPTimeouts"),
            sampler::parse_counter(netstat, "IpExt", "InCEPkts")};
  }

  sampler::Record &record_;
  sampler::Ports ports_;
  std::optional<sampler::EcnMaps> ecn_maps_;
  std::vector<std::optional<sampler::EcnCounts>> ecn_;
  Groups groups_;
  std::vector<Span> spans_;
  sampler::ProcFile snmp_;
  sampler::ProcFile netstat_;
  sampler::ProcFile stat_;
  sampler::ProcFile softnet_;
  bool cpu_;
  std::vector<pollfd> fds_{{ports_.changes_fd(), POLLIN, 0}};
  native::Nanos polled_ns_ = 0;
  sampler::Schedule sample_schedule_;
  sampler::Schedule machine_schedule_;
  std::uint64_t samples_ = 0;
};

void run(const sampler::Options &options) {
  native::Control control;
  if (options.netns_of_pid != 0)
    enter_network_namespace(options.netns_of_pid);
  sampler::Record record({options.queues, !options.ecn_maps.empty(), options.cpu});
  Sampler sampler(options, record);
  try {
    sampler.run(control);
  } catch (const native::Stopped &) {
    sampler.finish();
  }
}

} // namespace

int main(int argc, char **argv) {
  const auto parsed = sampler::parse_options(argc, argv);
  if (const int *status = std::get_if<int>(&parsed))
    return *status;
  const auto &options = std::get<sampler::Options>(parsed);
  try {
    run(options);
    return 0;
  } catch (const std::exception &error) {
    std::cerr << options.name << ": " << error.what() << '\n';
    return 1;
  }
}
