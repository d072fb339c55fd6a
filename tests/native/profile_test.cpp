// SPDX-License-Identifier: Apache-2.0
#include "trainers/replay/profile.hpp"

#include "native/errors.hpp"

#include <gtest/gtest.h>

namespace replay {
namespace {

std::string complaint(const std::string &json) {
  try {
    parse_profile(json);
  } catch (const native::Failure &failure) {
    return failure.what();
  }
  return "none";
}

std::string complaint_of_phase(const std::string &phase) {
  const std::string prefix = "profile: phases[0]: ";
  const std::string text = complaint("{\"phases\": [" + phase + "]}");
  EXPECT_TRUE(text.starts_with(prefix)) << text;
  return text.substr(std::min(prefix.size(), text.size()));
}

TEST(Profile, HasComputeAndCommunicationPhasesInOrder) {
  const Profile profile = parse_profile(
      R"({"phases": [{"name": "forward", "compute_ms": 150.5}, {"name": "allreduce", "bytes": 11493600, "alone_ms": 143}]})");
  ASSERT_EQ(profile.phases.size(), 2u);
  EXPECT_EQ(profile.phases[0].name, "forward");
  EXPECT_EQ(profile.phases[0].compute_ns, 150'500'000);
  EXPECT_FALSE(profile.phases[0].communicates());
  EXPECT_EQ(profile.phases[1].bytes, 11'493'600u);
  EXPECT_EQ(profile.phases[1].alone_ns, 143'000'000);
  EXPECT_TRUE(profile.phases[1].communicates());
}

TEST(Profile, ThatIsNoProfileIsShown) {
  EXPECT_EQ(complaint("{phases"), "profile: not JSON: {phases");
  EXPECT_EQ(complaint("[]"), "profile: expected {\"phases\": [at least one phase]}, found []");
  EXPECT_EQ(complaint(R"({"phases":[]})"),
            R"(profile: expected {"phases": [at least one phase]}, found {"phases":[]})");
}

TEST(Profile, ComplaintsNamePhaseFieldAndWhatWasFound) {
  EXPECT_EQ(complaint_of_phase("3"), "expected an object, found 3");
  EXPECT_EQ(complaint_of_phase(R"({"compute_ms": 1})"), "expected compute_ms, or bytes and alone_ms; name is missing");
  EXPECT_EQ(complaint_of_phase(R"({"name": "a"})"), "expected compute_ms, or bytes and alone_ms; bytes is missing");
  EXPECT_EQ(complaint_of_phase(R"({"name": 1, "compute_ms": 1})"), "name: expected a string, found 1");
  EXPECT_EQ(complaint_of_phase(R"({"name": "a", "compute_ms": -1})"),
            "compute_ms: expected milliseconds from 0 to one hour, found -1");
  EXPECT_EQ(complaint_of_phase(R"({"name": "a", "bytes": 0, "alone_ms": 1})"),
            "bytes: expected a whole number from 1 to 2^50, found 0");
  EXPECT_EQ(complaint_of_phase(R"({"name": "a", "bytes": 1.5, "alone_ms": 1})"),
            "bytes: expected a whole number from 1 to 2^50, found 1.5");
  EXPECT_EQ(complaint_of_phase(R"({"name": "a", "bytes": 1, "alone_ms": 0})"), "alone_ms: expected more than 0");
  EXPECT_TRUE(
      complaint_of_phase(R"({"name": "a", "compute_ms": 1, "bytes": 1})").starts_with("unknown field \"bytes\""));
}

} // namespace
} // namespace replay
