// SPDX-License-Identifier: Apache-2.0
// Reads pcap and pcapng files of either byte order as a stream, and holds one block at most.
#pragma once

#include "collectors/decoder/input/byte_source.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace decoder {

// A captured frame; `bytes` are valid until the next call of CaptureFile::next().
struct Frame {
  std::optional<std::int64_t> time_ns; // UTC; pcapng's simple packets have none
  std::uint32_t link_type = 0;
  std::uint32_t frame_bytes = 0;
  std::span<const std::uint8_t> bytes;
};

class CaptureFile {
public:
  // Opens `path`; "-" is standard input. Throws native::Failure if it cannot be opened, or is not a capture.
  explicit CaptureFile(const std::string &path);

  // Reads the next frame. Returns false at the end of the file, and where the file is damaged.
  bool next(Frame &frame);

  // Describes the damage at which reading ended; empty for a sound file.
  const std::string &damage() const { return damage_; }

  // Names each type of pcapng block that may hold packets and was not read, with the number of blocks.
  std::vector<std::string> skipped() const;

private:
  struct Interface {
    std::uint32_t link_type = 0;
    std::uint32_t snap_bytes = 0; // 0: no limit
    std::uint64_t ticks_per_s = 1'000'000;
    std::int64_t offset_s = 0;
  };

  const std::uint8_t *take(std::size_t count);
  bool fill(std::size_t count);
  bool broken(const std::string &what);
  std::uint16_t u16(const std::uint8_t *at) const;
  std::uint32_t u32(const std::uint8_t *at) const;
  std::uint64_t u64(const std::uint8_t *at) const;

  void begin_pcap(std::uint32_t magic);
  bool next_pcap(Frame &frame);

  bool next_block(Frame &frame);
  bool begin_section();
  bool interface_block(std::span<const std::uint8_t> body);
  bool packet_block(std::span<const std::uint8_t> body, std::uint32_t interface_number, Frame &frame);
  bool simple_packet_block(std::span<const std::uint8_t> body, Frame &frame);
  bool interface_option(std::uint16_t code, std::span<const std::uint8_t> value, Interface &interface);
  bool skip_block(std::uint32_t type);

  std::string path_;
  ByteSource source_;
  std::vector<std::uint8_t> buffer_;
  std::size_t begin_ = 0, end_ = 0; // what is read of the file, and not used yet
  std::uint64_t used_bytes_ = 0;
  std::string damage_;
  bool is_pcapng_ = false;
  bool swapped_ = false;
  bool nanoseconds_ = false;
  std::vector<Interface> interfaces_;
  std::map<std::uint32_t, std::uint64_t> skipped_; // blocks by type
};

} // namespace decoder
