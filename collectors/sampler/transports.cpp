// SPDX-License-Identifier: Apache-2.0
#include "collectors/sampler/transports.hpp"

#include "collectors/sampler/bpf_map.hpp"
#include "transports/dcqcn.h"

#include <cstddef>
#include <filesystem>
#include <sys/socket.h>

#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71
#endif

namespace sampler {
namespace {

struct Field {
  const char *name;
  std::size_t offset;
  int width_bits;
  const char *unit;
};

#define FIELD(name, unit)                                                                                              \
  { #name, offsetof(dcqcn_counters, name), 8 * static_cast < int>(sizeof(dcqcn_counters::name)), unit }

constexpr Field kDcqcn[] = {
    FIELD(acks, "segments"),
    FIELD(active_us, "us"),
    FIELD(segments, "segments"),
    FIELD(segments_marked, "segments"),
    FIELD(cnps, "events"),
    FIELD(losses, "segments"),
    FIELD(fast_increases, "events"),
    FIELD(additive_increases, "events"),
    FIELD(hyper_increases, "events"),
    FIELD(rate, "bytes/s"),
    FIELD(alpha_q24, "2^-24"),
    FIELD(stage, "stage"),
};

std::uint64_t this_namespace() {
  const native::Fd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  std::uint64_t cookie = 0;
  socklen_t size = sizeof cookie;
  if (!fd || getsockopt(fd.get(), SOL_SOCKET, SO_NETNS_COOKIE, &cookie, &size) != 0)
    throw native::system_failure(
        "this kernel does not tell a network namespace's cookie (SO_NETNS_COOKIE, Linux 5.14)");
  return cookie;
}

class Dcqcn : public Group {
public:
  Dcqcn(std::string name, const std::string &path)
      : Group(std::move(name), "transport"), map_(open_map<std::uint64_t, dcqcn_counters>(path)),
        namespace_(this_namespace()) {
    for (const Field &field : kDcqcn)
      counters.push_back({field.name, {field.unit, field.width_bits}});
    values.resize(counters.size());
  }

  void read() override {
    dcqcn_counters entry{};
    const bool known = look_up(map_, namespace_, entry);
    for (std::size_t i = 0; i < values.size(); i++)
      values[i] = known ? std::optional<std::uint64_t>(value(entry, kDcqcn[i])) : std::nullopt;
  }

private:
  static std::uint64_t value(const dcqcn_counters &entry, const Field &field) {
    const char *at = reinterpret_cast<const char *>(&entry) + field.offset;
    return field.width_bits == 64 ? *reinterpret_cast<const std::uint64_t *>(at)
                                  : *reinterpret_cast<const std::uint32_t *>(at);
  }

  native::Fd map_;
  std::uint64_t namespace_;
};

} // namespace

std::vector<std::unique_ptr<Group>> find_transports(const std::string &folder) {
  std::vector<std::unique_ptr<Group>> groups;
  const std::string dcqcn = folder + "/dcqcn/counters";
  std::error_code none;
  if (std::filesystem::exists(dcqcn, none))
    groups.push_back(std::make_unique<Dcqcn>("dcqcn", dcqcn));
  return groups;
}

} // namespace sampler
