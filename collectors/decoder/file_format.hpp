// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace decoder {

constexpr std::size_t kFormatBytes = 8; // that tell one format from another

// What a file that begins like this is, and how to make a capture of it that can be read: for an error message.
std::string describe_format(std::span<const std::uint8_t> head);

} // namespace decoder
