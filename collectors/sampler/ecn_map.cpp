// SPDX-License-Identifier: Apache-2.0
#include "collectors/sampler/ecn_map.hpp"

#include "native/errors.hpp"
#include "roundabout/testbeds/lab/ecn.h"

#include <linux/bpf.h>
#include <sys/syscall.h>

namespace sampler {
namespace {

int bpf(bpf_cmd command, bpf_attr &attributes) {
  return static_cast<int>(syscall(SYS_bpf, command, &attributes, sizeof attributes));
}

std::uint64_t address(const void *pointer) { return reinterpret_cast<std::uint64_t>(pointer); }

} // namespace

EcnMap::EcnMap(const std::string &path) {
  bpf_attr get{};
  get.pathname = address(path.c_str());
  get.file_flags = BPF_F_RDONLY;
  fd_ = native::Fd(bpf(BPF_OBJ_GET, get));
  if (!fd_)
    throw native::system_failure("cannot open the eBPF map " + path);

  bpf_map_info info{};
  bpf_attr ask{};
  ask.info.bpf_fd = static_cast<std::uint32_t>(fd_.get());
  ask.info.info_len = sizeof info;
  ask.info.info = address(&info);
  if (bpf(BPF_OBJ_GET_INFO_BY_FD, ask) != 0)
    throw native::system_failure("cannot read about the eBPF map " + path);
  if (info.key_size != sizeof(std::uint32_t) || info.value_size != sizeof(ecn_port))
    throw native::Failure("the eBPF map " + path + " has keys of " + std::to_string(info.key_size) +
                          " bytes and values of " + std::to_string(info.value_size) + ", expected 4 and " +
                          std::to_string(sizeof(ecn_port)) + ": the lab is of another build; bring it up again");
}

std::optional<EcnCounts> EcnMap::read(std::uint32_t ifindex) const {
  ecn_port port{};
  bpf_attr lookup{};
  lookup.map_fd = static_cast<std::uint32_t>(fd_.get());
  lookup.key = address(&ifindex);
  lookup.value = address(&port);
  if (bpf(BPF_MAP_LOOKUP_ELEM, lookup) != 0)
    return std::nullopt;
  return EcnCounts{port.marks, port.ect_packets};
}

} // namespace sampler
