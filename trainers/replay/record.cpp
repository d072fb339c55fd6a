// SPDX-License-Identifier: Apache-2.0
#include "trainers/replay/record.hpp"

#include <nlohmann/json.hpp>

namespace replay {
namespace {

using nlohmann::ordered_json;

constexpr int kReaderTimeoutMs = 2'000;

template <typename T> ordered_json or_null(const std::optional<T> &value) {
  return value ? ordered_json(*value) : ordered_json();
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

void Record::flow(const Options &options, const Connection &connection) {
  const Flow flow = connection.flow();
  add({{"event", "flow"},
       {"job", options.job.name},
       {"rank", options.rank},
       {"flow", connection.number()},
       {"peer", options.job.workers[connection.peer()].name},
       {"peer_rank", connection.peer()},
       {"local_port", flow.local_port},
       {"remote_port", flow.remote_port},
       {"congestion_control", or_null(flow.congestion_control)},
       {"bytes_acked", flow.bytes_acked},
       {"retransmitted", or_null(flow.retransmitted)},
       {"delivered", or_null(flow.delivered)},
       {"delivered_ce", or_null(flow.delivered_ce)}});
}

void Record::done() { add({{"event", "done"}, {"iterations", iterations_}}); }

void Record::stopped(const std::string &reason) {
  add({{"event", "stopped"}, {"reason", reason}, {"iterations", iterations_}});
}

void Record::error(const std::string &message) { add({{"event", "error"}, {"message", message}}); }

void Record::finish() { lines_.finish(kReaderTimeoutMs); }

void Record::add(const ordered_json &event) {
  lines_.add(event.dump(-1, ' ', false, ordered_json::error_handler_t::replace));
  lines_.flush();
}

} // namespace replay
