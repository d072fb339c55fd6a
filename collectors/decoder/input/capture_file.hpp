// SPDX-License-Identifier: Apache-2.0
// Reads pcap and pcapng files, of either byte order, as a stream: no more is held than one block.
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

// A frame as it was captured; `bytes` are valid until the next one is asked for.
struct Frame {
  std::optional<std::int64_t> time_ns; // UTC; pcapng's simple packets have none
  std::uint32_t link_type = 0;
  std::uint32_t frame_bytes = 0;
  std::span<const std::uint8_t> bytes;
};

class CaptureFile {
public:
  // "-" is standard input. Throws native::Failure if it cannot be opened, or is no capture.
  explicit CaptureFile(const std::string &path);

  // False at the end, and where the file is damaged: nothing after that can be found.
  bool next(Frame &frame);

  // What is wrong with the file's end; empty for a whole file.
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
