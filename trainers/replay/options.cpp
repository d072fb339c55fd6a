// SPDX-License-Identifier: Apache-2.0
#include "trainers/replay/options.hpp"

#include "native/errors.hpp"

#include <CLI/CLI.hpp>
#include <iostream>

namespace replay {
namespace {

constexpr int kBadUsage = 2;

constexpr const char *kAbout =
    "Plays one worker of a training job: computes (sleeps) and communicates (over real sockets) by a profile.\n"
    "Reads `secret TEXT`, which the job's workers share, on standard input. Prints {\"event\": \"ready\"} once all "
    "its\n"
    "peers are connected, then reads `start MONOTONIC_NS` and prints one record an iteration. Ends when standard "
    "input\n"
    "closes.";

constexpr const char *kExitStatus =
    "Exit status: 0 all iterations done; 1 failed (the last record says why: a peer died, ...); 2 bad usage;\n"
    "3 stopped before the end by SIGTERM, SIGINT, SIGHUP, or a closed standard input or output.";

} // namespace

std::variant<Options, int> parse_options(int argc, char **argv) {
  Options options;
  std::string job;
  CLI::App app(kAbout, "replay");
  app.footer(kExitStatus);
  app.option_defaults()->required();
  app.add_option("--rank", options.rank, "which of the job's workers this is, from 0");
  app.add_option("--job", job, "the job, JSON as trainers/PROTOCOL.md describes it; the same for all of its workers");
  app.add_option("--computing", options.computing, "how many times as long as the job says this worker computes")
      ->required(false)
      ->check(CLI::Range(0.01, 100.0));
  try {
    app.parse(argc, argv);
    options.job = parse_job(job);
    if (options.rank >= options.job.workers.size())
      throw native::Failure("--rank: expected less than the number of workers, " +
                            std::to_string(options.job.workers.size()) + ", found " + std::to_string(options.rank));
    return options;
  } catch (const CLI::ParseError &error) {
    return app.exit(error) == 0 ? 0 : kBadUsage;
  } catch (const native::Failure &error) {
    std::cerr << "replay: " << error.what() << '\n';
    return kBadUsage;
  }
}

} // namespace replay
