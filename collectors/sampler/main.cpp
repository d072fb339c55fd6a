// SPDX-License-Identifier: Apache-2.0
// sampler: counters of ports, TCP and CPU at fixed times.
#include "collectors/sampler/options.hpp"
#include "collectors/sampler/record.hpp"
#include "collectors/sampler/schedule.hpp"
#include "native/control.hpp"
#include "native/errors.hpp"

#include <algorithm>
#include <fcntl.h>
#include <iostream>
#include <sched.h>

namespace {

using sampler::Span;

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

class Sampler {
public:
  Sampler(const sampler::Options &options, sampler::Record &record)
      : record_(record), ports_(options.interfaces, options.queues), cpu_(options.cpu),
        port_schedule_(native::monotonic_ns(), options.port_period_ns),
        machine_schedule_(port_schedule_.deadline_ns(), options.machine_period_ns) {
    if (!options.ecn_maps.empty())
      ecn_maps_.emplace(options.ecn_maps);
  }

  // Until we are told to end: throws native::Stopped then.
  void run(native::Control &control) {
    std::vector<pollfd> fds{{ports_.changes_fd(), POLLIN, 0}};
    while (true) {
      control.wait(fds, std::min(port_schedule_.deadline_ns(), machine_schedule_.deadline_ns()));
      if (fds[0].revents != 0)
        ports_.look_again();
      if (port_schedule_.due(native::monotonic_ns()))
        sample_ports();
      if (machine_schedule_.due(native::monotonic_ns()))
        sample_machine();
      record_.flush(native::monotonic_ns());
    }
  }

  // The last sample, so that what is recorded ends with all that was counted.
  void finish() {
    sample_ports();
    sample_machine();
    record_.finish();
  }

private:
  void sample_ports() {
    const std::vector<sampler::Port> *ports = nullptr;
    const std::vector<sampler::SourceMarks> *marks = nullptr;
    ecn_.clear();
    const Span span = timed([&] {
      // By source first: then a port's marks never are less than those of its sources.
      marks = ecn_maps_ ? &ecn_maps_->sources() : nullptr;
      ports = &ports_.read();
      for (const sampler::Port &port : *ports)
        ecn_.push_back(ecn_maps_ ? ecn_maps_->port(port.ifindex) : std::nullopt);
    });
    for (std::size_t i = 0; i < ports->size(); i++)
      record_.port(span, (*ports)[i], ecn_[i]);
    if (marks)
      for (const sampler::SourceMarks &each : *marks)
        if (std::any_of(ports->begin(), ports->end(),
                        [&](const sampler::Port &port) { return port.ifindex == each.source.ifindex; }))
          record_.marks(span, each);
    samples_++;
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
    record_.sampler(tcp_span, samples_, port_schedule_.missed());
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
  sampler::ProcFile snmp_{"/proc/net/snmp"};
  sampler::ProcFile netstat_{"/proc/net/netstat"};
  sampler::ProcFile stat_{"/proc/stat"};
  sampler::ProcFile softnet_{"/proc/net/softnet_stat"};
  bool cpu_;
  sampler::Schedule port_schedule_;
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
