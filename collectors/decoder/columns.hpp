// SPDX-License-Identifier: Apache-2.0
// Records as columns in Arrow's layout: for each column a bitmap of the known values, and the values.
#pragma once

#include "collectors/decoder/record.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace decoder {

class Columns {
public:
  // Appends records. Their number must be a multiple of 64, except in the last call before clear().
  void append(std::span<const Record> records);

  std::size_t rows() const { return rows_; }
  std::size_t bytes() const;

  // Calls `use` with the bitmap and the values of each column, in order; each is padded to a whole 64-bit word.
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

  static constexpr std::size_t kColumns = 30;

  std::array<Column, kColumns> columns_;
  std::size_t rows_ = 0;
  // While records are appended:
  std::span<const Record> records_;
  std::uint32_t present_ = 0; // fields that any of them has
  Column *next_ = nullptr;
};

} // namespace decoder
