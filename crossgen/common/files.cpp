// SPDX-License-Identifier: Apache-2.0
#include "crossgen/common/files.hpp"

#include "crossgen/plan/plan.hpp"
#include "crossgen/results/load_summary.hpp"
#include "native/errors.hpp"

#include <cmath>
#include <fstream>
#include <iostream>

namespace crossgen {
namespace {

template <typename Stream> Stream open(const std::string &path) {
  Stream stream(path, std::ios::binary);
  if (!stream)
    throw native::system_failure("cannot open " + path);
  return stream;
}

Sizes sizes_of(const PlanOptions &options) {
  if (options.spec.kind != Kind::kConsistent)
    return unit_sizes(options.spec.kind, options.unit_bytes).scaled(options.scale_sizes);
  if (options.sizes_path.empty())
    return Sizes::web_search(options.between).scaled(options.scale_sizes);
  auto in = open<std::ifstream>(options.sizes_path);
  const Sizes sizes = Sizes::parse(in, options.sizes_path, options.between);
  if (sizes.is_percent())
    std::cerr << "crossgen: " << options.sizes_path << ": the last cumulative probability is 100, so all are percent\n";
  return sizes.scaled(options.scale_sizes);
}

// A standard error above this share of the load makes the offered load a matter of chance.
constexpr double kMaxError = 0.1;

void warn_of_chance(const nlohmann::ordered_json &plan, double duration_s) {
  const double error = plan.value("offered_gbps_standard_error", 0.0) / plan.value("expected_gbps", 0.0);
  if (error <= kMaxError)
    return;
  const double needed = error / kMaxError; // the error falls with the square root of the duration
  std::cerr << "crossgen: the duration is too short for these sizes: the standard error of the offered load is "
            << std::llround(100 * error) << " % of the load; plan at least "
            << std::llround(std::ceil(duration_s * needed * needed)) << " s, or other sizes\n";
}

void say(std::ostream &out, const LoadSummary &summary, bool json) {
  if (json)
    out << summary.json().dump() << '\n';
  else
    out << summary.text();
}

} // namespace

void run_plan(const PlanOptions &options) {
  const Sizes sizes = sizes_of(options);
  LoadHeader header = plan_header(options.spec, sizes);
  if (options.spec.kind == Kind::kConsistent)
    header.plan["sizes_between"] = options.between == Between::kSteps ? "steps" : "linear";
  else
    header.plan["unit_bytes"] = options.unit_bytes * options.scale_sizes;
  // The file's header has the offered load, so the flows are drawn twice, with equal results from the same seed.
  LoadSummary summary(header);
  plan(options.spec, sizes, [&summary](const Flow &flow) { summary.add(flow); });
  header.plan["offered_gbps"] = summary.offered_gbps();
  header.plan["offered_mean_bytes"] = summary.mean_bytes();
  const bool to_stdout = options.output == "-";
  std::ofstream file;
  if (!to_stdout)
    file = open<std::ofstream>(options.output);
  LoadWriter writer(to_stdout ? std::cout : file, header);
  plan(options.spec, sizes, [&writer](const Flow &flow) { writer.add(flow); });
  writer.finish();
  warn_of_chance(header.plan, static_cast<double>(header.duration_ns) / 1e9);
  say(to_stdout ? std::cerr : std::cout, summary, options.json);
}

void run_show(const ShowOptions &options) {
  std::ios::sync_with_stdio(false);
  auto file = open<std::ifstream>(options.path);
  LoadReader reader(file, options.path);
  const LoadHeader &header = reader.header();
  LoadSummary summary(header);
  if (!options.json)
    std::cout << "start_ns,bytes,destination,class\n";
  for (Flow flow; reader.next(flow);) {
    summary.add(flow);
    if (!options.json)
      std::cout << flow.start_ns << ',' << flow.bytes << ',' << header.destinations[flow.destination] << ','
                << header.classes[flow.flow_class] << '\n';
  }
  say(options.json ? std::cout : std::cerr, summary, options.json);
}

} // namespace crossgen
