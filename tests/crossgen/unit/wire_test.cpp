// SPDX-License-Identifier: Apache-2.0
#include "crossgen/common/wire.hpp"

#include "native/errors.hpp"

#include <algorithm>
#include <gtest/gtest.h>

namespace crossgen {
namespace {

void give_header(FlowReceiver &receiver, const FlowHeader &header, std::size_t step) {
  for (std::size_t i = 0; i < header.size(); i += step) {
    const auto room = receiver.header_room();
    ASSERT_EQ(room.size(), header.size() - i);
    std::copy_n(header.begin() + static_cast<std::ptrdiff_t>(i), step, room.begin());
    receiver.took_header(step);
  }
}

TEST(Wire, FlowsFollowEachOtherInAnyPieces) {
  FlowReceiver receiver;
  for (const std::size_t step : {16u, 1u, 4u}) {
    EXPECT_TRUE(receiver.between_flows());
    give_header(receiver, make_flow_header(step, 100), step);
    EXPECT_TRUE(receiver.header_room().empty());
    EXPECT_FALSE(receiver.took_body(99));
    EXPECT_EQ(receiver.body_left(), 1u);
    EXPECT_FALSE(receiver.between_flows());
    EXPECT_TRUE(receiver.took_body(1));
    EXPECT_EQ(static_cast<std::size_t>(receiver.acknowledgement()[0]), step);
  }
}

TEST(Wire, SizesThatCannotBeAreRefused) {
  for (const std::uint64_t bytes : {std::uint64_t{0}, kMaxFlowBytes + 1, ~std::uint64_t{0}}) {
    FlowReceiver receiver;
    const FlowHeader header = make_flow_header(1, bytes);
    std::copy(header.begin(), header.end(), receiver.header_room().begin());
    EXPECT_THROW(receiver.took_header(header.size()), native::Failure);
  }
}

TEST(Wire, AHelloHoldsTheWholeSecret) {
  const std::string longest(native::kMaxSecretBytes, 'x');
  EXPECT_EQ(make_hello(longest), "rbcross1" + longest);
  EXPECT_EQ(make_hello("open sesame").size(), kHelloBytes);
}

} // namespace
} // namespace crossgen
