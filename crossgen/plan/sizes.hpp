// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <istream>
#include <string>
#include <vector>

namespace crossgen {

// The distribution between two points of a cumulative distribution: uniform, or none. With kSteps a draw is one of the
// listed sizes, as in Salamy's RandChoice(WS_dist, WS_weights).
enum class Between { kLinear, kSteps };

// A distribution of flow sizes, given by points of its cumulative distribution.
class Sizes {
public:
  // Returns DCTCP's web-search sizes (Alizadeh et al., SIGCOMM 2010), as in public generators. The mean is 2 434 900
  // bytes in steps, and 1 711 250 bytes linear.
  static Sizes web_search(Between between);

  // Returns the tokens of prompts in Azure's trace of conversations (Patel et al., ISCA 2024): its quantiles, linear
  // between them. The mean is 1,152.079 tokens, of the trace's requests 1,154.697.
  static Sizes prompt_tokens();

  // Returns the distribution of one size.
  static Sizes one(double bytes) { return Sizes({{bytes, 0}, {bytes, 1}}, Between::kSteps); }

  // Reads lines `BYTES CUMULATIVE_PROBABILITY`; spaces, tabs, commas or semicolons separate the fields, `#` begins a
  // comment, and the first line may be a heading. Probabilities are percent if the last one is 100. Throws
  // native::Failure, naming `name`, the line and the field, for anything that is not a distribution.
  static Sizes parse(std::istream &in, const std::string &name, Between between);

  // Returns the distribution with all sizes multiplied by `factor`.
  Sizes scaled(double factor) const;
  double mean_bytes() const;
  double standard_deviation_bytes() const;

  // True if the file's probabilities were percent.
  bool is_percent() const { return is_percent_; }

  // Returns the size that a share `probability` of all flows does not exceed.
  double quantile_bytes(double probability) const;

private:
  struct Point {
    double bytes;
    double cumulative;
  };
  class Reader;

  Sizes(std::vector<Point> points, Between between) : points_(std::move(points)), between_(between) {}

  std::vector<Point> points_;
  Between between_;
  bool is_percent_ = false;
};

} // namespace crossgen
