// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace decoder {

constexpr std::size_t kFormatBytes = 8; // the length of file beginnings that distinguish formats

// Returns, for an error message, the format of a file with this beginning, and how to convert it to a capture.
std::string describe_format(std::span<const std::uint8_t> head);

} // namespace decoder
