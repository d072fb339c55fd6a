// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace decoder {

constexpr std::size_t kFormatBytes = 8; // that tell one format from another

// The format of a file with this beginning, and the way to make a readable capture of it, for an error message.
std::string describe_format(std::span<const std::uint8_t> head);

} // namespace decoder
