// SPDX-License-Identifier: Apache-2.0
// replay-rdma: the worker whose bytes go by RDMA, over RoCE. Peers connect and authenticate over TCP, as in replay;
// then each connection gets a queue pair.
#include "native/errors.hpp"
#include "native/sockets.hpp"
#include "trainers/replay/network/peer_connections.hpp"
#include "trainers/replay/program.hpp"
#include "trainers/replay/rdma/connection.hpp"

#include <algorithm>
#include <cstring>
#include <fcntl.h>
#include <sys/resource.h>

namespace replay::rdma {
namespace {

using native::Nanos;

constexpr Nanos kConnectTimeoutNs = 20'000'000'000;
constexpr int kResolveMs = 5'000;

// Timeout of 4.096 us * 2^18 = 1.07 s for an acknowledgment, with 7 retries (InfiniBand Architecture 1.4, 9.7.6.1.3).
// A dead path is given up after some 9 s; some NICs take longer.
constexpr std::uint8_t kAckTimeout = 18;
constexpr std::uint8_t kRetries = 7;
constexpr std::uint8_t kEctZero = 2; // ECN's bits of the ToS: NICs mark and are marked

void must(int status, const std::string &what) {
  if (status != 0)
    throw native::system_failure("RDMA: cannot " + what);
}

sockaddr *generic(sockaddr_in &address) { return reinterpret_cast<sockaddr *>(&address); }

// RDMA locks memory, which the default limit forbids. The raised limit remains after root privileges are dropped.
void allow_locked_memory() {
  const rlimit most{RLIM_INFINITY, RLIM_INFINITY};
  setrlimit(RLIMIT_MEMLOCK, &most); // without the right, registering memory fails later
}

void set_options(rdma_cm_id *id, unsigned dscp) {
  std::uint8_t tos = static_cast<std::uint8_t>(dscp << 2 | kEctZero);
  must(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, sizeof tos), "set the type of service");
  std::uint8_t timeout = kAckTimeout;
  must(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, sizeof timeout), "set a timeout");
}

Id new_id(rdma_event_channel *channel, unsigned dscp) {
  rdma_cm_id *id = nullptr;
  must(rdma_create_id(channel, &id, nullptr, RDMA_PS_TCP), "make an identifier");
  Id owned(id);
  set_options(id, dscp);
  return owned;
}

// Returns a hash of the hello, which only the two ends of a connection can compute. RDMA's 56 bytes of private data are
// too few for the hello itself.
std::uint64_t token(const Options &options, const std::string &secret, unsigned from, unsigned number) {
  return fnv1a(Hello{options.job.name, from, number, options.job.fingerprint, secret}.text());
}

template <typename T> rdma_conn_param with_private_data(const T &message) {
  rdma_conn_param parameters{};
  parameters.private_data = &message;
  parameters.private_data_len = sizeof message;
  parameters.retry_count = kRetries;
  parameters.rnr_retry_count = kRetries; // 7: no limit. With credits, RNR NAKs do not occur.
  return parameters;
}

// Copies the other end's private data to `message`. They may be padded. Returns false if they are too short.
template <typename T> bool read_private_data(const rdma_cm_event &event, T &message) {
  if (event.param.conn.private_data == nullptr || event.param.conn.private_data_len < sizeof message)
    return false;
  std::memcpy(&message, event.param.conn.private_data, sizeof message);
  return true;
}

// A connection to be made: outgoing, which this worker requests, or incoming, which a peer requests.
struct Place {
  Socket socket;
  std::uint64_t token;
  Id id = {}; // for an outgoing connection, until it has its queue pair
  std::unique_ptr<RdmaConnection> connection = {};
  bool there = false;
};

// Creates a connected queue pair for each socket of a mesh.
class QueuePairSetup {
public:
  QueuePairSetup(const Options &options, const std::string &secret, rdma_event_channel *channel, Mesh mesh)
      : options_(options), channel_(channel) {
    for (Socket &socket : mesh.out)
      out_.push_back({std::move(socket), token(options, secret, options.rank, socket.number)});
    for (Socket &socket : mesh.in)
      in_.push_back({std::move(socket), token(options, secret, socket.peer, socket.number)});
  }

  Connections run(native::Control &control) {
    for (Place &place : out_)
      resolve_address(place);
    const Nanos deadline = native::monotonic_ns() + kConnectTimeoutNs;
    while (const Place *missing = first_missing()) {
      if (native::monotonic_ns() >= deadline)
        throw native::Failure("no RDMA connection with peer " + peer(*missing).text() + " within 20 s");
      std::vector<pollfd> fds = interests();
      control.wait(fds, deadline);
      for (std::size_t i = 1; i < fds.size(); i++)
        if (fds[i].revents != 0)
          throw native::Failure("peer " + peer(at(i - 1)).text() + " closed the connection before the start");
      rdma_cm_event *event = nullptr;
      while (rdma_get_cm_event(channel_, &event) == 0)
        handle(*Event(event));
    }
    return {taken(out_), taken(in_)};
  }

private:
  using Places = std::vector<Place>;

  const Peer &peer(const Place &place) const {
    return options_.job.workers[place.connection ? place.connection->peer() : place.socket.peer];
  }
  const Place &at(std::size_t i) const { return i < out_.size() ? out_[i] : in_[i - out_.size()]; }

  const Place *first_missing() const {
    for (const Places *places : {&out_, &in_})
      for (const Place &place : *places)
        if (!place.there)
          return &place;
    return nullptr;
  }

  // Peers send nothing before the start, so a readable connection has ended.
  std::vector<pollfd> interests() const {
    std::vector<pollfd> fds{{channel_->fd, POLLIN, 0}};
    for (const Places *places : {&out_, &in_})
      for (const Place &place : *places)
        fds.push_back(place.connection ? place.connection->interest(false) : pollfd{place.socket.fd.get(), POLLIN, 0});
    return fds;
  }

  // The queue pair is between the addresses of its TCP connection, so that both cross the same NICs.
  void resolve_address(Place &place) {
    place.id = new_id(channel_, options_.job.dscp);
    place.id->context = &place;
    sockaddr_in own{}, other{};
    socklen_t own_length = sizeof own, other_length = sizeof other;
    must(getsockname(place.socket.fd.get(), generic(own), &own_length), "find its own address");
    must(getpeername(place.socket.fd.get(), generic(other), &other_length),
         "find the address of " + peer(place).text());
    own.sin_port = 0;
    must(rdma_resolve_addr(place.id.get(), generic(own), generic(other), kResolveMs), "reach " + peer(place).text());
  }

  void handle(const rdma_cm_event &event) {
    if (event.event == RDMA_CM_EVENT_CONNECT_REQUEST)
      return answer(event);
    Place *place = static_cast<Place *>(event.id->context);
    if (place == nullptr) // an unknown peer's request, which was rejected
      return;
    switch (event.event) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
      return must(rdma_resolve_route(event.id, kResolveMs), "find a way to " + peer(*place).text());
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
      return request_connection(*place);
    case RDMA_CM_EVENT_ESTABLISHED:
      return establish(*place, event);
    default:
      throw native::Failure("RDMA connection with peer " + peer(*place).text() + ": " + rdma_event_str(event.event) +
                            " (status " + std::to_string(event.status) + ")");
    }
  }

  void request_connection(Place &place) {
    place.connection = std::make_unique<RdmaConnection>(std::move(place.socket), std::move(place.id));
    rdma_conn_param parameters = with_private_data(place.token);
    must(rdma_connect(place.connection->id(), &parameters), "connect to " + peer(place).text());
  }

  void answer(const rdma_cm_event &event) {
    Id id(event.id);
    std::uint64_t received = 0;
    const bool has_token = read_private_data(event, received);
    const auto place = std::find_if(in_.begin(), in_.end(), [&](const Place &each) {
      return has_token && !each.connection && each.token == received;
    });
    if (place == in_.end()) {
      id->context = nullptr;
      rdma_reject(id.get(), nullptr, 0);
      return;
    }
    id->context = &*place;
    set_options(id.get(), options_.job.dscp);
    place->connection = std::make_unique<RdmaConnection>(std::move(place->socket), std::move(id));
    const Target target = place->connection->target();
    rdma_conn_param parameters = with_private_data(target);
    must(rdma_accept(place->connection->id(), &parameters), "accept " + peer(*place).text());
  }

  void establish(Place &place, const rdma_cm_event &event) {
    Target target;
    const bool outgoing = &place >= out_.data() && &place < out_.data() + out_.size();
    if (outgoing && !read_private_data(event, target))
      throw native::Failure("peer " + peer(place).text() + " did not send the address of its receive buffer");
    place.connection->aim(target);
    place.there = true;
  }

  static std::vector<std::unique_ptr<Connection>> taken(Places &places) {
    std::vector<std::unique_ptr<Connection>> connections;
    for (Place &place : places)
      connections.push_back(std::move(place.connection));
    return connections;
  }

  const Options &options_;
  rdma_event_channel *channel_;
  Places out_;
  Places in_;
};

class Rdma final : public Network {
public:
  void listen(const Options &options) override {
    allow_locked_memory();
    sockets_ = listen_for_peers(options);
  }

  // The kernel refuses RDMA handles that another user opened, so they are opened after privileges are dropped. They are
  // opened before peers are accepted, because an accepted peer requests a queue pair.
  Connections connect(const Options &options, const std::string &secret, native::Control &control) override {
    channel_.reset(rdma_create_event_channel());
    must(channel_ ? 0 : -1, "use this host's connection manager (/dev/infiniband/rdma_cm)");
    fcntl(channel_->fd, F_SETFL, fcntl(channel_->fd, F_GETFL) | O_NONBLOCK);
    const Id listening = listen_by_rdma(options);
    Mesh mesh = connect_mesh(options, std::move(sockets_), secret, control);
    return QueuePairSetup(options, secret, channel_.get(), std::move(mesh)).run(control);
  }

private:
  Id listen_by_rdma(const Options &options) {
    Id id = new_id(channel_.get(), options.job.dscp);
    const in_addr any{INADDR_ANY};
    sockaddr_in own =
        native::socket_address(options.self().nics.empty() ? options.self().ip : any, options.self().port);
    must(rdma_bind_addr(id.get(), generic(own)), "find a device with own address " + options.self().address);
    must(rdma_listen(id.get(), 128), "listen");
    return id;
  }

  EventChannel channel_; // destroyed after all identifiers that use it
  native::Fd sockets_;
};

} // namespace
} // namespace replay::rdma

int main(int argc, char **argv) {
  replay::rdma::Rdma network;
  return replay::play(argc, argv, network);
}
