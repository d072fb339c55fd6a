// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "native/fd.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>
#include <zlib.h>

namespace decoder {

// The bytes of a file, decompressed if the file is gzip data (RFC 1952) of one or more members.
class ByteSource {
public:
  // "-" is standard input. Throws native::Failure if the file cannot be opened or read.
  explicit ByteSource(const std::string &path);
  ~ByteSource();
  ByteSource(const ByteSource &) = delete;
  ByteSource &operator=(const ByteSource &) = delete;

  // Fills `room` from its beginning and returns the number of bytes. Returns 0 only at the end.
  std::size_t read(std::span<std::uint8_t> room);

  bool is_gzip() const { return is_gzip_; }

  // Describes the fault of the gzip data; empty if there is none.
  const std::string &damage() const { return damage_; }

private:
  std::size_t read_file(std::span<std::uint8_t> room);
  std::size_t inflate_some(std::span<std::uint8_t> room);
  bool refill();
  bool begin_member();

  std::string path_;
  native::Fd fd_;
  std::vector<std::uint8_t> compressed_;
  z_stream stream_{};
  bool is_gzip_ = false;
  bool is_within_member_ = true;
  std::string damage_;
};

} // namespace decoder
