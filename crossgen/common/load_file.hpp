// SPDX-License-Identifier: Apache-2.0
// A load: flows in the order of their starts, as docs/reference/load-file.md describes the file.
#pragma once

#include <cstdint>
#include <istream>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <vector>

namespace crossgen {

struct Flow {
  std::uint64_t start_ns = 0; // after the load's start
  std::uint64_t bytes = 0;
  std::uint16_t destination = 0;
  std::uint16_t flow_class = 0;

  bool operator==(const Flow &) const = default;
};

constexpr std::uint64_t kMostFlowBytes = std::uint64_t{1} << 48;

struct LoadHeader {
  std::uint64_t duration_ns = 0;
  std::vector<std::string> destinations;
  std::vector<std::string> classes;
  nlohmann::ordered_json plan = nlohmann::ordered_json::object(); // how it was made; nobody sends by it
};

class LoadWriter {
public:
  LoadWriter(std::ostream &out, const LoadHeader &header);

  void add(const Flow &flow);

  // Writes the trailer. Throws native::Failure if anything was not written.
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
  // Throws native::Failure, calling the file `name`, where it is not a load file.
  LoadReader(std::istream &in, std::string name);

  const LoadHeader &header() const { return header_; }

  // The next flow; false after the last one, once the trailer was found right. Throws native::Failure if the file is
  // cut short or damaged.
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
