// SPDX-License-Identifier: Apache-2.0
#include "crossgen/plan/sizes.hpp"

#include "native/errors.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <sstream>
#include <string_view>

namespace crossgen {
namespace {

constexpr double kMaxBytes = 1e14; // of a size, scaled or not: load files hold flows of up to 2^48 bytes
constexpr std::size_t kMaxPoints = 100'000;

std::string shown(double number) {
  std::ostringstream out;
  out.precision(15);
  out << number;
  return out.str();
}

bool to_number(std::string_view word, double &number) {
  const char *end = word.data() + word.size();
  const auto parsed = std::from_chars(word.data(), end, number);
  return parsed.ec == std::errc{} && parsed.ptr == end && number >= 0; // false for "nan"
}

// The beginning of `text`, fit for an error message.
std::string quoted(std::string_view text) {
  std::string result(text.substr(0, 80));
  std::replace_if(
      result.begin(), result.end(), [](unsigned char each) { return each < ' ' || each > '~'; }, '?');
  return '`' + result + '`';
}

// True for the first line of compressed data and of UTF-16.
bool has_control_characters(std::string_view line) {
  return std::any_of(line.begin(), line.end(),
                     [](unsigned char each) { return each < ' ' && (each < '\t' || each > '\r'); });
}

// The words of a line without its comment: spaces, tabs, commas and semicolons separate them, quotes may enclose them.
std::vector<std::string_view> words_of(std::string_view line) {
  constexpr std::string_view kSeparators = " \t\r\v\f,;\"";
  line = line.substr(0, line.find('#'));
  std::vector<std::string_view> words;
  for (std::size_t at = 0; (at = line.find_first_not_of(kSeparators, at)) != std::string_view::npos;) {
    const std::size_t end = std::min(line.find_first_of(kSeparators, at), line.size());
    words.push_back(line.substr(at, end - at));
    at = end;
  }
  return words;
}

// True for a number, and for a word that was meant as one.
bool has_number(const std::vector<std::string_view> &words) {
  return std::any_of(words.begin(), words.end(), [](std::string_view word) {
    double number = 0;
    const auto parsed = std::from_chars(word.data(), word.data() + word.size(), number);
    return word.find_first_of("0123456789.+-") == 0 || parsed.ptr == word.data() + word.size();
  });
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

Sizes Sizes::prompt_tokens() {
  return Sizes({{2, 0},
                {29, .01},
                {181, .05},
                {207, .1},
                {372, .15},
                {387, .2},
                {403, .3},
                {703, .4},
                {1'020, .5},
                {1'071, .6},
                {1'130, .7},
                {1'315, .8},
                {1'877, .85},
                {2'735, .9},
                {4'083, .95},
                {4'142, .99},
                {6'212, .999},
                {14'050, 1}},
               Between::kLinear);
}

// Reads a distribution line by line. Only the last line shows whether probabilities are percent.
class Sizes::Reader {
public:
  explicit Reader(const std::string &name) : name_(name) {}

  void add(std::string_view line) {
    if (++line_ == 1 && line.starts_with("\xef\xbb\xbf")) // a byte-order mark
      line.remove_prefix(3);
    if (line_ == 1 && has_control_characters(line))
      throw native::Failure(name_ + ": expected UTF-8 text, found other data: decompress it, or save it as UTF-8");
    const std::vector<std::string_view> words = words_of(line);
    if (words.empty())
      return;
    last_line_ = line_;
    if (is_first_ && !has_number(words))
      is_first_ = false; // a heading
    else
      add_point(line, words);
  }

  std::vector<Point> finish(Between between) {
    if (points_.empty())
      throw native::Failure(name_ + ": expected lines `BYTES CUMULATIVE_PROBABILITY`, found none");
    line_ = last_line_;
    is_percent_ = near(points_.back().cumulative, 100);
    if (!is_percent_ && (has_percent_sign_ || !near(points_.back().cumulative, 1)))
      refuse("cumulative probability", std::string("expected the last one to be ") +
                                           (has_percent_sign_ ? "" : "1, or ") + "100 in percent, found " +
                                           shown(points_.back().cumulative));
    if (points_.back().bytes == 0)
      refuse("bytes", "expected a size above 0, found none");
    if (is_percent_ && !has_percent_sign_ && is_last_alone_above_one())
      refuse("cumulative probability", "expected percent in all lines or in none, found " +
                                           shown(points_.back().cumulative) + " behind probabilities up to " +
                                           shown(points_[points_.size() - 2].cumulative) +
                                           ": write 1, or percent signs");
    begin_at_zero(between);
    scale_to_one();
    remove_ends();
    return points_;
  }

  bool is_percent() const { return is_percent_; }

private:
  // Sums of probabilities that programs print are off by their roundings.
  static bool near(double value, double wanted) { return std::abs(value - wanted) <= 1e-9 * wanted; }

  // True if the last probability looks like percent, and those before it, above 0, do not.
  bool is_last_alone_above_one() const {
    if (points_.size() < 2)
      return false;
    const double before = points_[points_.size() - 2].cumulative;
    return before > 0 && before <= 1;
  }

  [[noreturn]] void refuse(const std::string &field, const std::string &why) const {
    throw native::Failure(name_ + ", line " + std::to_string(line_) + ", " + field + ": " + why);
  }

  void add_point(std::string_view line, const std::vector<std::string_view> &words) {
    is_first_ = false;
    if (words.size() != 2)
      throw native::Failure(name_ + ", line " + std::to_string(line_) +
                            ": expected two fields, `BYTES CUMULATIVE_PROBABILITY`, found " + quoted(line));
    const Point point{to_bytes(words[0]), to_cumulative(words[1])};
    if (!points_.empty()) {
      const Point &before = points_.back();
      if (point.bytes < before.bytes)
        refuse("bytes", "expected at least " + shown(before.bytes) + ", the line before's, found " + quoted(words[0]));
      if (point.cumulative < before.cumulative)
        refuse("cumulative probability",
               "expected at least " + shown(before.cumulative) + ", the line before's, found " + quoted(words[1]));
    }
    if (points_.size() == kMaxPoints)
      refuse("bytes", "expected at most " + std::to_string(kMaxPoints) + " sizes");
    points_.push_back(point);
  }

  double to_bytes(std::string_view word) const {
    double bytes = 0;
    if (!to_number(word, bytes) || bytes > kMaxBytes)
      refuse("bytes", "expected a number from 0 to " + shown(kMaxBytes) + ", found " + quoted(word));
    if (bytes > 0 && bytes < 1)
      refuse("bytes", "expected 0, or at least 1 byte, found " + quoted(word) + ": are the sizes in bytes?");
    return bytes;
  }

  double to_cumulative(std::string_view word) {
    std::string_view digits = word;
    if (digits.ends_with('%')) {
      digits.remove_suffix(1);
      has_percent_sign_ = true;
    }
    double cumulative = 0;
    if (!to_number(digits, cumulative) || cumulative > 100 * (1 + 1e-9))
      refuse("cumulative probability",
             "expected a number from 0 to 1, or from 0 to 100 in percent, found " + quoted(word));
    return cumulative;
  }

  void scale_to_one() {
    for (Point &point : points_)
      point.cumulative = std::min(point.cumulative / (is_percent_ ? 100 : 1), 1.0);
    points_.back().cumulative = 1;
  }

  // A first line above probability 0 gives that share of the flows the first size. If sizes are spread between points,
  // the share may also be spread over all smaller sizes, so the file must say.
  void begin_at_zero(Between between) {
    const Point &first = points_.front();
    if (first.cumulative == 0)
      return;
    if (between == Between::kLinear)
      throw native::Failure(name_ + ", cumulative probability: expected 0 at the first size, found " +
                            shown(first.cumulative) + ": begin with a line `0 0` if smaller sizes occur, or with `" +
                            shown(first.bytes) + " 0` if none do");
    points_.insert(points_.begin(), {first.bytes, 0});
  }

  // No flow has a size below the last point of probability 0, or above the first one of probability 1.
  void remove_ends() {
    const auto is_above = [](const Point &point) { return point.cumulative > 0; };
    const auto is_whole = [](const Point &point) { return point.cumulative == 1; };
    points_.erase(std::find_if(points_.begin(), points_.end(), is_whole) + 1, points_.end());
    points_.erase(points_.begin(), std::find_if(points_.begin(), points_.end(), is_above) - 1);
  }

  std::string name_;
  std::vector<Point> points_;
  std::size_t line_ = 0, last_line_ = 0; // numbers of this line, and of the last one with a point
  bool is_first_ = true;
  bool has_percent_sign_ = false;
  bool is_percent_ = false;
};

Sizes Sizes::parse(std::istream &in, const std::string &name, Between between) {
  Reader reader(name);
  for (std::string line; std::getline(in, line);)
    reader.add(line);
  if (in.bad())
    throw native::system_failure("cannot read " + name);
  Sizes sizes(reader.finish(between), between);
  sizes.is_percent_ = reader.is_percent();
  return sizes;
}

Sizes Sizes::scaled(double factor) const {
  std::vector<Point> points = points_;
  for (Point &point : points)
    point.bytes *= factor;
  if (points.back().bytes > kMaxBytes)
    throw native::Failure("expected sizes up to " + shown(kMaxBytes) + " bytes once they are scaled, found " +
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

double Sizes::standard_deviation_bytes() const {
  const double mean = mean_bytes();
  double variance = 0;
  for (std::size_t i = 1; i < points_.size(); i++) {
    const double share = points_[i].cumulative - points_[i - 1].cumulative;
    const double width = between_ == Between::kSteps ? 0 : points_[i].bytes - points_[i - 1].bytes;
    const double from_mean = points_[i].bytes - width / 2 - mean;
    variance += share * (from_mean * from_mean + width * width / 12); // of a uniform distribution
  }
  return std::sqrt(variance);
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
