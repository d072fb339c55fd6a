// SPDX-License-Identifier: Apache-2.0
// Gives the parsers of files and of the wire anything, in the form that libFuzzer calls. The first byte chooses which.
#include "crossgen/load_file.hpp"
#include "crossgen/metrics.hpp"
#include "crossgen/sizes.hpp"
#include "crossgen/summary.hpp"
#include "crossgen/wire.hpp"
#include "native/errors.hpp"

#include <algorithm>
#include <cstdlib>
#include <sstream>

namespace {

using namespace crossgen;

void require(bool holds) {
  if (!holds)
    std::abort();
}

void read_load(const std::string &input) {
  std::istringstream in(input);
  LoadReader reader(in, "fuzz");
  Summary summary(reader.header());
  for (Flow flow; reader.next(flow);)
    summary.add(flow);
  summary.json().dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

void read_sizes(const std::string &input) {
  std::istringstream in(input);
  const Sizes sizes = Sizes::parse(in, "fuzz");
  const double most = sizes.quantile_bytes(1);
  require(sizes.mean_bytes() >= 0 && sizes.mean_bytes() <= most);
  require(sizes.quantile_bytes(0.5) <= most);
}

// Each input byte is how much the next read brings; headers take their bytes from the input too.
void receive(const std::string &input) {
  FlowReceiver receiver;
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

void answer(const std::string &input) {
  answer_http(input, [] { return std::string(); });
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  if (size == 0)
    return 0;
  constexpr void (*kParsers[])(const std::string &) = {read_load, read_sizes, receive, answer};
  try {
    kParsers[data[0] % std::size(kParsers)](std::string(reinterpret_cast<const char *>(data) + 1, size - 1));
  } catch (const native::Failure &) { // refused, as it should be
  }
  return 0;
}
