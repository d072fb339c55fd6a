// SPDX-License-Identifier: Apache-2.0
#include "trainers/replay/record.hpp"

#include "native/errors.hpp"

#include <arpa/inet.h>
#include <linux/tcp.h>
#include <nlohmann/json.hpp>
#include <sys/socket.h>

namespace replay {
namespace {

using nlohmann::ordered_json;

constexpr int kReaderPatienceMs = 2'000;

std::uint16_t port_of(int fd, int (*name)(int, sockaddr *, socklen_t *)) {
  sockaddr_in address{};
  socklen_t length = sizeof address;
  name(fd, reinterpret_cast<sockaddr *>(&address), &length);
  return ntohs(address.sin_port);
}

} // namespace

void Record::ready() { add({{"event", "ready"}}); }

void Record::iteration(const Iteration &iteration) {
  iterations_++;
  ordered_json event{{"event", "iteration"},
                     {"iteration", iteration.number},
                     {"start_ns", iteration.start.monotonic_ns},
                     {"compute_end_ns", iteration.compute_end.monotonic_ns},
                     {"comm_end_ns", iteration.comm_end.monotonic_ns},
                     {"start_utc_ns", iteration.start.utc_ns},
                     {"compute_end_utc_ns", iteration.compute_end.utc_ns},
                     {"comm_end_utc_ns", iteration.comm_end.utc_ns},
                     {"sent_bytes", iteration.sent_bytes},
                     {"received_bytes", iteration.received_bytes},
                     {"late_ns", iteration.late_ns}};
  if (iteration.delay_ns)
    event["delay_ns"] = *iteration.delay_ns;
  add(event);
}

void Record::flow(const Options &options, const Connection &connection, std::uint64_t overhead_bytes) {
  const int fd = connection.fd.get();
  tcp_info info{};
  socklen_t length = sizeof info;
  char congestion[16] = {}; // TCP_CA_NAME_MAX
  socklen_t name_length = sizeof congestion;
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0 ||
      getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, congestion, &name_length) != 0)
    throw native::system_failure("cannot read a socket's TCP_INFO");
  const std::uint64_t acked = info.tcpi_bytes_acked;
  add({{"event", "flow"},
       {"job", options.job.name},
       {"rank", options.rank},
       {"flow", connection.number},
       {"peer", options.job.workers[connection.peer].name},
       {"peer_rank", connection.peer},
       {"local_port", port_of(fd, getsockname)},
       {"remote_port", port_of(fd, getpeername)},
       {"congestion_control", congestion},
       {"bytes_acked", acked - std::min(acked, overhead_bytes)},
       {"retransmitted", info.tcpi_total_retrans},
       {"delivered", info.tcpi_delivered},
       {"delivered_ce", info.tcpi_delivered_ce}});
}

void Record::done() { add({{"event", "done"}, {"iterations", iterations_}}); }

void Record::stopped(const std::string &reason) {
  add({{"event", "stopped"}, {"reason", reason}, {"iterations", iterations_}});
}

void Record::error(const std::string &message) { add({{"event", "error"}, {"message", message}}); }

void Record::finish() { lines_.finish(kReaderPatienceMs); }

void Record::add(const ordered_json &event) {
  lines_.add(event.dump(-1, ' ', false, ordered_json::error_handler_t::replace));
  lines_.flush();
}

} // namespace replay
