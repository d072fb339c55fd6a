// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "crossgen/common/load_file.hpp"

#include <string>

namespace crossgen {

// A summary of a load's flows.
class LoadSummary {
public:
  explicit LoadSummary(const LoadHeader &header) : header_(header), classes_(header.classes.size()) {}

  void add(const Flow &flow);

  double offered_gbps() const;
  double mean_bytes() const; // of a flow

  nlohmann::ordered_json json() const;
  std::string text() const; // for people

private:
  struct Class {
    std::uint64_t flows = 0;
    std::uint64_t bytes = 0;
  };

  const LoadHeader &header_;
  std::vector<Class> classes_;
  std::uint64_t flows_ = 0;
  std::uint64_t bytes_ = 0;
};

} // namespace crossgen
