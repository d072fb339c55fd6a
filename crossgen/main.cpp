// SPDX-License-Identifier: Apache-2.0
// crossgen: cross traffic, from its plan to its sink.
#include "crossgen/common/files.hpp"
#include "crossgen/send/sender.hpp"
#include "crossgen/sink/sink.hpp"
#include "native/errors.hpp"

#include <iostream>

namespace {

void run(const crossgen::PlanOptions &options) { crossgen::run_plan(options); }
void run(const crossgen::ShowOptions &options) { crossgen::run_show(options); }
void run(const crossgen::SinkOptions &options) { crossgen::run_sink(options); }
void run(const crossgen::SendOptions &options) { crossgen::run_send(options); }

} // namespace

int main(int argc, char **argv) {
  const auto parsed = crossgen::parse_options(argc, argv);
  if (const int *status = std::get_if<int>(&parsed))
    return *status;
  try {
    std::visit([](const auto &options) { run(options); }, std::get<crossgen::Options>(parsed));
    return 0;
  } catch (const native::Stopped &) { // before there was anything to report
    return 0;
  } catch (const std::exception &error) {
    std::cerr << "crossgen: " << error.what() << '\n';
    return 1;
  }
}
