// SPDX-License-Identifier: Apache-2.0
// Access to pinned eBPF maps by the bpf system call, without a library.
#pragma once

#include "native/errors.hpp"
#include "native/fd.hpp"

#include <cstdint>
#include <linux/bpf.h>
#include <string>
#include <sys/syscall.h>

namespace sampler {

inline int bpf(bpf_cmd command, bpf_attr &attributes) {
  return static_cast<int>(syscall(SYS_bpf, command, &attributes, sizeof attributes));
}

inline std::uint64_t address_of(const void *pointer) { return reinterpret_cast<std::uint64_t>(pointer); }

// Opens a pinned object. Throws native::Failure if it does not exist.
inline native::Fd open_pinned(const std::string &path) {
  bpf_attr get{};
  get.pathname = address_of(path.c_str());
  get.file_flags = BPF_F_RDONLY;
  native::Fd fd(bpf(BPF_OBJ_GET, get));
  if (!fd)
    throw native::system_failure("cannot open the eBPF map " + path);
  return fd;
}

// Opens a pinned map. Throws native::Failure if it does not exist, or if its sizes of keys and values differ.
template <typename Key, typename Value> native::Fd open_map(const std::string &path) {
  native::Fd fd = open_pinned(path);
  bpf_map_info info{};
  bpf_attr query{};
  query.info.bpf_fd = static_cast<std::uint32_t>(fd.get());
  query.info.info_len = sizeof info;
  query.info.info = address_of(&info);
  if (bpf(BPF_OBJ_GET_INFO_BY_FD, query) != 0)
    throw native::system_failure("cannot read about the eBPF map " + path);
  if (info.key_size != sizeof(Key) || info.value_size != sizeof(Value))
    throw native::Failure("the eBPF map " + path + " has keys of " + std::to_string(info.key_size) +
                          " bytes and values of " + std::to_string(info.value_size) + ", expected " +
                          std::to_string(sizeof(Key)) + " and " + std::to_string(sizeof(Value)) +
                          ": it is of another build");
  return fd;
}

// Returns true if `key` is in the map, and copies its value to `value`. Both have the map's sizes.
inline bool look_up_bytes(const native::Fd &map, const void *key, void *value) {
  bpf_attr lookup{};
  lookup.map_fd = static_cast<std::uint32_t>(map.get());
  lookup.key = address_of(key);
  lookup.value = address_of(value);
  return bpf(BPF_MAP_LOOKUP_ELEM, lookup) == 0;
}

template <typename Key, typename Value> bool look_up(const native::Fd &map, const Key &key, Value &value) {
  return look_up_bytes(map, &key, &value);
}

} // namespace sampler
