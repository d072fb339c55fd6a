// SPDX-License-Identifier: Apache-2.0
#include "collectors/decoder/input/byte_source.hpp"

#include "native/errors.hpp"

#include <algorithm>
#include <fcntl.h>
#include <unistd.h>

namespace decoder {
namespace {

constexpr std::size_t kCompressedBytes = 1 << 18;
constexpr int kGzipOnly = 15 + 16; // zlib's window bits for the largest window, plus 16 for a gzip header

native::Fd open_file(const std::string &path) {
  native::Fd fd(path == "-" ? dup(STDIN_FILENO) : open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd)
    throw native::system_failure("cannot read " + path);
  return fd;
}

} // namespace

ByteSource::ByteSource(const std::string &path) : path_(path), fd_(open_file(path)), compressed_(kCompressedBytes) {
  stream_.next_in = compressed_.data();
  while (stream_.avail_in < 2 && refill()) {
  }
  is_gzip_ = stream_.avail_in >= 2 && compressed_[0] == 0x1f && compressed_[1] == 0x8b;
  if (is_gzip_ && inflateInit2(&stream_, kGzipOnly) != Z_OK)
    throw native::Failure("cannot read " + path + ": no memory is left to decompress it");
}

ByteSource::~ByteSource() {
  if (is_gzip_)
    inflateEnd(&stream_);
}

std::size_t ByteSource::read(std::span<std::uint8_t> room) {
  if (is_gzip_)
    return damage_.empty() ? inflate_some(room) : 0;
  if (stream_.avail_in == 0)
    return read_file(room);
  const std::size_t count = std::min<std::size_t>(room.size(), stream_.avail_in);
  std::copy_n(stream_.next_in, count, room.begin());
  stream_.next_in += count;
  stream_.avail_in -= static_cast<uInt>(count);
  return count;
}

std::size_t ByteSource::read_file(std::span<std::uint8_t> room) {
  while (true) {
    const ssize_t n = ::read(fd_.get(), room.data(), room.size());
    if (n >= 0)
      return static_cast<std::size_t>(n);
    if (errno != EINTR)
      throw native::system_failure("cannot read " + path_);
  }
}

// Reads more of the file behind the bytes that are not used yet; false at its end.
bool ByteSource::refill() {
  std::copy_n(stream_.next_in, stream_.avail_in, compressed_.data());
  stream_.next_in = compressed_.data();
  const std::size_t count = read_file(std::span(compressed_).subspan(stream_.avail_in));
  stream_.avail_in += static_cast<uInt>(count);
  return count > 0;
}

std::size_t ByteSource::inflate_some(std::span<std::uint8_t> room) {
  stream_.next_out = room.data();
  stream_.avail_out = static_cast<uInt>(room.size());
  while (stream_.avail_out == room.size()) {
    if (!is_within_member_ && !begin_member())
      break;
    if (stream_.avail_in == 0 && !refill()) {
      damage_ = "its gzip data ends early";
      break;
    }
    const int status = inflate(&stream_, Z_NO_FLUSH);
    is_within_member_ = status != Z_STREAM_END;
    if (status != Z_OK && status != Z_STREAM_END) {
      damage_ = std::string("its gzip data is damaged (") + (stream_.msg ? stream_.msg : zError(status)) + ")";
      break;
    }
  }
  return room.size() - stream_.avail_out;
}

// Skips the zeros that tapes and block devices pad files with; false if no other member follows.
bool ByteSource::begin_member() {
  while (stream_.avail_in > 0 || refill()) {
    if (*stream_.next_in != 0) {
      is_within_member_ = inflateReset(&stream_) == Z_OK;
      return is_within_member_;
    }
    stream_.next_in++;
    stream_.avail_in--;
  }
  return false;
}

} // namespace decoder
