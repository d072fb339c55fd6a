// SPDX-License-Identifier: Apache-2.0
#include "crossgen/sizes.hpp"

#include "native/errors.hpp"

#include <algorithm>
#include <charconv>
#include <sstream>

namespace crossgen {
namespace {

constexpr double kMostBytes = 1e14; // of a size, scaled or not: load files hold flows of up to 2^48 bytes
constexpr std::size_t kMostPoints = 100'000;

bool to_number(const std::string &word, double &number) {
  const char *end = word.data() + word.size();
  const auto parsed = std::from_chars(word.data(), end, number);
  return parsed.ec == std::errc{} && parsed.ptr == end && number >= 0; // false for "nan"
}

std::string shown(double number) {
  std::ostringstream out;
  out.precision(15);
  out << number;
  return out.str();
}

} // namespace

Sizes Sizes::web_search(Between between) {
  return Sizes({{0, 0},
                {10'000, .15},
                {20'000, .2},
                {30'000, .3},
                {50'000, .4},
                {80'000, .53},
                {200'000, .6},
                {1e6, .7},
                {2e6, .8},
                {5e6, .9},
                {1e7, .97},
                {3e7, 1}},
               between);
}

Sizes Sizes::parse(std::istream &in, const std::string &name, Between between) {
  std::vector<Point> points;
  std::string line;
  std::size_t number = 0;
  const auto refuse = [&](const std::string &why) {
    throw native::Failure(name + ", line " + std::to_string(number) + ": " + why);
  };
  while (std::getline(in, line)) {
    number++;
    std::istringstream words(line.substr(0, line.find('#')));
    std::string bytes, cumulative, more;
    if (!(words >> bytes))
      continue;
    words >> cumulative >> more;
    Point point{};
    if (!more.empty() || !to_number(bytes, point.bytes) || !to_number(cumulative, point.cumulative))
      refuse("expected `BYTES CUMULATIVE_PROBABILITY`, found `" + line.substr(0, 80) + "`");
    if (point.bytes > kMostBytes)
      refuse("expected a size up to " + shown(kMostBytes) + " bytes, found " + bytes);
    if (points.empty() ? point.cumulative != 0 : point.cumulative <= points.back().cumulative)
      refuse(points.empty() ? "expected cumulative probability 0 at the first size, found " + cumulative
                            : "expected a cumulative probability above " + shown(points.back().cumulative) +
                                  ", the line before's, found " + cumulative);
    if (!points.empty() && point.bytes < points.back().bytes)
      refuse("expected a size of at least " + shown(points.back().bytes) + " bytes, the line before's, found " + bytes);
    if (point.cumulative > 1)
      refuse("expected a cumulative probability up to 1, found " + cumulative);
    if (points.size() == kMostPoints)
      refuse("expected at most " + std::to_string(kMostPoints) + " points");
    points.push_back(point);
  }
  if (points.empty() || points.back().cumulative != 1)
    refuse("expected the last cumulative probability to be 1, found " +
           (points.empty() ? "nothing" : shown(points.back().cumulative)));
  if (points.back().bytes == 0)
    refuse("expected a size above 0 bytes, found none");
  return Sizes(std::move(points), between);
}

Sizes Sizes::scaled(double factor) const {
  std::vector<Point> points = points_;
  for (Point &point : points)
    point.bytes *= factor;
  if (points.back().bytes > kMostBytes)
    throw native::Failure("expected sizes up to " + shown(kMostBytes) + " bytes once they are scaled, found " +
                          shown(points.back().bytes));
  return Sizes(std::move(points), between_);
}

double Sizes::mean_bytes() const {
  double mean = 0;
  for (std::size_t i = 1; i < points_.size(); i++) {
    const double bytes = between_ == Between::kSteps ? points_[i].bytes : (points_[i].bytes + points_[i - 1].bytes) / 2;
    mean += (points_[i].cumulative - points_[i - 1].cumulative) * bytes;
  }
  return mean;
}

double Sizes::quantile_bytes(double probability) const {
  const auto above = std::lower_bound(points_.begin() + 1, points_.end() - 1, probability,
                                      [](const Point &point, double wanted) { return point.cumulative < wanted; });
  if (between_ == Between::kSteps)
    return above->bytes;
  const Point &below = *(above - 1);
  const double share = (probability - below.cumulative) / (above->cumulative - below.cumulative);
  return below.bytes + share * (above->bytes - below.bytes);
}

} // namespace crossgen
