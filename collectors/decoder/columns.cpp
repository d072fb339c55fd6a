// SPDX-License-Identifier: Apache-2.0
#include "collectors/decoder/columns.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <numeric>

namespace decoder {
namespace {

// Makes room for `size` bytes more, in whole words.
std::uint8_t *extend(std::vector<std::uint8_t> &bytes, std::size_t size) {
  const std::size_t before = bytes.size();
  bytes.resize(before + (size + 7) / 8 * 8);
  return bytes.data() + before;
}

} // namespace

template <typename T> void Columns::put(std::uint32_t needed, T Record::*field) {
  Column &column = *next_++;
  std::uint8_t *at = extend(column.values, records_.size() * sizeof(T));
  if ((present_ & needed) != needed) { // as most columns are
    extend(column.known, (records_.size() + 7) / 8);
    return;
  }
  put_bits(column.known, [needed](const Record &record) { return record.has(needed); });
  for (const Record &record : records_) {
    std::memcpy(at, &(record.*field), sizeof(T));
    at += sizeof(T);
  }
}

// One bit a record, the lowest first.
template <typename Test> void Columns::put_bits(Bytes &bytes, const Test &test) {
  std::uint8_t *at = extend(bytes, (records_.size() + 7) / 8);
  for (std::size_t begin = 0; begin < records_.size(); begin += 8) {
    unsigned bits = 0;
    for (std::size_t i = 0; i < std::min<std::size_t>(8, records_.size() - begin); i++)
      bits |= unsigned{test(records_[begin + i])} << i;
    *at++ = static_cast<std::uint8_t>(bits);
  }
}

// The columns of the table `packets` (roundabout/store/schemas.py), in its order.
void Columns::append(std::span<const Record> records) {
  constexpr std::uint8_t kCnp = 0x81;
  records_ = records;
  next_ = columns_.data();
  present_ = std::accumulate(records.begin(), records.end(), std::uint32_t{0},
                             [](std::uint32_t fields, const Record &record) { return fields | record.present; });
  put(kTime, &Record::time_ns);
  put(kDirection, &Record::direction);
  put(kAlways, &Record::frame_bytes);
  put(kVlan, &Record::vlan_id);
  put(kVlan, &Record::vlan_pcp);
  put(kInnerVlan, &Record::inner_vlan_id);
  put(kVersion, &Record::ip_version);
  put(kSource, &Record::source);
  put(kDestination, &Record::destination);
  put(kProtocol, &Record::protocol);
  put(kPorts, &Record::source_port);
  put(kPorts, &Record::destination_port);
  put(kFragment, &Record::fragment_offset);
  put(kPayload, &Record::payload_bytes);
  put(kTrafficClass, &Record::dscp);
  put(kTrafficClass, &Record::ecn);
  put(kTcpFlags, &Record::tcp_flags);
  put(kTcpSeq, &Record::tcp_seq);
  put(kTcpAck, &Record::tcp_ack);
  put(kFlow, &Record::flow);
  put(kOpcode, &Record::opcode);
  put_bits(next_->known, [](const Record &record) { return record.has(kOpcode); });
  put_bits(next_->values, [](const Record &record) { return record.opcode == kCnp; });
  next_++;
  put(kQueuePair, &Record::destination_qp);
  put(kPsn, &Record::psn);
  put(kVni, &Record::vxlan_vni);
  put(kOuterTrafficClass, &Record::outer_dscp);
  put(kOuterTrafficClass, &Record::outer_ecn);
  put(kPausedPriorities, &Record::paused_priorities);
  put(kPause, &Record::pause_quanta);
  put(kUndecoded, &Record::undecoded);
  assert(next_ == columns_.data() + columns_.size());
  rows_ += records.size();
}

std::size_t Columns::bytes() const {
  std::size_t sum = 0;
  each([&sum](const Bytes &words) { sum += words.size(); });
  return sum;
}

void Columns::clear() {
  for (Column &column : columns_) {
    column.known.clear();
    column.values.clear();
  }
  rows_ = 0;
}

} // namespace decoder
