// SPDX-License-Identifier: Apache-2.0
// Units and widths of counters by their names, because kernels do not report them.
#pragma once

#include "collectors/sampler/group.hpp"

#include <string_view>

namespace sampler {

// ports/*/hw_counters of mlx5: the notification and reaction points count in 64 bits, the queue counters in 32.
Meaning rdma_hw_meaning(std::string_view name);

// ports/*/counters, IBA 16.1.3.5: traffic in 64 bits, errors in the few bits of a PortCounters attribute.
Meaning rdma_port_meaning(std::string_view name);

// Returns the factor from a file's value to the counter's unit, because data is counted in words of 4 bytes.
std::uint64_t rdma_port_factor(std::string_view name);

// `ethtool -S` of mlx5 (docs.kernel.org, "Ethtool counters").
Meaning ethtool_meaning(std::string_view name);

} // namespace sampler
