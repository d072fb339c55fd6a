// SPDX-License-Identifier: Apache-2.0
// Records turned into columns, as Arrow holds them: for each a bitmap of the known values, and the values.
#pragma once

#include "collectors/decoder/record.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace decoder {

class Columns {
public:
  // Takes a whole number of 64 records, but for the last time.
  void append(std::span<const Record> records);

  std::size_t rows() const { return rows_; }
  std::size_t bytes() const;

  // Calls `use` with each bitmap and each column's values, in their order; each ends with a whole 64-bit word.
  template <typename Use> void each(const Use &use) const {
    for (const Column &column : columns_) {
      use(column.known);
      use(column.values);
    }
  }

  void clear();

private:
  using Bytes = std::vector<std::uint8_t>;
  struct Column {
    Bytes known;
    Bytes values;
  };

  template <typename T> void put(std::uint32_t needed, T Record::*field);
  template <typename Test> void put_bits(Bytes &bytes, const Test &test);

  static constexpr std::size_t kColumns = 24;

  std::array<Column, kColumns> columns_;
  std::size_t rows_ = 0;
  // While records are appended:
  std::span<const Record> records_;
  Column *next_ = nullptr;
};

} // namespace decoder
