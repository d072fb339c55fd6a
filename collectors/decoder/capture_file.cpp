// SPDX-License-Identifier: Apache-2.0
// Formats: draft-ietf-opsawg-pcap and draft-ietf-opsawg-pcapng.
#include "collectors/decoder/capture_file.hpp"

#include "native/errors.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <fcntl.h>
#include <limits>
#include <unistd.h>

namespace decoder {
namespace {

constexpr std::size_t kReadBytes = 1 << 20;
constexpr std::uint32_t kMaxFrameBytes = 1 << 18; // what capture tools agree on
constexpr std::uint32_t kMaxBlockBytes = 1 << 24; // pcapng: a frame and its options, or names, or secrets
constexpr std::size_t kMaxInterfaces = 1 << 16;
constexpr std::uint32_t kPcapMicro = 0xa1b2c3d4, kPcapNano = 0xa1b23c4d;
constexpr std::uint32_t kSection = 0x0a0d0d0a, kByteOrder = 0x1a2b3c4d;
constexpr std::uint32_t kInterface = 1, kSimplePacket = 3, kPacket = 6;
constexpr std::uint16_t kTimeResolution = 9, kTimeOffset = 14;
constexpr std::int64_t kNanosPerS = 1'000'000'000;

__extension__ using Wide = __int128;

// Ticks of a pcapng interface as UTC nanoseconds; nothing where these do not fit 64 bits.
std::optional<std::int64_t> as_ns(std::uint64_t ticks, std::uint64_t ticks_per_s, std::int64_t offset_s) {
  const Wide ns = Wide{ticks} * kNanosPerS / ticks_per_s + Wide{offset_s} * kNanosPerS;
  if (ns < 0 || ns > std::numeric_limits<std::int64_t>::max())
    return std::nullopt;
  return static_cast<std::int64_t>(ns);
}

// if_tsresol: a negative power of 10, or of 2 where the highest bit is set; 0 where that is finer than 64 bits hold.
std::uint64_t ticks_per_second(std::uint8_t resolution) {
  const unsigned power = resolution & 0x7f;
  if (resolution & 0x80)
    return power < 64 ? std::uint64_t{1} << power : 0;
  std::uint64_t ticks = 1;
  for (unsigned i = 0; i < power && ticks != 0; i++)
    ticks = ticks <= std::numeric_limits<std::uint64_t>::max() / 10 ? ticks * 10 : 0;
  return ticks;
}

std::size_t padded(std::size_t count) { return (count + 3) & ~std::size_t{3}; }

native::Fd open_capture(const std::string &path) {
  native::Fd fd(path == "-" ? dup(STDIN_FILENO) : open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd)
    throw native::system_failure("cannot read " + path);
  return fd;
}

} // namespace

CaptureFile::CaptureFile(const std::string &path) : path_(path), fd_(open_capture(path)), buffer_(kReadBytes) {
  const std::uint8_t *begin = fill(4) ? buffer_.data() + begin_ : nullptr;
  const std::uint32_t magic = begin ? u32(begin) : 0;
  const std::uint32_t other = __builtin_bswap32(magic);
  if (magic == kSection)
    is_pcapng_ = true;
  else if (magic == kPcapMicro || magic == kPcapNano)
    begin_pcap(magic);
  else if (other == kPcapMicro || other == kPcapNano) {
    swapped_ = true;
    begin_pcap(other);
  } else
    throw native::Failure(path + ": found no capture, expected a pcap or pcapng file");
}

bool CaptureFile::next(Frame &frame) {
  if (!damage_.empty())
    return false;
  return is_pcapng_ ? next_block(frame) : next_pcap(frame);
}

// The next `count` bytes of the file, used up; null where it ends before.
const std::uint8_t *CaptureFile::take(std::size_t count) {
  if (!fill(count))
    return nullptr;
  const std::uint8_t *taken = buffer_.data() + begin_;
  begin_ += count;
  used_bytes_ += count;
  return taken;
}

// Reads until `count` unused bytes are in the buffer; false where the file ends before.
bool CaptureFile::fill(std::size_t count) {
  if (end_ - begin_ >= count)
    return true;
  std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  if (buffer_.size() < count)
    buffer_.resize(count);
  while (end_ < count) {
    const ssize_t n = read(fd_.get(), buffer_.data() + end_, buffer_.size() - end_);
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      throw native::system_failure("cannot read " + path_);
    if (n == 0)
      return false;
    end_ += static_cast<std::size_t>(n);
  }
  return true;
}

bool CaptureFile::broken(const std::string &what) {
  damage_ = path_ + ": " + what + " at byte " + std::to_string(used_bytes_);
  return false;
}

std::uint16_t CaptureFile::u16(const std::uint8_t *at) const {
  std::uint16_t value;
  std::memcpy(&value, at, sizeof value);
  return swapped_ ? __builtin_bswap16(value) : value;
}

std::uint32_t CaptureFile::u32(const std::uint8_t *at) const {
  std::uint32_t value;
  std::memcpy(&value, at, sizeof value);
  return swapped_ ? __builtin_bswap32(value) : value;
}

std::uint64_t CaptureFile::u64(const std::uint8_t *at) const {
  std::uint64_t value;
  std::memcpy(&value, at, sizeof value);
  return swapped_ ? __builtin_bswap64(value) : value;
}

void CaptureFile::begin_pcap(std::uint32_t magic) {
  constexpr std::size_t kHeader = 24;
  constexpr std::uint32_t kLinkTypeBits = 0x03ffffff; // above them: whether frames end in a checksum
  nanoseconds_ = magic == kPcapNano;
  if (const std::uint8_t *header = take(kHeader))
    interfaces_.push_back({.link_type = u32(header + 20) & kLinkTypeBits});
  else
    broken("the file ends within its header");
}

bool CaptureFile::next_pcap(Frame &frame) {
  constexpr std::size_t kHeader = 16;
  const std::uint8_t *header = take(kHeader);
  if (!header)
    return end_ == begin_ ? false : broken("the file ends within a packet's header");
  const std::int64_t fraction = u32(header + 4);
  frame.time_ns = std::int64_t{u32(header)} * kNanosPerS + fraction * (nanoseconds_ ? 1 : 1000);
  const std::uint32_t captured = u32(header + 8);
  frame.frame_bytes = u32(header + 12);
  frame.link_type = interfaces_.front().link_type;
  if (captured > kMaxFrameBytes)
    return broken("a packet of " + std::to_string(captured) + " bytes, expected at most 262144,");
  const std::uint8_t *bytes = take(captured);
  if (!bytes)
    return broken("the file ends within a packet");
  frame.bytes = {bytes, captured};
  return true;
}

bool CaptureFile::next_block(Frame &frame) {
  while (fill(12)) {
    const std::uint32_t type = u32(buffer_.data() + begin_);
    if (type == kSection && !begin_section()) // its byte order is not known before
      return false;
    const std::uint32_t size = u32(buffer_.data() + begin_ + 4);
    if (size < 12 || size % 4 != 0 || size > kMaxBlockBytes)
      return broken("a block of " + std::to_string(size) + " bytes");
    const std::uint8_t *block = take(size);
    if (!block)
      return broken("the file ends within a block");
    const std::span<const std::uint8_t> body(block + 8, size - 12);
    if (type == kInterface && !interface_block(body))
      return false;
    if (type == kPacket)
      return packet_block(body, frame);
    if (type == kSimplePacket)
      return simple_packet_block(body, frame);
  }
  return end_ == begin_ ? false : broken("the file ends within a block");
}

bool CaptureFile::begin_section() {
  std::uint32_t order;
  std::memcpy(&order, buffer_.data() + begin_ + 8, sizeof order);
  if (order != kByteOrder && order != __builtin_bswap32(kByteOrder))
    return broken("a section without a byte order");
  swapped_ = order != kByteOrder;
  interfaces_.clear();
  return true;
}

bool CaptureFile::interface_block(std::span<const std::uint8_t> body) {
  if (body.size() < 8 || interfaces_.size() == kMaxInterfaces)
    return broken("an interface that cannot be read");
  Interface interface { .link_type = u16(body.data()), .snap_bytes = u32(body.data() + 4) };
  body = body.subspan(8);
  while (body.size() >= 4) {
    const std::uint16_t code = u16(body.data());
    const std::size_t size = u16(body.data() + 2);
    if (code == 0 || padded(size) > body.size() - 4)
      break;
    interface_option(code, body.subspan(4, size), interface);
    body = body.subspan(4 + padded(size));
  }
  interfaces_.push_back(interface);
  return true;
}

void CaptureFile::interface_option(std::uint16_t code, std::span<const std::uint8_t> value,
                                   Interface &interface) const {
  if (code == kTimeResolution && value.size() == 1)
    interface.ticks_per_s = ticks_per_second(value[0]);
  if (code == kTimeOffset && value.size() == 8)
    interface.offset_s = static_cast<std::int64_t>(u64(value.data()));
}

bool CaptureFile::packet_block(std::span<const std::uint8_t> body, Frame &frame) {
  constexpr std::size_t kHeader = 20;
  if (body.size() < kHeader)
    return broken("a packet that cannot be read");
  const std::uint32_t number = u32(body.data());
  const std::uint32_t captured = u32(body.data() + 12);
  if (number >= interfaces_.size() || captured > kMaxFrameBytes || captured > body.size() - kHeader)
    return broken("a packet that cannot be read");
  const Interface &interface = interfaces_[number];
  const std::uint64_t ticks = std::uint64_t{u32(body.data() + 4)} << 32 | u32(body.data() + 8);
  frame.time_ns = interface.ticks_per_s ? as_ns(ticks, interface.ticks_per_s, interface.offset_s) : std::nullopt;
  frame.link_type = interface.link_type;
  frame.frame_bytes = u32(body.data() + 16);
  frame.bytes = body.subspan(kHeader, captured);
  return true;
}

bool CaptureFile::simple_packet_block(std::span<const std::uint8_t> body, Frame &frame) {
  if (body.size() < 4 || interfaces_.empty())
    return broken("a packet that cannot be read");
  const Interface &interface = interfaces_.front();
  frame.time_ns = std::nullopt;
  frame.link_type = interface.link_type;
  frame.frame_bytes = u32(body.data());
  const std::size_t limit = interface.snap_bytes ? interface.snap_bytes : kMaxFrameBytes;
  const std::size_t captured = std::min<std::size_t>(frame.frame_bytes, limit);
  if (captured > body.size() - 4)
    return broken("a packet that cannot be read");
  frame.bytes = body.subspan(4, captured);
  return true;
}

} // namespace decoder
