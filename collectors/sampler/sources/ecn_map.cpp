// SPDX-License-Identifier: Apache-2.0
#include "collectors/sampler/sources/ecn_map.hpp"

#include "collectors/sampler/sources/bpf_map.hpp"

namespace sampler {

EcnMaps::EcnMaps(const std::string &folder)
    : ports_(open_map<std::uint32_t, ecn_port>(folder + "/ports")),
      sources_(open_map<ecn_source, std::uint64_t>(folder + "/sources")), keys_(ECN_MAX_SOURCES),
      values_(ECN_MAX_SOURCES) {}

std::optional<EcnCounts> EcnMaps::port(std::uint32_t ifindex) const {
  ecn_port port{};
  if (!look_up(ports_, ifindex, port))
    return std::nullopt;
  return EcnCounts{port.marks, port.ect_packets};
}

void EcnMaps::read_sources() {
  std::uint32_t position = 0;
  bpf_attr batch{};
  batch.batch.map_fd = static_cast<std::uint32_t>(sources_.get());
  batch.batch.out_batch = address_of(&position);
  batch.batch.keys = address_of(keys_.data());
  batch.batch.values = address_of(values_.data());
  batch.batch.count = ECN_MAX_SOURCES;
  // The kernel returns ENOENT if all entries fit into the batch.
  if (bpf(BPF_MAP_LOOKUP_BATCH, batch) != 0 && errno != ENOENT)
    throw native::system_failure("cannot read the marks by source");
  read_.clear();
  for (std::uint32_t i = 0; i < batch.batch.count; i++)
    read_.push_back({keys_[i], values_[i]});
}

} // namespace sampler
