// SPDX-License-Identifier: Apache-2.0
#include "crossgen/results/summary.hpp"

#include <cmath>
#include <iomanip>
#include <sstream>

namespace crossgen {

using nlohmann::ordered_json;

void Summary::add(const Flow &flow) {
  flows_++;
  bytes_ += flow.bytes;
  Class &own = classes_[flow.flow_class];
  own.flows++;
  own.bytes += flow.bytes;
  const auto bytes = static_cast<double>(flow.bytes); // Welford 1962
  const double from_mean = bytes - own.running_mean;
  own.running_mean += from_mean / static_cast<double>(own.flows);
  own.squared_deviations += from_mean * (bytes - own.running_mean);
}

double Summary::offered_gbps() const {
  return 8 * static_cast<double>(bytes_) / static_cast<double>(header_.duration_ns);
}

// Whether a class's sizes are independent draws: no burst's are, and nobody's where volumes are exact.
bool Summary::drawn(std::size_t flow_class) const {
  return header_.plan.value("volumes", ordered_json("drawn")) == "drawn" && header_.classes[flow_class] != "burst";
}

// Of a given number of flows of each class.
double Summary::standard_error_gbps() const {
  double variance = 0;
  for (std::size_t i = 0; i < classes_.size(); i++)
    if (const auto flows = static_cast<double>(classes_[i].flows); flows > 1 && drawn(i))
      variance += classes_[i].squared_deviations * flows / (flows - 1);
  return 8 * std::sqrt(variance) / static_cast<double>(header_.duration_ns);
}

double Summary::mean_bytes() const {
  return flows_ == 0 ? 0 : static_cast<double>(bytes_) / static_cast<double>(flows_);
}

ordered_json Summary::json() const {
  ordered_json by_class = ordered_json::object();
  for (std::size_t i = 0; i < classes_.size(); i++)
    by_class[header_.classes[i]] = {{"flows", classes_[i].flows}, {"bytes", classes_[i].bytes}};
  return {{"flows", flows_},
          {"bytes", bytes_},
          {"mean_bytes", mean_bytes()},
          {"duration_s", static_cast<double>(header_.duration_ns) / 1e9},
          {"offered_gbps", offered_gbps()},
          {"offered_gbps_standard_error", standard_error_gbps()},
          {"destinations", header_.destinations},
          {"classes", by_class},
          {"plan", header_.plan}};
}

std::string Summary::text() const {
  std::ostringstream out;
  out << std::setprecision(6);
  out << "flows         " << flows_ << '\n'
      << "mean size     " << mean_bytes() << " bytes\n"
      << "duration      " << static_cast<double>(header_.duration_ns) / 1e9 << " s\n"
      << "offered load  " << offered_gbps() << " Gbit/s, standard error " << standard_error_gbps() << '\n';
  const ordered_json &plan = header_.plan;
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
