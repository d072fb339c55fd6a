// SPDX-License-Identifier: Apache-2.0
#include "collectors/decoder/blocks.hpp"

#include "native/errors.hpp"

#include <cstring>
#include <nlohmann/json.hpp>
#include <span>
#include <unistd.h>
#include <utility>

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

constexpr std::uint16_t kSyn = 0x02, kAck = 0x10;

std::uint32_t ports_of(const Record &record) {
  return std::uint32_t{record.source_port} << 16 | record.destination_port;
}

// The priorities that were paused; null stands for whole links.
nlohmann::json as_json(std::span<const Pauses> all) {
  nlohmann::json rows = nlohmann::json::array();
  for (std::size_t priority = 0; priority < all.size(); priority++)
    if (const Pauses &pauses = all[priority]; pauses.frames > 0)
      rows.push_back({{"priority", priority < kPriorities ? nlohmann::json(priority) : nlohmann::json(nullptr)},
                      {"frames", pauses.frames},
                      {"resumes", pauses.resumes},
                      {"quanta", pauses.quanta}});
  return rows;
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
  const std::uint64_t ends = std::uint64_t{flow.ends} << 32 | (flow.protocol ^ flow.network << 9);
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
  count(packet);
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
  std::map<std::string, std::uint64_t> protocols;
  for (const auto &[protocol, packets] : totals_.protocols)
    protocols[describe(protocol)] = packets;
  const nlohmann::json said = {{"packets", totals_.packets},
                               {"truncated", count(Undecoded::truncated)},
                               {"not_ip", count(Undecoded::not_ip)},
                               {"malformed", count(Undecoded::malformed)},
                               {"undecoded_protocols", protocols},
                               {"pauses", as_json(totals_.pauses)},
                               {"flows", flow_count_},
                               {"unnumbered", totals_.unnumbered},
                               {"damage", damage},
                               {"skipped", skipped}};
  const std::string text = said.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  write_header(fd_, "DONE", 0, 0, text.size());
  write_all(fd_, text.data(), text.size());
}

void Blocks::count(const Packet &packet) {
  totals_.packets++;
  totals_.undecoded[static_cast<std::size_t>(packet.record.undecoded)]++;
  if (packet.undecoded.layer != Layer::none) {
    const bool is_counted = totals_.protocols.size() < kMaxProtocols || totals_.protocols.contains(packet.undecoded);
    totals_.protocols[is_counted ? packet.undecoded : Protocol{}]++;
  }
  if (packet.record.has(kPause))
    count_pauses(packet);
}

void Blocks::count_pauses(const Packet &packet) {
  const auto add = [this](std::size_t priority, std::uint16_t quanta) {
    Pauses &pauses = totals_.pauses[priority];
    pauses.frames++;
    pauses.resumes += quanta == 0;
    pauses.quanta += quanta;
  };
  if (!packet.record.has(kPausedPriorities))
    return add(kPriorities, packet.record.pause_quanta);
  for (std::size_t priority = 0; priority < kPriorities; priority++)
    if (packet.record.paused_priorities >> priority & 1)
      add(priority, packet.pause_quanta[priority]);
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
  const bool roce = record.has(kQueuePair);
  if (!roce && !record.has(kPorts))
    return;
  const FlowKey key{packet.source, packet.destination, roce ? record.destination_qp : ports_of(record),
                    (record.has(kProtocol) ? record.protocol : 0U) | (roce ? 1U << 8 : 0U),
                    record.has(kVni) ? record.vxlan_vni + 1 : 0U};
  const bool is_syn = record.has(kTcpFlags) && (record.tcp_flags & kSyn) != 0;
  if (is_syn)
    end_reused(key, record);
  auto found = flows_.find(key);
  if (found == flows_.end()) {
    if (flow_count_ == kMaxFlows) {
      totals_.unnumbered++;
      return;
    }
    const std::uint32_t initial_seq = record.tcp_seq - (is_syn ? 0 : 1);
    found = flows_.emplace(key, Flow{flow_count_++, initial_seq}).first;
  }
  record.flow = found->second.number;
  record.present |= kFlow;
}

// Ends the flows of a five-tuple that a new connection uses again: as in Wireshark, a SYN with another initial sequence
// number begins new flows. The client's begins them in both directions.
void Blocks::end_reused(const FlowKey &key, const Record &syn) {
  const auto found = flows_.find(key);
  if (found == flows_.end() || found->second.initial_seq == syn.tcp_seq)
    return;
  FlowKey answer = key;
  std::swap(answer.source, answer.destination);
  answer.ends = key.ends << 16 | key.ends >> 16;
  flows_.erase(found);
  if ((syn.tcp_flags & kAck) == 0)
    flows_.erase(answer);
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
