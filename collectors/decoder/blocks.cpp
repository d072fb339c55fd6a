// SPDX-License-Identifier: Apache-2.0
#include "collectors/decoder/blocks.hpp"

#include "native/errors.hpp"

#include <cstring>
#include <nlohmann/json.hpp>
#include <span>
#include <unistd.h>

namespace decoder {
namespace {

std::uint64_t mixed(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15U;
  return hash ^ hash >> 32;
}

std::uint64_t word(const std::uint8_t *at) {
  std::uint64_t value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

std::uint64_t mixed(std::uint64_t hash, const Address &address) {
  return mixed(mixed(hash, word(address.bytes.data())), word(address.bytes.data() + 8) ^ address.version);
}

void write_all(int fd, const void *data, std::size_t size) {
  const auto *at = static_cast<const std::uint8_t *>(data);
  while (size > 0) {
    const ssize_t n = write(fd, at, size);
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      throw native::system_failure("cannot write packets");
    at += n;
    size -= static_cast<std::size_t>(n);
  }
}

struct Header {
  std::array<char, 4> tag;
  std::uint32_t addresses;
  std::uint32_t rows;
  std::uint32_t body_bytes;
};

void write_header(int fd, std::string_view tag, std::size_t addresses, std::size_t rows, std::size_t body_bytes) {
  Header header{{},
                static_cast<std::uint32_t>(addresses),
                static_cast<std::uint32_t>(rows),
                static_cast<std::uint32_t>(body_bytes)};
  std::memcpy(header.tag.data(), tag.data(), header.tag.size());
  write_all(fd, &header, sizeof header);
}

} // namespace

std::size_t AddressHash::operator()(const Address &address) const noexcept { return mixed(0, address); }

std::size_t FlowHash::operator()(const FlowKey &flow) const noexcept {
  const std::uint64_t ends = std::uint64_t{flow.ends} << 32 | flow.protocol;
  return mixed(mixed(mixed(0, flow.source), flow.destination), ends);
}

Blocks::Blocks(int fd, const std::vector<Address> &own) : fd_(fd), own_(own.begin(), own.end()) {
  records_.reserve(kBatch);
}

void Blocks::add(const Frame &frame) {
  Packet packet;
  Record &record = packet.record;
  if (frame.time_ns) {
    record.time_ns = *frame.time_ns;
    record.present |= kTime;
  }
  record.frame_bytes = frame.frame_bytes;
  parse_frame(frame.link_type, frame.bytes, frame.frame_bytes, packet);
  if (record.undecoded == Undecoded::link_type && totals_.link_types.size() < kMaxLinkTypes)
    totals_.link_types.insert(frame.link_type);
  if (record.has(kSource))
    record.source = index_of(packet.source);
  if (record.has(kDestination))
    record.destination = index_of(packet.destination);
  if (record.has(kSource | kDestination)) {
    set_direction(packet);
    set_flow(packet);
  }
  if (record.undecoded != Undecoded::no)
    record.present |= kUndecoded;
  totals_.packets++;
  totals_.undecoded[static_cast<std::size_t>(record.undecoded)]++;
  records_.push_back(record);
  if (records_.size() == kBatch)
    hand_over();
  if (columns_.rows() == kRows)
    write_block();
}

void Blocks::finish(const std::vector<std::string> &damage, const std::vector<std::string> &skipped) {
  hand_over();
  if (columns_.rows() > 0)
    write_block();
  const auto count = [this](Undecoded why) { return totals_.undecoded[static_cast<std::size_t>(why)]; };
  const nlohmann::json said = {{"packets", totals_.packets},
                               {"truncated", count(Undecoded::truncated)},
                               {"not_ip", count(Undecoded::not_ip)},
                               {"malformed", count(Undecoded::malformed)},
                               {"link_type", count(Undecoded::link_type)},
                               {"link_types", totals_.link_types},
                               {"flows", flows_.size()},
                               {"unnumbered", totals_.unnumbered},
                               {"damage", damage},
                               {"skipped", skipped}};
  const std::string text = said.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  write_header(fd_, "DONE", 0, 0, text.size());
  write_all(fd_, text.data(), text.size());
}

void Blocks::set_direction(Packet &packet) const {
  const bool incoming = own_.contains(packet.destination);
  if (own_.contains(packet.source) == incoming)
    return; // passing by, or from ourselves to ourselves
  packet.record.direction = incoming ? Direction::in : Direction::out;
  packet.record.present |= kDirection;
}

void Blocks::set_flow(Packet &packet) {
  Record &record = packet.record;
  if (!record.has(kPorts))
    return;
  const bool roce = record.has(kQueuePair);
  const std::uint32_t ports = std::uint32_t{record.source_port} << 16 | record.destination_port;
  const std::uint32_t kind = record.protocol | (roce ? 1U << 8 : 0U);
  const FlowKey key{packet.source, packet.destination, roce ? record.destination_qp : ports, kind};
  auto found = flows_.find(key);
  if (found == flows_.end()) {
    if (flows_.size() == kMaxFlows) {
      totals_.unnumbered++;
      return;
    }
    found = flows_.emplace(key, static_cast<std::uint32_t>(flows_.size())).first;
  }
  record.flow = found->second;
  record.present |= kFlow;
}

std::uint32_t Blocks::index_of(const Address &address) {
  const auto [found, added] = address_index_.try_emplace(address, static_cast<std::uint32_t>(addresses_.size()));
  if (added)
    addresses_.push_back(address);
  return found->second;
}

void Blocks::hand_over() {
  columns_.append(records_);
  records_.clear();
}

void Blocks::write_block() {
  write_header(fd_, "PKTS", addresses_.size(), columns_.rows(), columns_.bytes());
  write_all(fd_, addresses_.data(), addresses_.size() * sizeof(Address));
  columns_.each([this](const std::vector<std::uint8_t> &words) { write_all(fd_, words.data(), words.size()); });
  addresses_.clear();
  address_index_.clear();
  columns_.clear();
}

} // namespace decoder
