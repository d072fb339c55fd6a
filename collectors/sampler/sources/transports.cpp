// SPDX-License-Identifier: Apache-2.0
#include "collectors/sampler/sources/transports.hpp"

#include "collectors/sampler/sources/bpf_map.hpp"
#include "transports/common/declarations.h"

#include <algorithm>
#include <filesystem>
#include <span>
#include <sys/socket.h>

#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71
#endif

namespace sampler {
namespace {

std::uint64_t this_namespace() {
  const native::Fd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  std::uint64_t cookie = 0;
  socklen_t size = sizeof cookie;
  if (!fd || getsockopt(fd.get(), SOL_SOCKET, SO_NETNS_COOKIE, &cookie, &size) != 0)
    throw native::system_failure(
        "this kernel does not report a network namespace's cookie (SO_NETNS_COOKIE, Linux 5.14)");
  return cookie;
}

// A transport's counters, as its program declares them.
class Transport : public Group {
public:
  Transport(std::string name, const std::string &path)
      : Group(std::move(name), "transport"), map_(open_pinned(path)), namespace_(this_namespace()) {
    declarations found;
    if (declarations_of_map(map_.get(), &found) != 0)
      throw native::Failure("the eBPF map " + path + " cannot be read: " + found.error);
    entry_.resize(found.entry_bytes);
    for (const declared &each : std::span(found.members, static_cast<std::size_t>(found.count)))
      if (each.as == COUNTER)
        add(each);
    declarations_free(&found);
    values.resize(counters.size());
  }

  void read() override {
    const bool known = look_up_bytes(map_, &namespace_, entry_.data());
    for (std::size_t i = 0; i < values.size(); i++)
      values[i] = known ? std::optional<std::uint64_t>(declared_kept(&members_[i], entry_.data())) : std::nullopt;
  }

private:
  void add(const declared &counter) {
    members_.push_back(counter);
    counters.push_back({counter.kept_name, {counter.unit, 8 * static_cast<int>(counter.size)}});
  }

  native::Fd map_;
  std::uint64_t namespace_;
  std::vector<declared> members_;
  std::vector<char> entry_;
};

} // namespace

std::vector<std::unique_ptr<Group>> find_transports(const std::string &folder) {
  std::vector<std::unique_ptr<Group>> groups;
  std::error_code none;
  for (const auto &transport : std::filesystem::directory_iterator(folder, none))
    if (std::filesystem::exists(transport.path() / "counters", none))
      groups.push_back(std::make_unique<Transport>(transport.path().filename(), transport.path() / "counters"));
  std::ranges::sort(groups, {}, [](const auto &group) { return group->device; });
  return groups;
}

} // namespace sampler
