// SPDX-License-Identifier: Apache-2.0
#include "crossgen/plan/sizes.hpp"

#include "crossgen/plan/random.hpp"
#include "native/errors.hpp"

#include <cmath>
#include <gtest/gtest.h>
#include <sstream>

namespace crossgen {
namespace {

std::string refusal(const std::string &text) {
  std::istringstream in(text);
  try {
    Sizes::parse(in, "sizes.txt", Between::kLinear);
  } catch (const native::Failure &error) {
    return error.what();
  }
  return "taken";
}

TEST(Sizes, WebSearchHasItsMeans) {
  EXPECT_DOUBLE_EQ(Sizes::web_search(Between::kLinear).mean_bytes(), 1'711'250);
  EXPECT_DOUBLE_EQ(Sizes::web_search(Between::kSteps).mean_bytes(), 2'434'900);
}

// The trace's requests have a mean of 1154.697 tokens and a standard deviation of 1108.794.
TEST(Sizes, PromptsHaveTheMomentsOfTheirTrace) {
  EXPECT_NEAR(Sizes::prompt_tokens().mean_bytes(), 1'154.697, .003 * 1'154.697);
  EXPECT_NEAR(Sizes::prompt_tokens().standard_deviation_bytes(), 1'108.794, .02 * 1'108.794);
  EXPECT_DOUBLE_EQ(Sizes::prompt_tokens().quantile_bytes(.5), 1'020);
}

TEST(Sizes, OneSizeDoesNotVary) {
  EXPECT_DOUBLE_EQ(Sizes::one(7).mean_bytes(), 7);
  EXPECT_DOUBLE_EQ(Sizes::one(7).standard_deviation_bytes(), 0);
  EXPECT_DOUBLE_EQ(Sizes::one(7).quantile_bytes(.3), 7);
}

TEST(Sizes, QuantilesAreLinearBetweenPoints) {
  const Sizes sizes = Sizes::web_search(Between::kLinear);
  EXPECT_DOUBLE_EQ(sizes.quantile_bytes(0), 0);
  EXPECT_DOUBLE_EQ(sizes.quantile_bytes(.15), 10'000);
  EXPECT_DOUBLE_EQ(sizes.quantile_bytes(.175), 15'000);
  EXPECT_DOUBLE_EQ(sizes.quantile_bytes(1), 30'000'000);
}

TEST(Sizes, StepsAreDrawnAsTheyAreListed) {
  const Sizes sizes = Sizes::web_search(Between::kSteps);
  EXPECT_DOUBLE_EQ(sizes.quantile_bytes(1e-16), 10'000);
  EXPECT_DOUBLE_EQ(sizes.quantile_bytes(.15), 10'000);
  EXPECT_DOUBLE_EQ(sizes.quantile_bytes(.150001), 20'000);
  EXPECT_DOUBLE_EQ(sizes.quantile_bytes(.97), 10'000'000);
  EXPECT_DOUBLE_EQ(sizes.quantile_bytes(.970001), 30'000'000);
}

TEST(Sizes, DrawsHaveTheMean) {
  for (const Between between : {Between::kLinear, Between::kSteps}) {
    const Sizes sizes = Sizes::web_search(between);
    Random random(1, 0);
    double sum = 0, squares = 0;
    constexpr int kDraws = 1'000'000;
    for (int i = 0; i < kDraws; i++) {
      const double bytes = sizes.quantile_bytes(random.uniform());
      sum += bytes;
      squares += bytes * bytes;
    }
    const double mean = sum / kDraws, deviation = std::sqrt(squares / kDraws - mean * mean);
    EXPECT_NEAR(mean, sizes.mean_bytes(), 3 * deviation / std::sqrt(kDraws));
  }
}

TEST(Sizes, ScaleWithAFactor) {
  EXPECT_DOUBLE_EQ(Sizes::web_search(Between::kLinear).scaled(.01).mean_bytes(), 17'112.5);
  EXPECT_DOUBLE_EQ(Sizes::web_search(Between::kSteps).scaled(.01).mean_bytes(), 24'349);
}

TEST(Sizes, AFileIsReadWithItsComments) {
  std::istringstream in("# bytes share\n100 0\n\n100 0.5 # half are 100\n300 1\n");
  const Sizes sizes = Sizes::parse(in, "sizes.txt", Between::kLinear);
  EXPECT_DOUBLE_EQ(sizes.mean_bytes(), 150);
  EXPECT_DOUBLE_EQ(sizes.quantile_bytes(.3), 100);
}

Sizes read(const std::string &text, Between between = Between::kLinear) {
  std::istringstream in(text);
  return Sizes::parse(in, "sizes.txt", between);
}

TEST(Sizes, EveryFormOfAFileIsTheSameDistribution) {
  for (const std::string text : {
           "0,0\n100,0.5\n300,1\n",
           "0\t0\n100\t50\n300\t100\n",
           "0;0\r\n100;50%\r\n300;100%\r\n",
           "\xef\xbb\xbfsize,cdf\r\n0 , 0\r\n1e2 , .5\r\n300 , 1\r\n",
           "# a comment\n\nBytes Probability # a heading\n0 0\n  100 50.0 # half\n300 1e2",
           "0 0\n0 0\n100 .5\n300 1\n300 1\n400 1\n",
           "0 0\n100 0.5\n300 0.9999999999999998\n",
           "\"size\",\"cdf\"\n\"0\",\"0\"\n\"100\",\"0.5\"\n\"300\",\"1\"\n",
           "0 0\n100 50\n300 100.00000000000001\n\n\n",
       }) {
    EXPECT_DOUBLE_EQ(read(text).mean_bytes(), .5 * 50 + .5 * 200) << text;
    EXPECT_DOUBLE_EQ(read(text, Between::kSteps).mean_bytes(), .5 * 100 + .5 * 300) << text;
    EXPECT_DOUBLE_EQ(read(text).quantile_bytes(.75), 200) << text;
    EXPECT_DOUBLE_EQ(read(text).quantile_bytes(1), 300) << text;
  }
}

TEST(Sizes, PercentIsSaid) {
  EXPECT_TRUE(read("0 0\n30 .5%\n300 100%\n").is_percent());
  EXPECT_TRUE(read("0 0\n300 100\n").is_percent());
  EXPECT_FALSE(read("0 0\n300 1\n").is_percent());
}

TEST(Sizes, PlateausHaveNoFlows) {
  const std::string text = "0 0\n50 0\n100 50\n200 50\n200 80\n400 80\n500 100\n600 100\n";
  const Sizes linear = read(text), steps = read(text, Between::kSteps);
  EXPECT_DOUBLE_EQ(linear.mean_bytes(), .5 * 75 + .3 * 200 + .2 * 450);
  EXPECT_DOUBLE_EQ(steps.mean_bytes(), .5 * 100 + .3 * 200 + .2 * 500);
  EXPECT_DOUBLE_EQ(linear.quantile_bytes(0), 50);
  EXPECT_DOUBLE_EQ(linear.quantile_bytes(.5), 100);
  EXPECT_DOUBLE_EQ(linear.quantile_bytes(.6), 200);
  EXPECT_DOUBLE_EQ(linear.quantile_bytes(.8), 200);
  EXPECT_DOUBLE_EQ(linear.quantile_bytes(.9), 450);
  EXPECT_DOUBLE_EQ(linear.quantile_bytes(1), 500);
}

TEST(Sizes, TheFirstSizeMayHaveAShareOfTheFlows) {
  const Sizes sizes = read("180 10\n1000 100\n", Between::kSteps);
  EXPECT_DOUBLE_EQ(sizes.quantile_bytes(.1), 180);
  EXPECT_DOUBLE_EQ(sizes.mean_bytes(), .1 * 180 + .9 * 1000);
  EXPECT_DOUBLE_EQ(read("1000 1\n", Between::kSteps).mean_bytes(), 1000);
}

// The distributions that HPCC's traffic generator carries (Li et al., SIGCOMM 2019), in percent. Means by hand: of each
// segment, its share times its middle.
TEST(Sizes, DistributionsInPercentHaveTheirMeans) {
  EXPECT_DOUBLE_EQ(read("0 0\n10000 15\n20000 20\n30000 30\n50000 40\n80000 53\n200000 60\n1000000 70\n2000000 80\n"
                        "5000000 90\n10000000 97\n30000000 100\n")
                       .mean_bytes(),
                   1'711'250);
  EXPECT_NEAR(read("0 0\n4000 22.93\n8000 69.21\n16000 80.61\n32000 90.47\n64000 93.53\n128000 96.77\n256000 97.53\n"
                   "2000000 100\n")
                  .mean_bytes(),
              458.6 + 2'776.8 + 1'368 + 2'366.4 + 1'468.8 + 3'110.4 + 1'459.2 + 27'861.6, 1e-6);
  EXPECT_NEAR(read("0 0\n100 1\n200 2\n300 5\n350 15\n400 20\n500 30\n600 40\n700 50\n1000 60\n2000 67\n7000 70\n30000 "
                   "72\n50000 82\n80000 87\n120000 90\n300000 95\n1000000 97.5\n2000000 99\n10000000 100\n")
                  .mean_bytes(),
              .5 + 1.5 + 7.5 + 32.5 + 18.75 + 45 + 55 + 65 + 85 + 105 + 135 + 370 + 4'000 + 3'250 + 3'000 + 10'500 +
                  16'250 + 22'500 + 60'000,
              1e-6);
}

TEST(Sizes, WhatIsNoDistributionIsRefusedByLineAndField) {
  EXPECT_EQ(refusal("0 0\n10 .5\n20 .4\n30 1\n"),
            "sizes.txt, line 3, cumulative probability: expected at least 0.5, the line before's, found `.4`");
  EXPECT_EQ(refusal("0 0\n20 .5\n10 1\n"),
            "sizes.txt, line 3, bytes: expected at least 20, the line before's, found `10`");
  EXPECT_EQ(refusal("10 .2\n30 1\n"),
            "sizes.txt, cumulative probability: expected 0 at the first size, found 0.2: begin with a line `0 0` if "
            "smaller sizes occur, or with `10 0` if none do");
  EXPECT_EQ(refusal("10 20\n30 100\n"),
            "sizes.txt, cumulative probability: expected 0 at the first size, found 20: begin with a line `0 0` if "
            "smaller sizes occur, or with `10 0` if none do");
  EXPECT_EQ(refusal("0 0\n30 .9\n\n\n"),
            "sizes.txt, line 2, cumulative probability: expected the last one to be 1, or 100 in percent, found 0.9");
  EXPECT_EQ(refusal("0 0\n30 50%\n40 1\n"),
            "sizes.txt, line 3, cumulative probability: expected at least 50, the line before's, found `1`");
  EXPECT_EQ(refusal("0 0\n30 .5%\n40 1\n"),
            "sizes.txt, line 3, cumulative probability: expected the last one to be 100 in percent, found 1");
  for (const std::string before : {"0.5", "1"})
    EXPECT_EQ(refusal("0 0\n30 " + before + "\n40 100\n"),
              "sizes.txt, line 3, cumulative probability: expected percent in all lines or in none, found 100 behind "
              "probabilities up to " +
                  before + ": write 1, or percent signs");
  EXPECT_EQ(refusal("0 0\n0.5 1\n"),
            "sizes.txt, line 2, bytes: expected 0, or at least 1 byte, found `0.5`: are the sizes in bytes?");
  for (const std::string line : {"30", "30 1 1", "1,000 0.5", "10;0,5", "\"1,000\" 0.5"})
    EXPECT_EQ(refusal("0 0\n" + line + "\n40 1\n"),
              "sizes.txt, line 2: expected two fields, `BYTES CUMULATIVE_PROBABILITY`, found `" + line + "`");
  for (const std::string word : {"nan", "-1", "1.5x", "inf", "1e999", "101", "0x1", "+1", "10000"})
    EXPECT_EQ(refusal("0 0\n30 " + word + "\n"),
              "sizes.txt, line 2, cumulative probability: expected a number from 0 to 1, or from 0 to 100 in percent, "
              "found `" +
                  word + "`");
  for (const std::string word : {"nan", "-1", "inf", "2e14", "bytes", "1K"})
    EXPECT_EQ(refusal("0 0\n" + word + " 1\n"),
              "sizes.txt, line 2, bytes: expected a number from 0 to 100000000000000, found `" + word + "`");
  EXPECT_EQ(refusal("size cdf\nsize cdf\n30 1\n"),
            "sizes.txt, line 2, bytes: expected a number from 0 to 100000000000000, found `size`");
  EXPECT_EQ(refusal("nan nan\n"), "sizes.txt, line 1, bytes: expected a number from 0 to 100000000000000, found `nan`");
  EXPECT_EQ(refusal("0 0\n0 1\n"), "sizes.txt, line 2, bytes: expected a size above 0, found none");
  EXPECT_EQ(refusal(std::string("0 0\n\0\xff 1\n", 9)),
            "sizes.txt, line 2, bytes: expected a number from 0 to 100000000000000, found `??`");
  for (const std::string &text : {std::string("\xff\xfe"
                                              "3\0 \0",
                                              6),
                                  std::string("\x1f\x8b\x08", 3), std::string("\0\0", 2)})
    EXPECT_EQ(refusal(text), "sizes.txt: expected UTF-8 text, found other data: decompress it, or save it as UTF-8");
  for (const std::string text : {"", "\n\n", "# nothing", "size cdf\n"})
    EXPECT_EQ(refusal(text), "sizes.txt: expected lines `BYTES CUMULATIVE_PROBABILITY`, found none");
}

// Random distributions, written in random forms: what is drawn has the mean of the piecewise-linear integral.
TEST(Sizes, RandomFilesHaveTheMeanOfTheirIntegral) {
  constexpr int kFiles = 500;
  Random random(7, 0);
  for (int file = 0; file < kFiles; file++) {
    const bool is_percent = random.below(2) == 1;
    const char separator = " \t,;"[random.below(4)];
    const auto points = 2 + random.below(30);
    std::ostringstream out;
    out.precision(17);
    double bytes = 0, cumulative = 0, mean = 0, steps_mean = 0;
    for (std::uint64_t i = 0; i < points; i++) {
      const double next_bytes = bytes + (random.below(4) == 0 ? 0 : random.uniform() * 1e6 + 1);
      double next = i == 0 ? 0 : cumulative + (random.below(4) == 0 ? 0 : random.uniform() * (1 - cumulative));
      if (i + 1 == points)
        next = 1;
      mean += (next - cumulative) * (bytes + next_bytes) / 2;
      steps_mean += (next - cumulative) * next_bytes;
      bytes = next_bytes;
      cumulative = next;
      out << bytes << separator << cumulative * (is_percent ? 100 : 1) << (random.below(2) == 0 ? "\n" : "\r\n\n");
    }
    if (bytes == 0)
      continue;
    const Sizes linear = read(out.str()), steps = read(out.str(), Between::kSteps);
    EXPECT_NEAR(linear.mean_bytes(), mean, 1e-9 * bytes) << out.str();
    EXPECT_NEAR(steps.mean_bytes(), steps_mean, 1e-9 * bytes) << out.str();
    double sum = 0;
    constexpr int kDraws = 10'000; // evenly spread over all probabilities: their mean is the integral
    for (int i = 0; i < kDraws; i++)
      sum += linear.quantile_bytes((i + .5) / kDraws);
    EXPECT_NEAR(sum / kDraws, mean, 2e-3 * bytes) << out.str();
  }
}

} // namespace
} // namespace crossgen
