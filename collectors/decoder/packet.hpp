// SPDX-License-Identifier: Apache-2.0
// One frame, taken apart as far as its captured bytes go.
#pragma once

#include "collectors/decoder/record.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace decoder {

struct Packet {
  Record record; // all but its addresses, flow and direction, which depend on other packets
  Address source;
  Address destination;
};

// Takes `captured` apart, the beginning of a frame that had `frame_bytes` on a link of type `link_type`.
void parse_frame(std::uint32_t link_type, std::span<const std::uint8_t> captured, std::uint32_t frame_bytes,
                 Packet &packet);

} // namespace decoder
