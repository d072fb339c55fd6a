// SPDX-License-Identifier: Apache-2.0
#include "collectors/sampler/options.hpp"

#include <CLI/CLI.hpp>

namespace sampler {
namespace {

constexpr int kBadUsage = 2;

constexpr const char *kAbout =
    "Samples the counters of network ports, and of the machine, and prints them as CSV: the first field of a line is\n"
    "its kind, and a line `#kind,field,...` names the fields. Ends when standard input closes, or on SIGTERM or "
    "SIGINT.";

constexpr const char *kExitStatus = "Exit status: 0 ended on request; 1 failed (said on standard error); 2 bad usage.";

constexpr native::Nanos kNanosPerMs = 1'000'000;

} // namespace

std::variant<Options, int> parse_options(int argc, char **argv) {
  Options options;
  native::Nanos port_period_ms = options.port_period_ns / kNanosPerMs;
  native::Nanos machine_period_ms = options.machine_period_ns / kNanosPerMs;
  CLI::App app(kAbout, "sampler");
  try {
    app.footer(kExitStatus);
    app.add_option("--period-ms", port_period_ms, "time between samples of the ports")
        ->check(CLI::Range(1, 1'000))
        ->capture_default_str();
    app.add_option("--cpu-period-ms", machine_period_ms, "time between samples of TCP, CPU, and the sampler itself")
        ->check(CLI::Range(100, 60'000))
        ->capture_default_str();
    app.add_flag("--cpu", options.cpu, "sample the machine's CPU time and packet backlog too");
    app.add_option("--interfaces", options.interfaces, "ports to sample: A,B,... (default: all but loopback)")
        ->delimiter(',');
    app.add_option("--netns-of-pid", options.netns_of_pid, "sample the network namespace of this process")
        ->check(CLI::PositiveNumber);
    app.add_flag("--queues", options.queues, "sample the ports' root queueing disciplines too");
    app.add_option("--ecn-maps", options.ecn_maps, "folder of the pinned eBPF maps that count ECN marks");
    app.add_option("--transports", options.transports, "folder of the pinned eBPF transports whose counters to sample");
    app.add_option("--rdma-devices", options.rdma_devices, "RDMA devices to sample: A,B,..., or all")->delimiter(',');
    app.add_option("--ethtool", options.ethtool_patterns, "drivers' statistics to sample: names with *, ? and [...]")
        ->delimiter(',')
        ->capture_default_str();
    app.add_option("--sys-root", options.sys_root, "read sys and proc in this folder: a recorded tree of counters");
    app.add_option("--name", options.name, "what messages call this sampler, such as its switch")
        ->capture_default_str();
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    return app.exit(error) == 0 ? 0 : kBadUsage;
  }
  options.port_period_ns = port_period_ms * kNanosPerMs;
  options.machine_period_ns = machine_period_ms * kNanosPerMs;
  return options;
}

} // namespace sampler
