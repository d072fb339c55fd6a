// SPDX-License-Identifier: Apache-2.0
#include "collectors/sampler/sources/ethtool.hpp"

#include "collectors/sampler/counter_types.hpp"
#include "native/errors.hpp"

#include <algorithm>
#include <fnmatch.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

namespace sampler {
namespace {

// Spare room for counters that the driver adds between the two calls. It writes all of them, regardless of the
// requested number.
constexpr std::size_t kSpareStatistics = 4096;

// Sends a request, which begins with a command, to the interface's driver. The driver overwrites it with the answer.
bool request_driver(const native::Fd &socket, const std::string &interface, void *command) {
  ifreq request{};
  interface.copy(request.ifr_name, IFNAMSIZ - 1);
  request.ifr_data = static_cast<char *>(command);
  return ioctl(socket.get(), SIOCETHTOOL, &request) == 0;
}

// 64-bit words, whose first bytes are a struct of the kernel.
template <typename Header> Header *header_of(std::vector<std::uint64_t> &words) {
  return reinterpret_cast<Header *>(words.data());
}

std::uint32_t count_statistics(const native::Fd &socket, const std::string &interface) {
  std::vector<std::uint64_t> words(sizeof(ethtool_sset_info) / sizeof(std::uint64_t) + 1);
  auto *info = header_of<ethtool_sset_info>(words);
  info->cmd = ETHTOOL_GSSET_INFO;
  info->sset_mask = 1ULL << ETH_SS_STATS;
  return request_driver(socket, interface, info) && info->sset_mask != 0 ? info->data[0] : 0;
}

std::vector<std::string> statistics_names(const native::Fd &socket, const std::string &interface) {
  const std::uint32_t count = count_statistics(socket, interface);
  std::vector<std::uint64_t> words((sizeof(ethtool_gstrings) + (count + kSpareStatistics) * ETH_GSTRING_LEN) / 8);
  auto *strings = header_of<ethtool_gstrings>(words);
  strings->cmd = ETHTOOL_GSTRINGS;
  strings->string_set = ETH_SS_STATS;
  strings->len = count;
  if (count == 0 || !request_driver(socket, interface, strings))
    return {};
  std::vector<std::string> names;
  for (std::uint32_t i = 0; i < strings->len; i++) {
    const auto *name = reinterpret_cast<const char *>(strings->data) + i * ETH_GSTRING_LEN;
    names.emplace_back(name, strnlen(name, ETH_GSTRING_LEN));
  }
  return names;
}

class Statistics : public Group {
public:
  Statistics(const std::string &interface, const std::vector<std::string> &patterns)
      : Group(interface, "ethtool"), socket_(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    if (!socket_)
      throw native::system_failure("cannot open a socket");
    const std::vector<std::string> names = statistics_names(socket_, device);
    for (std::size_t i = 0; i < names.size(); i++)
      if (std::any_of(patterns.begin(), patterns.end(),
                      [&](const std::string &pattern) { return fnmatch(pattern.c_str(), names[i].c_str(), 0) == 0; })) {
        positions_.push_back(i);
        counters.push_back({names[i], ethtool_meaning(names[i])});
      }
    count_ = static_cast<std::uint32_t>(names.size());
    values.resize(counters.size());
    words_.resize(sizeof(ethtool_stats) / sizeof(std::uint64_t) + count_ + kSpareStatistics);
  }

  void read() override {
    auto *statistics = header_of<ethtool_stats>(words_);
    statistics->cmd = ETHTOOL_GSTATS;
    statistics->n_stats = count_;
    // If the number of counters changed, their order changed too.
    const bool known = request_driver(socket_, device, statistics) && statistics->n_stats == count_;
    for (std::size_t i = 0; i < positions_.size(); i++)
      values[i] = known ? std::optional<std::uint64_t>(statistics->data[positions_[i]]) : std::nullopt;
  }

private:
  native::Fd socket_;
  std::uint32_t count_ = 0;
  std::vector<std::size_t> positions_;
  std::vector<std::uint64_t> words_;
};

} // namespace

std::unique_ptr<Group> find_ethtool(const std::string &interface, const std::vector<std::string> &patterns) {
  auto statistics = std::make_unique<Statistics>(interface, patterns);
  return statistics->counters.empty() ? nullptr : std::move(statistics);
}

} // namespace sampler
