// SPDX-License-Identifier: Apache-2.0
#include "crossgen/results/load_summary.hpp"

#include <iomanip>
#include <sstream>

namespace crossgen {

using nlohmann::ordered_json;

void LoadSummary::add(const Flow &flow) {
  flows_++;
  bytes_ += flow.bytes;
  Class &own = classes_[flow.flow_class];
  own.flows++;
  own.bytes += flow.bytes;
}

double LoadSummary::offered_gbps() const {
  return 8 * static_cast<double>(bytes_) / static_cast<double>(header_.duration_ns);
}

double LoadSummary::mean_bytes() const {
  return flows_ == 0 ? 0 : static_cast<double>(bytes_) / static_cast<double>(flows_);
}

ordered_json LoadSummary::json() const {
  ordered_json by_class = ordered_json::object();
  for (std::size_t i = 0; i < classes_.size(); i++)
    by_class[header_.classes[i]] = {{"flows", classes_[i].flows}, {"bytes", classes_[i].bytes}};
  return {{"flows", flows_},
          {"bytes", bytes_},
          {"mean_bytes", mean_bytes()},
          {"duration_s", static_cast<double>(header_.duration_ns) / 1e9},
          {"offered_gbps", offered_gbps()},
          {"offered_gbps_standard_error", header_.plan.value("offered_gbps_standard_error", ordered_json())},
          {"destinations", header_.destinations},
          {"classes", by_class},
          {"plan", header_.plan}};
}

std::string LoadSummary::text() const {
  const ordered_json &plan = header_.plan;
  const auto has_number = [&plan](const char *key) { return plan.value(key, ordered_json()).is_number(); };
  std::ostringstream out;
  out << std::setprecision(6);
  out << "flows         " << flows_ << '\n' << "mean size     " << mean_bytes() << " bytes";
  if (has_number("mean_bytes"))
    out << "; of the distribution: " << plan.value("mean_bytes", 0.0);
  out << '\n'
      << "duration      " << static_cast<double>(header_.duration_ns) / 1e9 << " s\n"
      << "offered load  " << offered_gbps() << " Gbit/s";
  if (has_number("offered_gbps_standard_error"))
    out << ", standard error " << plan.value("offered_gbps_standard_error", 0.0);
  out << '\n';
  if (plan.contains("bursts"))
    out << "bursts        " << plan["bursts"] << " of " << plan.value("burst_width_ns", 0.0) / 1e3 << " us, every "
        << plan.value("burst_period_ns", 0.0) / 1e3 << " us, at " << plan.value("burst_height", 0.0)
        << " times the load\n";
  for (std::size_t i = 0; i < classes_.size(); i++)
    out << "class         " << header_.classes[i] << ": " << classes_[i].flows << " flows, " << classes_[i].bytes
        << " bytes\n";
  return out.str();
}

} // namespace crossgen
