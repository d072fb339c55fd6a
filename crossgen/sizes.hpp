// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <istream>
#include <string>
#include <vector>

namespace crossgen {

// A distribution of flow sizes: points of its cumulative distribution, linear between them.
class Sizes {
public:
  // DCTCP's web-search sizes (Alizadeh et al., SIGCOMM 2010), as public generators carry them. Mean 1 711 250 bytes.
  static Sizes web_search();

  // Reads lines `BYTES CUMULATIVE_PROBABILITY`; `#` begins a comment. Throws native::Failure, naming `name` and the
  // line, for what is not a distribution.
  static Sizes parse(std::istream &in, const std::string &name);

  Sizes scaled(double factor) const;
  double mean_bytes() const;

  // The size below which a share `probability` of all flows lies.
  double quantile_bytes(double probability) const;

private:
  struct Point {
    double bytes;
    double cumulative;
  };

  explicit Sizes(std::vector<Point> points) : points_(std::move(points)) {}

  std::vector<Point> points_;
};

} // namespace crossgen
