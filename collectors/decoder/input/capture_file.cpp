// SPDX-License-Identifier: Apache-2.0
// Formats: draft-ietf-opsawg-pcap and draft-ietf-opsawg-pcapng.
#include "collectors/decoder/input/capture_file.hpp"

#include "collectors/decoder/input/file_format.hpp"
#include "collectors/decoder/protocols.hpp"
#include "native/errors.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <limits>
#include <string_view>

namespace decoder {
namespace {

constexpr std::size_t kReadBytes = 1 << 20;
constexpr std::uint32_t kMaxFrameBytes = 1 << 18; // what capture tools agree on
constexpr std::uint32_t kMaxBlockBytes = 1 << 24; // pcapng: a frame and its options, or names, or secrets
constexpr std::size_t kMaxInterfaces = 1 << 16;
constexpr std::uint32_t kPcapMicro = 0xa1b2c3d4, kPcapNano = 0xa1b23c4d;
constexpr std::uint32_t kSection = 0x0a0d0d0a, kByteOrder = 0x1a2b3c4d;
constexpr std::uint32_t kInterface = 1, kObsoletePacket = 2, kSimplePacket = 3, kPacket = 6;
constexpr std::size_t kMaxSkippedTypes = 16; // bounds the memory that a damaged file takes
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

// Names, interface statistics, the systemd journal, decryption secrets and custom blocks say more about a capture, and
// hold no packets.
bool never_holds_packets(std::uint32_t type) {
  constexpr std::array<std::uint32_t, 6> kTypes = {4, 5, 9, 10, 0xbad, 0x40000bad};
  return std::find(kTypes.begin(), kTypes.end(), type) != kTypes.end();
}

// The registered name of a block type, in parentheses; empty for one without a name.
std::string name_of_block(std::uint32_t type) {
  static const std::map<std::uint32_t, std::string_view> kNames = {
      {0x007, "IRIG timestamp or socket aggregation"},
      {0x008, "ARINC 429 in AFDX"},
      {0x101, "Hone machine"},
      {0x102, "Hone connection"},
      {0x201, "Sysdig machine"},
      {0x202, "Sysdig process, version 1"},
      {0x203, "Sysdig file descriptors"},
      {0x204, "Sysdig event"},
      {0x205, "Sysdig interfaces"},
      {0x206, "Sysdig users"},
      {0x207, "Sysdig process, version 2"},
      {0x208, "Sysdig event with flags"},
      {0x216, "Sysdig event with flags, version 2"},
      {0x221, "Sysdig event with flags, version 2, large"},
  };
  const auto found = kNames.find(type);
  if (found != kNames.end())
    return " (" + std::string(found->second) + ")";
  return type >> 31 ? " (for local use)" : "";
}

} // namespace

CaptureFile::CaptureFile(const std::string &path) : path_(path), source_(path), buffer_(kReadBytes) {
  fill(kFormatBytes);
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
  } else if (!damage_.empty())
    throw native::Failure(damage_);
  else
    throw native::Failure(path + ": " + describe_format({buffer_.data(), std::min(end_, kFormatBytes)}));
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
    const std::size_t count_read = source_.read(std::span(buffer_).subspan(end_));
    if (count_read == 0)
      return source_.damage().empty() ? false : broken(source_.damage());
    end_ += count_read;
  }
  return true;
}

// Keeps the first cause.
bool CaptureFile::broken(const std::string &what) {
  const char *of = source_.is_gzip() ? " of the decompressed capture" : "";
  if (damage_.empty())
    damage_ = path_ + ": " + what + " at byte " + std::to_string(used_bytes_) + of;
  return false;
}

std::vector<std::string> CaptureFile::skipped() const {
  std::vector<std::string> texts;
  for (const auto &[type, blocks] : skipped_)
    texts.push_back(path_ + ": blocks of type " + in_hexadecimal(type) + name_of_block(type) + " were skipped (" +
                    std::to_string(blocks) + " in all): packets are read from blocks of types 1, 2, 3 and 6 only");
  return texts;
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
  const std::uint8_t *header = take(kHeader);
  if (!header) {
    broken("the file ends within its header");
    return;
  }
  const unsigned major = u16(header + 4), minor = u16(header + 6);
  if (major != 2 || minor < 4) // before 2.4, a packet's two lengths may be in the other order
    throw native::Failure(path_ + ": found pcap version " + std::to_string(major) + "." + std::to_string(minor) +
                          ", expected 2.4: convert it first: `editcap -F pcapng FILE NEW`");
  interfaces_.push_back({.link_type = u32(header + 20) & kLinkTypeBits});
}

bool CaptureFile::next_pcap(Frame &frame) {
  constexpr std::size_t kHeader = 16;
  const std::uint8_t *header = take(kHeader);
  if (!header)
    return end_ == begin_ ? false : broken("the file ends within a packet's header");
  const std::uint32_t seconds = u32(header), fraction = u32(header + 4);
  const std::uint32_t captured = u32(header + 8);
  frame.frame_bytes = u32(header + 12);
  frame.link_type = interfaces_.front().link_type;
  if (std::all_of(header, header + kHeader, [](std::uint8_t byte) { return byte == 0; }))
    return broken("zeros in the place of a packet");
  if ((seconds == kPcapMicro || seconds == kPcapNano) && captured == 0) // its time zone, which nothing sets
    return broken("another capture begins in the middle of this one: give each as a file of its own; it ends");
  const std::uint32_t per_second = nanoseconds_ ? kNanosPerS : kNanosPerS / 1000;
  if (fraction > per_second) // some writers round up to the whole second
    return broken("a packet with " + std::to_string(fraction) + (nanoseconds_ ? " ns" : " us") +
                  " after its second, expected at most " + std::to_string(per_second) + ",");
  frame.time_ns = std::int64_t{seconds} * kNanosPerS + std::int64_t{fraction} * (kNanosPerS / per_second);
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
    if (!fill(size))
      return broken("the file ends within a block");
    if (const std::uint32_t again = u32(buffer_.data() + begin_ + size - 4); again != size)
      return broken("a block that begins with a length of " + std::to_string(size) + " bytes and ends with one of " +
                    std::to_string(again) + ",");
    const std::uint8_t *block = take(size);
    const std::span<const std::uint8_t> body(block + 8, size - 12);
    switch (type) {
    case kInterface:
      if (!interface_block(body))
        return false;
      break;
    case kPacket:
      return packet_block(body, body.size() >= 4 ? u32(body.data()) : 0, frame);
    case kObsoletePacket: // the upper half counts dropped packets
      return packet_block(body, body.size() >= 2 ? u16(body.data()) : 0, frame);
    case kSimplePacket:
      return simple_packet_block(body, frame);
    default:
      if (type != kSection && !skip_block(type))
        return false;
    }
  }
  return end_ == begin_ ? false : broken("the file ends within a block");
}

bool CaptureFile::skip_block(std::uint32_t type) {
  if (never_holds_packets(type))
    return true;
  if (skipped_.size() == kMaxSkippedTypes && !skipped_.contains(type))
    return broken("blocks of more than " + std::to_string(kMaxSkippedTypes) + " unknown types");
  skipped_[type]++;
  return true;
}

bool CaptureFile::begin_section() {
  if (!fill(16))
    return broken("the file ends within a block");
  const std::uint8_t *section = buffer_.data() + begin_;
  std::uint32_t order;
  std::memcpy(&order, section + 8, sizeof order);
  if (order != kByteOrder && order != __builtin_bswap32(kByteOrder))
    return broken("a section without a byte order");
  swapped_ = order != kByteOrder;
  if (const std::uint16_t version = u16(section + 12); version != 1)
    return broken("a section of pcapng version " + std::to_string(version) + ", expected version 1,");
  interfaces_.clear();
  return true;
}

bool CaptureFile::interface_block(std::span<const std::uint8_t> body) {
  if (body.size() < 8)
    return broken("a description of an interface that is too short");
  if (interfaces_.size() == kMaxInterfaces)
    return broken("more than " + std::to_string(kMaxInterfaces) + " interfaces");
  Interface interface { .link_type = u16(body.data()), .snap_bytes = u32(body.data() + 4) };
  body = body.subspan(8);
  while (body.size() >= 4) {
    const std::uint16_t code = u16(body.data());
    const std::size_t size = u16(body.data() + 2);
    if (code == 0)
      break;
    if (padded(size) > body.size() - 4)
      return broken("an interface with an option that is longer than its block");
    if (!interface_option(code, body.subspan(4, size), interface))
      return false;
    body = body.subspan(4 + padded(size));
  }
  interfaces_.push_back(interface);
  return true;
}

bool CaptureFile::interface_option(std::uint16_t code, std::span<const std::uint8_t> value, Interface &interface) {
  if (code == kTimeResolution) {
    if (value.size() != 1)
      return broken("an interface whose if_tsresol has " + std::to_string(value.size()) + " bytes, expected 1,");
    interface.ticks_per_s = ticks_per_second(value[0]);
  }
  if (code == kTimeOffset) {
    if (value.size() != 8)
      return broken("an interface whose if_tsoffset has " + std::to_string(value.size()) + " bytes, expected 8,");
    interface.offset_s = static_cast<std::int64_t>(u64(value.data()));
  }
  return true;
}

// The obsolete Packet Block differs from the Enhanced one only in where the interface's number is.
bool CaptureFile::packet_block(std::span<const std::uint8_t> body, std::uint32_t interface_number, Frame &frame) {
  constexpr std::size_t kHeader = 20;
  if (body.size() < kHeader)
    return broken("a packet whose block is too short");
  const std::uint32_t captured = u32(body.data() + 12);
  if (interface_number >= interfaces_.size())
    return broken("a packet of interface " + std::to_string(interface_number) + ", expected one of the " +
                  std::to_string(interfaces_.size()) + " that the section describes,");
  if (captured > kMaxFrameBytes || captured > body.size() - kHeader)
    return broken("a packet of " + std::to_string(captured) + " bytes, expected no more than its block or 262144,");
  const Interface &interface = interfaces_[interface_number];
  const std::uint64_t ticks = std::uint64_t{u32(body.data() + 4)} << 32 | u32(body.data() + 8);
  frame.time_ns = interface.ticks_per_s ? as_ns(ticks, interface.ticks_per_s, interface.offset_s) : std::nullopt;
  frame.link_type = interface.link_type;
  frame.frame_bytes = u32(body.data() + 16);
  frame.bytes = body.subspan(kHeader, captured);
  return true;
}

bool CaptureFile::simple_packet_block(std::span<const std::uint8_t> body, Frame &frame) {
  if (body.size() < 4)
    return broken("a packet whose block is too short");
  if (interfaces_.empty())
    return broken("a packet in a section that describes no interface");
  const Interface &interface = interfaces_.front();
  frame.time_ns = std::nullopt;
  frame.link_type = interface.link_type;
  frame.frame_bytes = u32(body.data());
  const std::size_t limit = interface.snap_bytes ? interface.snap_bytes : kMaxFrameBytes;
  const std::size_t captured = std::min<std::size_t>(frame.frame_bytes, limit);
  if (captured > body.size() - 4)
    return broken("a packet of " + std::to_string(captured) + " bytes, expected no more than its block,");
  frame.bytes = body.subspan(4, captured);
  return true;
}

} // namespace decoder
