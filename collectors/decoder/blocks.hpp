// SPDX-License-Identifier: Apache-2.0
// Writes packets in blocks, each with its own table of addresses, so that memory does not grow with the capture's
// length.
#pragma once

#include "collectors/decoder/columns.hpp"
#include "collectors/decoder/input/capture_file.hpp"
#include "collectors/decoder/packet.hpp"
#include "collectors/decoder/record.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace decoder {

struct AddressHash {
  std::size_t operator()(const Address &address) const noexcept;
};

// One direction of a conversation. For RoCE the queue pair replaces the ports, because the source port is only entropy.
struct FlowKey {
  Address source;
  Address destination;
  std::uint32_t ends = 0; // both ports, or the destination's queue pair
  std::uint32_t protocol = 0;
  std::uint32_t network = 0; // of VXLAN, plus 1; 0 outside

  bool operator==(const FlowKey &) const = default;
};

struct FlowHash {
  std::size_t operator()(const FlowKey &flow) const noexcept;
};

struct Flow {
  std::uint32_t number = 0;
  std::uint32_t initial_seq = 0; // TCP's initial sequence number
};

// Counts of pauses of one priority, or of whole links.
struct Pauses {
  std::uint64_t frames = 0;
  std::uint64_t resumes = 0; // frames with a time of 0, which end a pause
  std::uint64_t quanta = 0;  // the sum of times
};

// Counts over the packets of all files.
struct Totals {
  std::uint64_t packets = 0;
  std::array<std::uint64_t, kUndecodedKinds> undecoded{}; // indexed by Undecoded
  std::map<Protocol, std::uint64_t> protocols;            // packets by the protocol that was not decoded
  std::array<Pauses, kPriorities + 1> pauses{};           // by priority; the last is of whole links
  std::uint64_t unnumbered = 0;                           // packets of flows beyond the limit
};

class Blocks {
public:
  static constexpr std::size_t kRows = 122'880;
  static constexpr std::size_t kBatch = 1024; // records that stay in a CPU's cache
  static constexpr std::size_t kMaxFlows = 1 << 20;
  static constexpr std::size_t kMaxProtocols = 64; // bounds the totals of damaged captures; a sound one has a few

  // Writes to `fd`. A packet is outgoing if its source is in `own`, and incoming if its destination is.
  Blocks(int fd, const std::vector<Address> &own);

  // Decodes a frame, and writes a block once it is full.
  void add(const Frame &frame);

  // Writes the last block and the totals. `damage` has a text for each file that could not be read to its end, and
  // `skipped` one for each type of block that was not read.
  void finish(const std::vector<std::string> &damage, const std::vector<std::string> &skipped);

private:
  void set_direction(Packet &packet) const;
  void set_flow(Packet &packet);
  void end_reused(const FlowKey &key, const Record &syn);
  void count(const Packet &packet);
  void count_pauses(const Packet &packet);
  std::uint32_t index_of(const Address &address);
  void hand_over();
  void write_block();

  int fd_;
  std::unordered_set<Address, AddressHash> own_;
  std::unordered_map<FlowKey, Flow, FlowHash> flows_;
  std::uint32_t flow_count_ = 0; // including flows whose five-tuple was used again
  std::unordered_map<Address, std::uint32_t, AddressHash> address_index_;
  std::vector<Address> addresses_;
  std::vector<Record> records_;
  Columns columns_;
  Totals totals_;
};

} // namespace decoder
