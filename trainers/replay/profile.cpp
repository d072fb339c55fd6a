// SPDX-License-Identifier: Apache-2.0
#include "trainers/replay/profile.hpp"

#include "native/errors.hpp"

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

namespace replay {
namespace {

using nlohmann::json;

constexpr double kLongestMs = 3'600'000;

// Checks one phase's fields, each complaint naming the phase.
class PhaseReader {
public:
  PhaseReader(std::size_t index, const json &phase)
      : where_("profile: phases[" + std::to_string(index) + "]"), phase_(phase) {
    if (!phase.is_object())
      fail("expected an object, found " + phase.dump());
  }

  Phase read() const {
    const bool computes = phase_.contains("compute_ms");
    refuse_unknown(computes ? std::set<std::string>{"name", "compute_ms"}
                            : std::set<std::string>{"name", "bytes", "alone_ms"});
    Phase phase;
    phase.name = name();
    if (computes) {
      phase.compute_ns = milliseconds("compute_ms");
      return phase;
    }
    phase.bytes = bytes();
    phase.alone_ns = milliseconds("alone_ms");
    if (phase.alone_ns == 0)
      fail("alone_ms: expected more than 0");
    return phase;
  }

private:
  [[noreturn]] void fail(const std::string &what) const { throw native::Failure(where_ + ": " + what); }

  const json &field(const char *key) const {
    if (!phase_.contains(key))
      fail(std::string("expected compute_ms, or bytes and alone_ms; ") + key + " is missing");
    return phase_.at(key);
  }

  void refuse_unknown(const std::set<std::string> &known) const {
    for (const auto &[key, value] : phase_.items())
      if (!known.contains(key))
        fail("unknown field " + json(key).dump() + " (a phase has name, and compute_ms or bytes and alone_ms)");
  }

  std::string name() const {
    const json &value = field("name");
    if (!value.is_string())
      fail("name: expected a string, found " + value.dump());
    return value.get<std::string>();
  }

  native::Nanos milliseconds(const char *key) const {
    const json &value = field(key);
    if (!value.is_number() || !(value.get<double>() >= 0) || value.get<double>() > kLongestMs)
      fail(std::string(key) + ": expected milliseconds from 0 to one hour, found " + value.dump());
    return std::llround(value.get<double>() * 1e6);
  }

  std::uint64_t bytes() const {
    const json &value = field("bytes");
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() == 0 ||
        value.get<std::uint64_t>() > std::uint64_t{1} << 50)
      fail("bytes: expected a whole number from 1 to 2^50, found " + value.dump());
    return value.get<std::uint64_t>();
  }

  std::string where_;
  const json &phase_;
};

} // namespace

std::uint64_t Profile::bytes() const {
  std::uint64_t sum = 0;
  for (const Phase &phase : phases)
    sum += phase.bytes;
  return sum;
}

Profile parse_profile(const std::string &text) {
  const json document = json::parse(text, nullptr, false);
  if (document.is_discarded())
    throw native::Failure("profile: not JSON: " + text);
  if (!document.is_object() || document.size() != 1 || !document.contains("phases") || !document["phases"].is_array() ||
      document["phases"].empty())
    throw native::Failure("profile: expected {\"phases\": [at least one phase]}, found " + document.dump());
  Profile profile;
  for (const json &phase : document["phases"])
    profile.phases.push_back(PhaseReader(profile.phases.size(), phase).read());
  return profile;
}

} // namespace replay
