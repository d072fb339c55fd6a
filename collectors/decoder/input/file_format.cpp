// SPDX-License-Identifier: Apache-2.0
#include "collectors/decoder/input/file_format.hpp"

#include <algorithm>
#include <string_view>

namespace decoder {
namespace {

using namespace std::string_view_literals;

struct Format {
  std::string_view magic;
  std::string_view name;
  std::string_view remedy;
};

constexpr std::string_view kConvert = "convert it first: `editcap -F pcapng FILE NEW`";

constexpr Format kFormats[] = {
    {"\x1f\x8b"sv, "gzip data within gzip data", "decompress it once first: `gzip -d`"},
    {"\x28\xb5\x2f\xfd"sv, "compressed by zstd", "decompress it first: `zstd -d`"},
    {"\x04\x22\x4d\x18"sv, "compressed by LZ4", "decompress it first: `lz4 -d`"},
    {"\x02\x21\x4c\x18"sv, "compressed by LZ4", "decompress it first: `lz4 -d`"},
    {"\xfd"
     "7zXZ"sv,
     "compressed by xz", "decompress it first: `xz -d`"},
    {"BZh"sv, "compressed by bzip2", "decompress it first: `bzip2 -d`"},
    {"\x1f\x9d"sv, "compressed by compress", "decompress it first: `gzip -d`"},
    {"PK\x03\x04"sv, "a zip archive", "extract its captures first: `unzip`"},
    {"7z\xbc\xaf\x27\x1c"sv, "a 7-Zip archive", "extract its captures first: `7z x`"},
    {"\xa1\xb2\xcd\x34"sv, "a capture in a modified pcap format", kConvert},
    {"\x34\xcd\xb2\xa1"sv, "a capture in a modified pcap format", kConvert},
    {"snoop\0\0\0"sv, "a capture of snoop", kConvert},
    {"GMBU"sv, "a capture of Network Monitor", kConvert},
    {"RTSS"sv, "a capture of Network Monitor", kConvert},
};

} // namespace

std::string describe_format(std::span<const std::uint8_t> head) {
  if (head.empty())
    return "the file is empty, expected a pcap or pcapng file, which gzip may have compressed";
  const std::string_view text(reinterpret_cast<const char *>(head.data()), head.size());
  const auto *found = std::find_if(std::begin(kFormats), std::end(kFormats),
                                   [text](const Format &each) { return text.starts_with(each.magic); });
  if (found == std::end(kFormats))
    return "found no capture, expected a pcap or pcapng file, which gzip may have compressed";
  return "the file is " + std::string(found->name) + ", which is not read: " + std::string(found->remedy);
}

} // namespace decoder
