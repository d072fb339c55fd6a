// SPDX-License-Identifier: Apache-2.0
// The parser of frames, which decodes as much as the captured bytes allow.
#pragma once

#include "collectors/decoder/protocols.hpp"
#include "collectors/decoder/record.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace decoder {

constexpr std::size_t kPriorities = 8; // of Ethernet

struct Packet {
  Record record; // all but its addresses, flow and direction, which depend on other packets
  Address source;
  Address destination;
  Protocol undecoded;                                    // the protocol at which decoding ended
  std::array<std::uint16_t, kPriorities> pause_quanta{}; // of a pause, by priority
};

// Decodes `captured`, the beginning of a frame of `frame_bytes` on a link of type `link_type`, into `packet`.
void parse_frame(std::uint32_t link_type, std::span<const std::uint8_t> captured, std::uint32_t frame_bytes,
                 Packet &packet);

} // namespace decoder
