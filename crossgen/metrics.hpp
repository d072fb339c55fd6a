// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "crossgen/common/sockets.hpp"
#include "native/control/handshake_listener.hpp"

#include <deque>
#include <functional>
#include <span>
#include <vector>

namespace crossgen {

// Serves one text, for Prometheus, to whoever asks, in the background of whoever waits for its sockets.
class Metrics {
public:
  Metrics(Endpoint endpoint, std::function<std::string()> text);

  const Endpoint &endpoint() const { return endpoint_; }
  void add_interests(std::vector<pollfd> &fds) const;

  // `ready` are the sockets of add_interests, polled.
  void handle(std::span<const pollfd> ready);

private:
  struct Guest {
    native::Fd fd;
    native::Nanos deadline_ns;
    std::string request = {};
    std::string answer = {};
    std::size_t sent = 0;
  };

  bool stays(Guest &guest);
  bool read(Guest &guest);

  Endpoint endpoint_;
  std::function<std::string()> text_;
  native::Listener listener_;
  std::deque<Guest> guests_;
};

// The answer to a whole HTTP request; empty while more of it must come.
std::string answer_http(const std::string &request, const std::function<std::string()> &text);

} // namespace crossgen
