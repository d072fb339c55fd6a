// SPDX-License-Identifier: Apache-2.0
#include "native/control/control.hpp"

#include "native/control/secret.hpp"
#include "native/errors.hpp"

#include <gtest/gtest.h>

namespace native {
namespace {

template <typename Parse> std::string refusal(const Parse &parse, const std::string &line) {
  try {
    parse(line);
  } catch (const Failure &error) {
    return error.what();
  }
  return "taken";
}

TEST(Start, IsAheadAndNotTooFar) {
  const Nanos soon_ns = monotonic_ns() + 60'000'000'000;
  EXPECT_EQ(parse_start("start " + std::to_string(soon_ns)), soon_ns);
  EXPECT_NE(refusal(parse_start, "start 0").find("us ago"), std::string::npos);
  EXPECT_NE(refusal(parse_start, "start 9223372036854775807").find("within a day"), std::string::npos);
  for (const std::string line : {"start", "start ", "start x", "start 5 ", "start -9223372036854775808",
                                 "start 99999999999999999999", "begin 5", ""})
    EXPECT_EQ(refusal(parse_start, line), "expected `start MONOTONIC_NS` on standard input, found `" + line + "`");
}

TEST(Secret, IsOfItsLengthAndPrintable) {
  EXPECT_EQ(parse_secret("secret open-sesame"), "open-sesame");
  EXPECT_EQ(parse_secret("secret " + std::string(64, 'x')), std::string(64, 'x'));
  const std::vector<std::string> wrong = {"secret 1234567",
                                          "secret " + std::string(65, 'x'),
                                          "secret open sesame",
                                          "secret open-sesam\xc3\xa9",
                                          "secret\topen-sesame",
                                          "open-sesame",
                                          ""};
  for (const std::string &line : wrong) {
    const std::string said = refusal(parse_secret, line);
    EXPECT_EQ(said.find("expected "), 0u) << line;
    EXPECT_EQ(said.find("sesam"), std::string::npos) << said;
  }
}

TEST(Secret, IsTheSameOrNot) {
  EXPECT_TRUE(same_bytes("open-sesame", "open-sesame"));
  EXPECT_FALSE(same_bytes("open-sesame", "open-sesamE"));
  EXPECT_FALSE(same_bytes("open-sesame", "open-sesam"));
}

} // namespace
} // namespace native
