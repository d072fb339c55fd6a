// SPDX-License-Identifier: Apache-2.0
#include "crossgen/common/load_file.hpp"

#include "native/errors.hpp"

#include <gtest/gtest.h>
#include <sstream>

namespace crossgen {
namespace {

const LoadHeader kHeader{1'000'000, {"s0", "s2"}, {"burst", "quiet"}, {{"seed", 7}}};

std::string write(const std::vector<Flow> &flows, const LoadHeader &header = kHeader) {
  std::ostringstream out;
  LoadWriter writer(out, header);
  for (const Flow &flow : flows)
    writer.add(flow);
  writer.finish();
  return out.str();
}

std::vector<Flow> read(const std::string &file) {
  std::istringstream in(file);
  LoadReader reader(in, "x.load");
  std::vector<Flow> flows;
  for (Flow flow; reader.next(flow);)
    flows.push_back(flow);
  return flows;
}

std::string refusal(const std::string &file) {
  try {
    read(file);
  } catch (const native::Failure &error) {
    return error.what();
  }
  return "taken";
}

TEST(LoadFile, GivesBackWhatWasWritten) {
  std::vector<Flow> flows;
  for (std::uint64_t i = 0; i < 10'000; i++)
    flows.push_back({i * 7, i + 1, static_cast<std::uint16_t>(i % 2), static_cast<std::uint16_t>(i % 3 == 0)});
  const std::string file = write(flows);
  EXPECT_EQ(read(file), flows);
  std::istringstream in(file);
  const LoadReader reader(in, "x.load");
  EXPECT_EQ(reader.header().destinations, kHeader.destinations);
  EXPECT_EQ(reader.header().classes, kHeader.classes);
  EXPECT_EQ(reader.header().duration_ns, kHeader.duration_ns);
  EXPECT_EQ(reader.header().plan, kHeader.plan);
}

TEST(LoadFile, MayBeEmpty) { EXPECT_EQ(read(write({})), std::vector<Flow>{}); }

TEST(LoadFile, IsRefusedWhereverItWasCut) {
  const std::string file = write({{1, 2, 0, 0}, {3, 4, 1, 1}});
  for (std::size_t length = 0; length < file.size(); length++)
    EXPECT_NE(refusal(file.substr(0, length)), "taken") << length;
  EXPECT_EQ(refusal(file.substr(0, file.size() - 1)), "x.load: cut short after 2 flows: expected a trailer");
}

TEST(LoadFile, IsRefusedWhicheverByteWasChanged) {
  const std::string file = write({{1, 2, 0, 0}, {3, 4, 1, 1}});
  for (std::size_t i = 0; i < file.size(); i++) {
    std::string damaged = file;
    damaged[i] = static_cast<char>(damaged[i] ^ 1);
    EXPECT_NE(refusal(damaged), "taken") << i;
  }
  EXPECT_EQ(refusal(file + "x"), "x.load: expected nothing after the trailer, found more");
}

TEST(LoadFile, FlowsThatCannotBeAreRefusedByTheirNumber) {
  EXPECT_EQ(refusal(write({{5, 1, 0, 0}, {4, 1, 0, 0}})),
            "x.load: flow 1: expected a start from 5 to 1000000 ns, found 4");
  EXPECT_EQ(refusal(write({{1'000'001, 1, 0, 0}})),
            "x.load: flow 0: expected a start from 0 to 1000000 ns, found 1000001");
  EXPECT_EQ(refusal(write({{0, 0, 0, 0}})), "x.load: flow 0: expected 1 to 2^48 bytes, found 0");
  EXPECT_EQ(refusal(write({{0, 1, 2, 0}})), "x.load: flow 0: expected a destination below 2, found 2");
  EXPECT_EQ(refusal(write({{0, 1, 0, 2}})), "x.load: flow 0: expected a class below 2, found 2");
}

TEST(LoadFile, AHeaderThatNestsWithoutEndIsRefused) {
  EXPECT_EQ(refusal("{\"format\":\"roundabout-load\",\"version\":1,\"plan\":" + std::string(500'000, '[') +
                    std::string(500'000, ']') + "}\n"),
            "x.load: expected JSON of at most 64 levels, found more");
}

TEST(LoadFile, OtherFilesAreNamedForWhatTheyAreNot) {
  EXPECT_EQ(refusal("GIF89a"),
            "x.load: expected a first line {\"format\": \"roundabout-load\", ...}, found something else");
  EXPECT_EQ(refusal("{\"format\":\"roundabout-load\",\"version\":2}\n"), "x.load: expected version 1, found 2");
  EXPECT_EQ(refusal("{\"format\":\"roundabout-load\",\"version\":1,\"duration_ns\":-1}\n"),
            "x.load: the first line is wrong: expected a whole number above 0 as duration_ns, found -1");
  const std::string head = "{\"format\":\"roundabout-load\",\"version\":1";
  EXPECT_EQ(refusal(head + "}\n"),
            "x.load: the first line is wrong: expected a whole number above 0 as duration_ns, found null");
  for (const std::string destinations : {"null", "5", "\"a\"", "{\"a\":1}", "[5]", "[\"a\",null]"})
    EXPECT_EQ(refusal(head + ",\"duration_ns\":1,\"destinations\":" + destinations + "}\n"),
              "x.load: the first line is wrong: expected a list of names as destinations, found " + destinations);
}

} // namespace
} // namespace crossgen
