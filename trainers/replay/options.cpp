// SPDX-License-Identifier: Apache-2.0
#include "trainers/replay/options.hpp"

#include "native/errors.hpp"
#include "native/finite.hpp"
#include "trainers/replay/hello.hpp"

#include <CLI/CLI.hpp>
#include <arpa/inet.h>
#include <cmath>
#include <iostream>
#include <set>

namespace replay {
namespace {

using native::finite;

constexpr int kBadUsage = 2;

constexpr const char *kAbout =
    "Plays one worker of a training job: computes (sleeps) and all-reduces (a ring, over real sockets) by a profile.\n"
    "Prints {\"event\": \"ready\"} once both ring neighbours are connected, then reads `start MONOTONIC_NS` on "
    "standard\n"
    "input and prints one record an iteration. Ends when standard input closes.";

constexpr const char *kExitStatus =
    "Exit status: 0 all iterations done; 1 failed (the last record says why: a peer died, ...); 2 bad usage;\n"
    "3 stopped before the end by SIGTERM, SIGINT, SIGHUP, or a closed standard input or output.";

// What the command line says, before it is checked as a whole.
struct Given {
  std::vector<std::string> addresses;
  std::vector<std::string> names;
  std::string profile;
  double start_offset_ms = 0;
};

void declare(CLI::App &app, Options &options, Given &given) {
  app.footer(kExitStatus);
  app.option_defaults()->required();
  app.add_option("--job", options.job, "name of the job (letters, digits, . _ -)");
  app.add_option("--rank", options.rank, "this worker's place in the ring, from 0");
  app.add_option("--addresses", given.addresses, "IPv4 address of every worker, by rank: A,B,...")->delimiter(',');
  app.add_option("--port", options.port, "TCP port that every worker of the job listens on")
      ->check(CLI::Range(1, 65535));
  app.add_option(
      "--profile", given.profile,
      "the job's iteration, JSON: {\"phases\": [{\"name\", \"compute_ms\"}, {\"name\", \"bytes\", \"alone_ms\"}]}");
  app.add_option("--iterations", options.iterations, "how many")->check(CLI::Range(1u, 1'000'000u));
  app.option_defaults()->required(false);
  app.add_option("--names", given.names, "name of every worker's host, by rank (default: the addresses)")
      ->delimiter(',');
  app.add_option("--flows", options.flows, "TCP connections to the right neighbour")
      ->check(CLI::Range(1u, 64u))
      ->capture_default_str();
  app.add_option("--seed", options.seed, "of the compute times' jitter")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--jitter", options.jitter, "relative standard deviation of compute times")
      ->check(finite(0, 1))
      ->capture_default_str();
  app.add_option("--start-offset-ms", given.start_offset_ms, "begin this long after the agreed start")
      ->check(finite(0, 3.6e6))
      ->capture_default_str();
}

void check_job_name(const std::string &job) {
  constexpr const char *kAllowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  if (job.empty() || job.size() > kLongestJobName || job.find_first_not_of(kAllowed) != std::string::npos)
    throw native::Failure("--job: expected 1 to 63 of letters, digits, '.', '_', '-', found \"" + job + "\"");
}

std::vector<Peer> workers(const Given &given) {
  if (given.addresses.size() < 2)
    throw native::Failure("--addresses: expected at least 2 workers, found " + std::to_string(given.addresses.size()));
  if (!given.names.empty() && given.names.size() != given.addresses.size())
    throw native::Failure("--names: expected " + std::to_string(given.addresses.size()) + ", one an address, found " +
                          std::to_string(given.names.size()));
  std::set<std::string> seen;
  std::vector<Peer> workers;
  for (std::size_t i = 0; i < given.addresses.size(); i++) {
    const std::string &address = given.addresses[i];
    Peer peer{given.names.empty() ? address : given.names[i], address, {}};
    if (inet_pton(AF_INET, address.c_str(), &peer.ip) != 1)
      throw native::Failure("--addresses: expected IPv4 addresses, found \"" + address + "\"");
    if (!seen.insert(address).second)
      throw native::Failure("--addresses: " + address + " is given twice");
    workers.push_back(std::move(peer));
  }
  return workers;
}

// Of everything but the rank: seconds later a worker that was given something else would only look slow.
std::uint64_t fingerprint(const Options &options) {
  std::ostringstream all;
  all.precision(17);
  for (const Peer &worker : options.workers)
    all << worker.address << ' ';
  all << options.flows << ' ' << options.iterations << ' ' << options.seed << ' ' << options.jitter << ' '
      << options.start_offset_ns;
  for (const Phase &phase : options.profile.phases)
    all << ' ' << phase.compute_ns << ' ' << phase.bytes << ' ' << phase.alone_ns;
  return fnv1a(all.str());
}

void check(Options &options, const Given &given) {
  check_job_name(options.job);
  options.workers = workers(given);
  if (options.rank >= options.workers.size())
    throw native::Failure("--rank: expected less than the number of addresses, " +
                          std::to_string(options.workers.size()) + ", found " + std::to_string(options.rank));
  options.profile = parse_profile(given.profile);
  options.start_offset_ns = std::llround(given.start_offset_ms * 1e6);
  options.fingerprint = fingerprint(options);
}

} // namespace

std::variant<Options, int> parse_options(int argc, char **argv) {
  Options options;
  Given given;
  CLI::App app(kAbout, "replay");
  try {
    declare(app, options, given);
    app.parse(argc, argv);
    check(options, given);
    return options;
  } catch (const CLI::ParseError &error) {
    return app.exit(error) == 0 ? 0 : kBadUsage;
  } catch (const native::Failure &error) {
    std::cerr << "replay: " << error.what() << '\n';
    return kBadUsage;
  }
}

} // namespace replay
