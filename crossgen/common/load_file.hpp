// SPDX-License-Identifier: Apache-2.0
// The load file: flows in the order of their starts, in the format of docs/reference/load-file.md.
#pragma once

#include <cstdint>
#include <istream>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <vector>

namespace crossgen {

struct Flow {
  std::uint64_t start_ns = 0; // from the load's start
  std::uint64_t bytes = 0;
  std::uint16_t destination = 0;
  std::uint16_t flow_class = 0;

  bool operator==(const Flow &) const = default;
};

constexpr std::uint64_t kMaxFlowBytes = std::uint64_t{1} << 48;

struct LoadHeader {
  std::uint64_t duration_ns = 0;
  std::vector<std::string> destinations;
  std::vector<std::string> classes;
  nlohmann::ordered_json plan = nlohmann::ordered_json::object(); // how the load was made; sending ignores it
};

class LoadWriter {
public:
  LoadWriter(std::ostream &out, const LoadHeader &header);

  void add(const Flow &flow);

  // Writes the trailer. Throws native::Failure if any part of the file could not be written.
  void finish();

private:
  void put(std::uint64_t first, std::uint64_t second, std::uint32_t third);
  void flush();

  std::ostream &out_;
  std::string pending_;
  std::uint32_t checksum_ = 0;
  std::uint64_t flows_ = 0;
};

class LoadReader {
public:
  // Reads the header. Throws native::Failure, with the file's `name`, if it is not a load file.
  LoadReader(std::istream &in, std::string name);

  const LoadHeader &header() const { return header_; }

  // Reads the next flow. Returns false after the last flow, once the trailer is verified. Throws native::Failure if the
  // file is truncated or damaged.
  bool next(Flow &flow);

  std::uint64_t flows() const { return flows_; } // so far

private:
  void read_header();
  bool take(char *record);
  void check(const Flow &flow) const;
  void check_trailer(const char *record);
  [[noreturn]] void refuse(const std::string &why) const;

  std::istream &in_;
  std::string name_;
  LoadHeader header_;
  std::vector<char> buffer_;
  std::size_t taken_ = 0;
  std::size_t filled_ = 0;
  std::uint32_t checksum_ = 0;
  std::uint64_t flows_ = 0;
  std::uint64_t last_start_ns_ = 0;
  bool ended_ = false;
};

} // namespace crossgen
