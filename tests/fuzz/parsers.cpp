// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/parsers.hpp"

#include "collectors/decoder/blocks.hpp"
#include "collectors/decoder/input/capture_file.hpp"
#include "crossgen/common/load_file.hpp"
#include "crossgen/common/wire.hpp"
#include "crossgen/plan/sizes.hpp"
#include "crossgen/results/load_summary.hpp"
#include "native/control/control.hpp"
#include "native/control/secret.hpp"
#include "native/errors.hpp"
#include "trainers/replay/network/hello.hpp"
#include "trainers/replay/playback/job.hpp"

#include <algorithm>
#include <cstdlib>
#include <fcntl.h>
#include <sstream>
#include <sys/mman.h>

namespace fuzz {
namespace {

void require(bool holds) {
  if (!holds)
    std::abort();
}

void read_load(const std::string &input) {
  std::istringstream in(input);
  crossgen::LoadReader reader(in, "fuzz");
  crossgen::LoadSummary summary(reader.header());
  for (crossgen::Flow flow; reader.next(flow);)
    summary.add(flow);
  summary.json().dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

void read_sizes(const std::string &input) {
  const auto read = [&input](crossgen::Between between) {
    std::istringstream in(input);
    return crossgen::Sizes::parse(in, "fuzz", between);
  };
  const crossgen::Sizes steps = read(crossgen::Between::kSteps);
  const double most = steps.quantile_bytes(1);
  require(steps.mean_bytes() >= 0 && steps.mean_bytes() <= most * (1 + 1e-9));
  const crossgen::Sizes linear = read(crossgen::Between::kLinear); // refuses more
  require(linear.quantile_bytes(1) == most && linear.is_percent() == steps.is_percent());
  require(linear.mean_bytes() >= 0 && steps.mean_bytes() >= linear.mean_bytes());
  for (const double share : {0.0, 0.5, 1.0})
    require(linear.quantile_bytes(share) >= 0 && linear.quantile_bytes(share) <= steps.quantile_bytes(share) &&
            steps.quantile_bytes(share) <= most);
}

// Each input byte is how much the next read brings; headers take their bytes from the input too.
void receive_flows(const std::string &input) {
  crossgen::FlowReceiver receiver;
  for (std::size_t i = 0; i < input.size();) {
    const auto piece = std::max<std::size_t>(1, static_cast<unsigned char>(input[i++]));
    const auto room = receiver.header_room();
    if (room.empty()) {
      receiver.took_body(std::min<std::uint64_t>(receiver.body_left(), std::uint64_t{piece} << (piece % 48)));
      continue;
    }
    const std::size_t bytes = std::min({piece, room.size(), input.size() - i});
    std::copy_n(input.begin() + static_cast<std::ptrdiff_t>(i), bytes, room.begin());
    receiver.took_header(bytes);
    i += bytes;
  }
}

// A peer without the secret never gets as far as being judged.
void judge_hello(const std::string &input) {
  replay::Message message{};
  std::copy_n(input.begin(), std::min(input.size(), message.size()), message.begin());
  const replay::Expected expected{"j1", {{0, {0, 1}}, {3, {1}}}, 42, "open-sesame"};
  const std::string text = replay::to_text(message);
  replay::Hello hello;
  const std::string trouble = replay::judge_hello(text, expected, hello);
  if (replay::has_secret(text, expected) && trouble.empty())
    require(hello.job == "j1" && expected.connections.at(hello.rank).contains(hello.connection));
  require(replay::to_message(trouble).back() == '\0');
}

void read_job(const std::string &input) {
  const replay::Job job = replay::parse_job(input);
  require(job.workers.size() >= 2 && !job.phases.empty() && job.connections > 0);
  for (const replay::Phase &phase : job.phases)
    for (const replay::Transfer &transfer : phase.transfers)
      require(transfer.from < job.workers.size() && transfer.to < job.workers.size() &&
              transfer.channel < replay::kMaxChannels);
}

void read_control_line(const std::string &input) {
  if (!input.empty() && input[0] == 's' && input.find("start") == 0)
    require(native::parse_start(input) > 0);
  else
    require(native::parse_secret(input).size() >= native::kMinSecretBytes);
}

// Both ends of the decoder: what it reads is a file, what it writes is thrown away.
void decode_capture(const std::string &input) {
  static const native::Fd file(memfd_create("capture", MFD_CLOEXEC));
  static const native::Fd null(open("/dev/null", O_WRONLY | O_CLOEXEC));
  require(ftruncate(file.get(), 0) == 0 &&
          pwrite(file.get(), input.data(), input.size(), 0) == static_cast<ssize_t>(input.size()));
  decoder::CaptureFile capture("/proc/self/fd/" + std::to_string(file.get()));
  decoder::Blocks blocks(null.get(), {});
  for (decoder::Frame frame; capture.next(frame);)
    blocks.add(frame);
  blocks.finish({capture.damage()}, capture.skipped());
}

constexpr Parser kParsers[] = {
    {"load", read_load}, {"sizes", read_sizes},          {"flows", receive_flows},    {"hello", judge_hello},
    {"job", read_job},   {"control", read_control_line}, {"capture", decode_capture},
};

} // namespace

std::span<const Parser> parsers() { return kParsers; }

void give(const Parser &parser, const std::string &input) {
  try {
    parser.take(input);
  } catch (const native::Failure &) {
  }
}

} // namespace fuzz
