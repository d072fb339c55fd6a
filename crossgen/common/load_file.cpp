// SPDX-License-Identifier: Apache-2.0
#include "crossgen/common/load_file.hpp"

#include "crossgen/common/little_endian.hpp"
#include "native/errors.hpp"
#include "native/json.hpp"

#include <algorithm>
#include <zlib.h>

namespace crossgen {
namespace {

using nlohmann::ordered_json;

constexpr const char *kFormat = "roundabout-load";
constexpr int kVersion = 1;
constexpr std::size_t kMaxHeaderBytes = 1 << 20;
constexpr std::size_t kMaxNames = 65'535;

constexpr std::size_t kRecordBytes = 20;
constexpr std::uint64_t kTrailerMark = ~std::uint64_t{0};
constexpr std::size_t kBlockBytes = 4096 * kRecordBytes;

std::uint32_t add_to_checksum(std::uint32_t checksum, const char *bytes, std::size_t length) {
  return static_cast<std::uint32_t>(crc32_z(checksum, reinterpret_cast<const Bytef *>(bytes), length));
}

std::uint64_t whole_number(const ordered_json &header, const char *key) {
  const ordered_json found = header.value(key, ordered_json());
  if (!found.is_number_unsigned() || found == 0)
    throw native::Failure(std::string("expected a whole number above 0 as ") + key + ", found " + found.dump());
  return found;
}

std::vector<std::string> names(const ordered_json &header, const char *key) {
  const ordered_json found = header.value(key, ordered_json());
  if (!found.is_array() ||
      !std::all_of(found.begin(), found.end(), [](const ordered_json &each) { return each.is_string(); }))
    throw native::Failure(std::string("expected a list of names as ") + key + ", found " + found.dump().substr(0, 80));
  if (found.empty() || found.size() > kMaxNames)
    throw native::Failure(std::string("expected 1 to ") + std::to_string(kMaxNames) + " " + key + ", found " +
                          std::to_string(found.size()));
  return found;
}

} // namespace

LoadWriter::LoadWriter(std::ostream &out, const LoadHeader &header) : out_(out) {
  const ordered_json line = {{"format", kFormat},
                             {"version", kVersion},
                             {"duration_ns", header.duration_ns},
                             {"destinations", header.destinations},
                             {"classes", header.classes},
                             {"plan", header.plan}};
  pending_ = line.dump() + '\n';
}

void LoadWriter::add(const Flow &flow) {
  put(flow.start_ns, flow.bytes, flow.destination | static_cast<std::uint32_t>(flow.flow_class) << 16);
  flows_++;
  if (pending_.size() >= kBlockBytes)
    flush();
}

void LoadWriter::finish() {
  put(kTrailerMark, flows_, 0);
  const std::size_t end = pending_.size() - sizeof(std::uint32_t);
  crossgen::put(pending_.data() + end, add_to_checksum(checksum_, pending_.data(), end));
  flush();
  out_.flush();
  if (!out_)
    throw native::system_failure("cannot write the load file");
}

void LoadWriter::put(std::uint64_t first, std::uint64_t second, std::uint32_t third) {
  char record[kRecordBytes];
  crossgen::put(record, first);
  crossgen::put(record + 8, second);
  crossgen::put(record + 16, third);
  pending_.append(record, sizeof record);
}

void LoadWriter::flush() {
  checksum_ = add_to_checksum(checksum_, pending_.data(), pending_.size());
  out_.write(pending_.data(), static_cast<std::streamsize>(pending_.size()));
  pending_.clear();
}

LoadReader::LoadReader(std::istream &in, std::string name) : in_(in), name_(std::move(name)), buffer_(kBlockBytes) {
  read_header();
}

void LoadReader::read_header() {
  std::string line;
  for (int c = 0; line.size() < kMaxHeaderBytes && (c = in_.get()) != std::istream::traits_type::eof() && c != '\n';)
    line.push_back(static_cast<char>(c));
  if (in_.bad())
    throw native::system_failure("cannot read " + name_);
  ordered_json header;
  try {
    header = native::parse_json<ordered_json>(line);
  } catch (const native::Failure &error) {
    refuse(error.what());
  }
  if (!header.is_object() || !header.contains("format") || header["format"] != kFormat)
    refuse("expected a first line {\"format\": \"" + std::string(kFormat) + "\", ...}, found something else");
  if (!header.contains("version") || header["version"] != kVersion)
    refuse("expected version " + std::to_string(kVersion) + ", found " +
           header.value("version", ordered_json()).dump());
  try {
    header_.duration_ns = whole_number(header, "duration_ns");
    header_.destinations = names(header, "destinations");
    header_.classes = names(header, "classes");
    header_.plan = header.value("plan", ordered_json::object());
    if (!header_.plan.is_object())
      throw native::Failure("expected an object as plan, found " + header_.plan.dump());
  } catch (const native::Failure &error) {
    refuse(std::string("the first line is wrong: ") + error.what());
  }
  checksum_ = add_to_checksum(0, (line + '\n').data(), line.size() + 1);
}

bool LoadReader::next(Flow &flow) {
  if (ended_)
    return false;
  char record[kRecordBytes];
  if (!take(record))
    refuse("cut short after " + std::to_string(flows_) + " flows: expected a trailer");
  flow = {get<std::uint64_t>(record), get<std::uint64_t>(record + 8), get<std::uint16_t>(record + 16),
          get<std::uint16_t>(record + 18)};
  if (flow.start_ns == kTrailerMark) {
    check_trailer(record);
    ended_ = true;
    return false;
  }
  checksum_ = add_to_checksum(checksum_, record, sizeof record);
  check(flow);
  last_start_ns_ = flow.start_ns;
  flows_++;
  return true;
}

bool LoadReader::take(char *record) {
  if (taken_ == filled_) {
    in_.read(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
    taken_ = 0;
    filled_ = static_cast<std::size_t>(in_.gcount());
  }
  if (filled_ - taken_ < kRecordBytes)
    return false;
  std::memcpy(record, buffer_.data() + taken_, kRecordBytes);
  taken_ += kRecordBytes;
  return true;
}

void LoadReader::check(const Flow &flow) const {
  const std::string who = "flow " + std::to_string(flows_) + ": expected ";
  if (flow.start_ns < last_start_ns_ || flow.start_ns > header_.duration_ns)
    refuse(who + "a start from " + std::to_string(last_start_ns_) + " to " + std::to_string(header_.duration_ns) +
           " ns, found " + std::to_string(flow.start_ns));
  if (flow.bytes == 0 || flow.bytes > kMaxFlowBytes)
    refuse(who + "1 to 2^48 bytes, found " + std::to_string(flow.bytes));
  if (flow.destination >= header_.destinations.size())
    refuse(who + "a destination below " + std::to_string(header_.destinations.size()) + ", found " +
           std::to_string(flow.destination));
  if (flow.flow_class >= header_.classes.size())
    refuse(who + "a class below " + std::to_string(header_.classes.size()) + ", found " +
           std::to_string(flow.flow_class));
}

void LoadReader::check_trailer(const char *record) {
  const auto flows = get<std::uint64_t>(record + 8);
  if (flows != flows_)
    refuse("expected the " + std::to_string(flows) + " flows that the trailer states, found " + std::to_string(flows_));
  const std::uint32_t checksum = add_to_checksum(checksum_, record, 16);
  if (checksum != get<std::uint32_t>(record + 16))
    refuse("damaged: expected checksum " + std::to_string(checksum) + ", found " +
           std::to_string(get<std::uint32_t>(record + 16)));
  if (taken_ != filled_ || in_.peek() != std::istream::traits_type::eof())
    refuse("expected nothing after the trailer, found more");
}

void LoadReader::refuse(const std::string &why) const { throw native::Failure(name_ + ": " + why); }

} // namespace crossgen
