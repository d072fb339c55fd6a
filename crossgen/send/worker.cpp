// SPDX-License-Identifier: Apache-2.0
#include "crossgen/send/worker.hpp"

#include "crossgen/send/connection.hpp"
#include "native/drop_privileges.hpp"

namespace crossgen {

Worker::Worker() {
  poller_.add(bell_.fd(), EPOLLIN, nullptr);
  thread_ = std::thread([this] { run(); });
}

void Worker::stop() {
  stopped_ = true;
  bell_.ring();
  if (thread_.joinable())
    thread_.join();
}

void Worker::run() {
  native::keep_only({}); // it reads from the network
  while (!stopped_)
    for (const epoll_event &event : poller_.wait(-1))
      if (auto *connection = static_cast<Connection *>(event.data.ptr))
        connection->handle(event.events);
}

} // namespace crossgen
