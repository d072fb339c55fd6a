// SPDX-License-Identifier: Apache-2.0
#include "trainers/replay/playback/job.hpp"

#include "native/errors.hpp"
#include "native/json.hpp"
#include "trainers/replay/network/hello.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

namespace replay {
namespace {

using native::Nanos;
using nlohmann::json;

constexpr double kLongestMs = 86'400'000;
constexpr std::uint64_t kMaxConnections = 64;
constexpr std::uint64_t kMaxWorkersOfHost = 64;
constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 50;

// The fields of one object, each complaint naming where it is.
class Reader {
public:
  Reader(std::string where, const json &object, const std::set<std::string> &known)
      : where_(std::move(where)), object_(object) {
    if (!object.is_object())
      throw native::Failure(where_ + ": expected an object, found " + object.dump());
    for (const auto &[key, value] : object.items())
      if (!known.contains(key))
        fail("unknown field " + json(key).dump());
  }

  bool has(const char *key) const { return object_.contains(key) && !object_.at(key).is_null(); }

  std::string text(const char *key) const {
    const json &value = field(key);
    return value.is_string() ? value.get<std::string>() : refuse<std::string>(key, "a string", value);
  }

  std::uint64_t whole(const char *key, std::uint64_t least, std::uint64_t most) const {
    const json &value = field(key);
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() < least || value.get<std::uint64_t>() > most)
      fail(key, "a whole number from " + std::to_string(least) + " to " + std::to_string(most), value);
    return value.get<std::uint64_t>();
  }

  bool flag(const char *key) const {
    const json &value = field(key);
    return value.is_boolean() ? value.get<bool>() : refuse<bool>(key, "true or false", value);
  }

  double share(const char *key) const {
    const json &value = field(key);
    if (!value.is_number() || !(value.get<double>() >= 0 && value.get<double>() <= 1))
      fail(key, "a number from 0 to 1", value);
    return value.get<double>();
  }

  Nanos milliseconds(const char *key) const {
    const json &value = field(key);
    if (!value.is_number() || !(value.get<double>() >= 0) || value.get<double>() > kLongestMs)
      fail(key, "milliseconds from 0 to one day", value);
    return std::llround(value.get<double>() * 1e6);
  }

  const json &list(const char *key, std::size_t least) const {
    const json &value = field(key);
    if (!value.is_array() || value.size() < least)
      fail(key, "a list of at least " + std::to_string(least), value);
    return value;
  }

  const json &object(const char *key) const { return field(key); }

  std::string where(const char *key, std::size_t index) const {
    return where_ + "." + key + "[" + std::to_string(index) + "]";
  }

  [[noreturn]] void fail(const std::string &what) const { throw native::Failure(where_ + ": " + what); }

  [[noreturn]] void fail(const char *key, const std::string &expected, const json &found) const {
    throw native::Failure(where_ + "." + key + ": expected " + expected + ", found " + found.dump());
  }

private:
  template <typename T> T refuse(const char *key, const char *expected, const json &found) const {
    fail(key, expected, found);
  }

  const json &field(const char *key) const {
    if (!object_.contains(key))
      fail(std::string(key) + " is missing");
    return object_.at(key);
  }

  std::string where_;
  const json &object_;
};

void check_name(const Reader &job, const std::string &name) {
  constexpr const char *kAllowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  if (name.empty() || name.size() > kLongestJobName || name.find_first_not_of(kAllowed) != std::string::npos)
    job.fail("name", "1 to 63 of letters, digits, '.', '_', '-'", name);
}

in_addr read_address(const Reader &worker, const char *key, const std::string &text) {
  in_addr ip{};
  if (inet_pton(AF_INET, text.c_str(), &ip) != 1)
    worker.fail(key, "an IPv4 address", text);
  return ip;
}

std::vector<Peer> read_workers(const Reader &job) {
  std::vector<Peer> workers;
  std::map<std::string, int> on_address;
  std::set<std::pair<std::string, std::uint16_t>> seen;
  for (const json &each : job.list("workers", 2)) {
    const std::string where = job.where("workers", workers.size());
    const Reader worker(where, each, {"name", "address", "port", "source_port", "nics", "nic"});
    Peer peer;
    peer.name = worker.text("name");
    peer.address = worker.text("address");
    peer.port = static_cast<std::uint16_t>(worker.whole("port", 1, 65535));
    if (worker.has("source_port"))
      peer.source_port =
          static_cast<std::uint16_t>(worker.whole("source_port", 1024, 65536 - kMaxConnections * kMaxChannels));
    peer.ip = read_address(worker, "address", peer.address);
    if (worker.has("nics"))
      for (const json &nic : worker.list("nics", 1))
        peer.nics.push_back(read_address(worker, "nics", nic.is_string() ? nic.get<std::string>() : nic.dump()));
    if (worker.has("nic"))
      peer.nic = static_cast<unsigned>(worker.whole("nic", 0, kMaxWorkersOfHost));
    if (!seen.emplace(peer.address, peer.port).second)
      worker.fail(peer.address + " port " + std::to_string(peer.port) + " is given twice");
    on_address[peer.address]++;
    workers.push_back(std::move(peer));
  }
  for (Peer &worker : workers)
    worker.shares_host = on_address[worker.address] > 1;
  return workers;
}

bool is_numbers(json::const_iterator begin, json::const_iterator end) {
  return std::all_of(begin, end, [](const json &item) { return item.is_number_unsigned(); });
}

// Returns true for [from, to, bytes], for the same with lead_bytes, and with lead_bytes, channel and [feeders].
bool is_transfer(const json &each) {
  if (!each.is_array() || each.size() != 6)
    return each.is_array() && (each.size() == 3 || each.size() == 4) && is_numbers(each.begin(), each.end());
  return is_numbers(each.begin(), each.begin() + 5) && each[5].is_array() && is_numbers(each[5].begin(), each[5].end());
}

Transfer read_transfer(const std::string &where, const json &each, std::size_t workers) {
  const auto expect = [&](bool good, const std::string &expected) {
    if (!good)
      throw native::Failure(where + ": expected " + expected + ", found " + each.dump());
  };
  const auto is_rank = [&](const json &item) { return item.get<std::uint64_t>() < workers; };
  expect(is_transfer(each),
         "[from, to, bytes], [from, to, bytes, lead_bytes] or [from, to, bytes, lead_bytes, channel, "
         "[feeders]]");
  const std::string below = " below " + std::to_string(workers);
  expect(is_rank(each[0]) && is_rank(each[1]) && each[0] != each[1], "two ranks" + below);
  Transfer transfer{each[0].get<unsigned>(), each[1].get<unsigned>(), each[2].get<std::uint64_t>(), {}};
  expect(transfer.bytes > 0 && transfer.bytes <= kMaxBytes, "bytes from 1 to 2^50");
  if (each.size() > 3)
    transfer.lead_bytes = each[3].get<std::uint64_t>();
  if (each.size() > 4) {
    expect(each[4].get<std::uint64_t>() < kMaxChannels, "a channel below " + std::to_string(kMaxChannels));
    expect(std::all_of(each[5].begin(), each[5].end(), is_rank), "feeders" + below);
    transfer.channel = each[4].get<unsigned>();
    transfer.feeders = each[5].get<std::vector<unsigned>>();
  }
  return transfer;
}

Timetable read_timetable(const Reader &job) {
  const Reader reader("job.timetable", job.object("timetable"), {"shift_ms", "period_ms", "threshold_ms", "late_ms"});
  const Timetable timetable{reader.milliseconds("shift_ms"), reader.milliseconds("period_ms"),
                            reader.milliseconds("threshold_ms"), reader.milliseconds("late_ms")};
  if (timetable.period_ns == 0)
    reader.fail("period_ms: expected more than 0");
  return timetable;
}

std::vector<Transfer> read_transfers(const Reader &phase, std::size_t workers) {
  std::vector<Transfer> transfers;
  std::set<std::tuple<unsigned, unsigned, unsigned>> seen;
  std::map<unsigned, std::vector<unsigned>> senders; // by receiver
  const json &list = phase.list("transfers", 1);
  for (const json &each : list) {
    const std::string where = phase.where("transfers", transfers.size());
    const Transfer &added = transfers.emplace_back(read_transfer(where, each, workers));
    if (!seen.emplace(added.from, added.to, added.channel).second)
      throw native::Failure(where + ": this transfer is given twice");
    senders[added.to].push_back(added.from);
  }
  for (std::size_t i = 0; i < transfers.size(); i++) {
    Transfer &each = transfers[i];
    if (list[i].size() == 4)
      each.feeders = senders[each.from];
    for (const unsigned feeder : each.feeders)
      if (!seen.contains({feeder, each.from, each.channel}))
        throw native::Failure(phase.where("transfers", i) + ": expected feeders that send to rank " +
                              std::to_string(each.from) + " in channel " + std::to_string(each.channel) + ", found " +
                              std::to_string(feeder));
  }
  return transfers;
}

Phase read_phase(const std::string &where, const json &each, std::size_t workers) {
  const Reader reader(where, each, {"name", "compute_ms", "alone_ms", "transfers"});
  Phase phase;
  phase.name = reader.text("name");
  if (reader.has("compute_ms") == reader.has("transfers") || reader.has("alone_ms") != reader.has("transfers"))
    reader.fail("expected either compute_ms, or alone_ms and transfers");
  if (reader.has("compute_ms")) {
    phase.compute_ns = reader.milliseconds("compute_ms");
    return phase;
  }
  phase.alone_ns = reader.milliseconds("alone_ms");
  if (phase.alone_ns == 0)
    reader.fail("alone_ms: expected more than 0");
  phase.transfers = read_transfers(reader, workers);
  return phase;
}

} // namespace

std::string Peer::text() const {
  const std::string place = shares_host ? address + ":" + std::to_string(port) : address;
  return name == address && !shares_host ? name : name + " (" + place + ")";
}

Nanos Timetable::delay_ns(Nanos since_start_ns) const {
  const Nanos past_ns = ((since_start_ns - shift_ns) % period_ns + period_ns) % period_ns;
  const Nanos early_ns = (period_ns - past_ns) % period_ns;
  return early_ns > threshold_ns && past_ns > late_ns ? early_ns : 0;
}

Job parse_job(const std::string &text) {
  const json document = native::parse_json<json>(text);
  if (document.is_discarded())
    throw native::Failure("job: not JSON: " + text);
  const Reader reader("job", document,
                      {"name", "workers", "connections", "iterations", "seed", "jitter", "begins_ms", "departs_ms",
                       "pxn", "dscp", "timetable", "phases"});
  Job job;
  job.name = reader.text("name");
  check_name(reader, job.name);
  job.workers = read_workers(reader);
  job.connections = static_cast<unsigned>(reader.whole("connections", 1, kMaxConnections));
  job.iterations = static_cast<unsigned>(reader.whole("iterations", 1, 1'000'000));
  job.seed = reader.whole("seed", 0, UINT64_MAX);
  job.jitter = reader.share("jitter");
  job.begins_ns = reader.milliseconds("begins_ms");
  if (reader.has("departs_ms"))
    job.departs_ns = reader.milliseconds("departs_ms");
  if (reader.has("pxn"))
    job.pxn = reader.flag("pxn");
  if (reader.has("dscp"))
    job.dscp = static_cast<unsigned>(reader.whole("dscp", 0, 63));
  if (reader.has("timetable"))
    job.timetable = read_timetable(reader);
  for (const json &phase : reader.list("phases", 1))
    job.phases.push_back(read_phase(reader.where("phases", job.phases.size()), phase, job.workers.size()));
  // Workers with different descriptions would only look slow, so peers compare this hash when they connect.
  job.fingerprint = fnv1a(text);
  return job;
}

} // namespace replay
