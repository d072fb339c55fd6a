// SPDX-License-Identifier: Apache-2.0
#include "trainers/replay/playback/job.hpp"

#include "native/errors.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace replay {
namespace {

using native::Nanos;
using nlohmann::json;

json good() {
  return json::parse(R"({
    "name": "j1", "connections": 2, "iterations": 5, "seed": 7, "jitter": 0.005, "begins_ms": 1.5, "departs_ms": null,
    "workers": [{"name": "s0", "address": "10.0.0.1", "port": 29500}, {"name": "s0", "address": "10.0.0.1", "port": 29501},
                {"name": "s1", "address": "10.0.0.2", "port": 29500}],
    "phases": [{"name": "forward", "compute_ms": 1.25},
               {"name": "send", "alone_ms": 2, "transfers": [[0, 1, 1000, 250], [1, 2, 1000, 0], [2, 0, 10]]}]})");
}

// What is said about the job after `edit`.
template <typename Edit> std::string complaint(Edit edit) {
  json job = good();
  edit(job);
  try {
    parse_job(job.dump());
  } catch (const native::Failure &error) {
    return error.what();
  }
  return "nothing";
}

TEST(Job, IsReadAsGiven) {
  const Job job = parse_job(good().dump());
  EXPECT_EQ(job.name, "j1");
  EXPECT_EQ(job.connections, 2u);
  EXPECT_EQ(job.begins_ns, 1'500'000);
  EXPECT_EQ(job.departs_ns, std::nullopt);
  ASSERT_EQ(job.phases.size(), 2u);
  EXPECT_EQ(job.dscp, 0u);
  EXPECT_FALSE(job.phases[0].communicates());
  EXPECT_EQ(job.phases[0].compute_ns, 1'250'000);
  EXPECT_TRUE(job.phases[1].communicates());
  const std::vector<Transfer> &transfers = job.phases[1].transfers;
  ASSERT_EQ(transfers.size(), 3u);
  EXPECT_EQ(transfers[0].lead_bytes, 250u);
  EXPECT_EQ(transfers[2].lead_bytes, std::nullopt);
  EXPECT_EQ(transfers[0].feeders, std::vector<unsigned>{2});
  EXPECT_TRUE(transfers[2].feeders.empty());
}

TEST(Job, ATransferMayNameItsChannelAndFeeders) {
  json document = good();
  document["phases"][1]["transfers"] = {{1, 0, 9, 0, 1, json::array()},
                                        {2, 0, 9, 0, 1, json::array()},
                                        {0, 1, 9, 0, 1, {1, 2}},
                                        {0, 2, 9, 0, 1, {1, 2}},
                                        {0, 1, 8, 0, 0, json::array()}};
  const std::vector<Transfer> transfers = parse_job(document.dump()).phases[1].transfers;
  ASSERT_EQ(transfers.size(), 5u);
  EXPECT_TRUE(transfers[0].feeders.empty());
  EXPECT_EQ(transfers[2].feeders, (std::vector<unsigned>{1, 2}));
  EXPECT_EQ(transfers[2].number(1, 2), 3u);
  EXPECT_EQ(transfers[4].number(1, 2), 1u);
}

TEST(Job, NicsAreCountedAnewBehindTheLast) {
  json document = good();
  document["workers"][0]["nics"] = {"10.0.0.1", "10.0.1.1"};
  document["workers"][0]["nic"] = 1;
  const Job job = parse_job(document.dump());
  const Peer &several = job.workers[0], &one = job.workers[2];
  EXPECT_EQ(several.nic, 1u);
  EXPECT_EQ(several.nic_address(1).s_addr, htonl(0x0a000101));
  EXPECT_EQ(several.nic_address(2).s_addr, htonl(0x0a000001));
  EXPECT_EQ(one.nic_address(5).s_addr, one.ip.s_addr);
  EXPECT_FALSE(job.pxn);
}

TEST(Job, NicsThatMakeNoSenseAreRefused) {
  EXPECT_EQ(complaint([](json &job) { job["workers"][0]["nics"] = {"10.0.0"}; }),
            "job.workers[0].nics: expected an IPv4 address, found \"10.0.0\"");
  EXPECT_EQ(complaint([](json &job) { job["pxn"] = 1; }), "job.pxn: expected true or false, found 1");
}

TEST(Job, OnlyARingNeedsNoAnswers) {
  const Job job = parse_job(good().dump());
  EXPECT_FALSE(job.phases[1].transfers[0].answered());
  EXPECT_TRUE(job.phases[1].transfers[1].answered());
  EXPECT_TRUE(job.phases[1].transfers[2].answered());
}

TEST(Job, WorkersOfOneHostAreDistinguishedByTheirPorts) {
  const Job job = parse_job(good().dump());
  EXPECT_EQ(job.workers[1].text(), "s0 (10.0.0.1:29501)");
  EXPECT_EQ(job.workers[2].text(), "s1 (10.0.0.2)");
}

TEST(Job, HasOneFingerprintForTheSameDocument) {
  json other = good();
  other["seed"] = 8;
  EXPECT_EQ(parse_job(good().dump()).fingerprint, parse_job(good().dump()).fingerprint);
  EXPECT_NE(parse_job(good().dump()).fingerprint, parse_job(other.dump()).fingerprint);
}

TEST(Job, DepartsAtTheGivenTime) {
  json job = good();
  job["departs_ms"] = 250;
  EXPECT_EQ(parse_job(job.dump()).departs_ns, 250'000'000);
}

TEST(Job, IsMarkedAsGiven) {
  json job = good();
  job["dscp"] = 46;
  EXPECT_EQ(parse_job(job.dump()).dscp, 46u);
  EXPECT_EQ(complaint([](json &wrong) { wrong["dscp"] = 64; }),
            "job.dscp: expected a whole number from 0 to 63, found 64");
}

TEST(Job, HasATimetableWhereOneIsGiven) {
  json job = good();
  EXPECT_FALSE(parse_job(job.dump()).timetable);
  job["timetable"] = {{"shift_ms", 1.5}, {"period_ms", 10}, {"threshold_ms", 0.25}, {"late_ms", 2}};
  const std::optional<Timetable> timetable = parse_job(job.dump()).timetable;
  ASSERT_TRUE(timetable);
  EXPECT_EQ(timetable->shift_ns, 1'500'000);
  EXPECT_EQ(timetable->period_ns, 10'000'000);
  EXPECT_EQ(timetable->threshold_ns, 250'000);
  EXPECT_EQ(timetable->late_ns, 2'000'000);
  EXPECT_EQ(complaint([](json &wrong) { wrong["timetable"] = 5; }), "job.timetable: expected an object, found 5");
  EXPECT_EQ(complaint([&](json &wrong) {
              wrong["timetable"] = job["timetable"];
              wrong["timetable"]["period_ms"] = 0;
            }),
            "job.timetable: period_ms: expected more than 0");
}

TEST(Timetable, DelaysWhoIsTooEarlyOrMuchTooLateToTheNextInstant) {
  const Timetable timetable{10, 100, 2, 20};
  for (const Nanos near : {8, 9, 10, 11, 12, 30, 108, 130, 100'010})
    EXPECT_EQ(timetable.delay_ns(near), 0) << near;
  EXPECT_EQ(timetable.delay_ns(7), 3);
  EXPECT_EQ(timetable.delay_ns(31), 79);
  EXPECT_EQ(timetable.delay_ns(60), 50);
  EXPECT_EQ(timetable.delay_ns(0), 10);
  EXPECT_EQ(timetable.delay_ns(100'007), 3);
  const Timetable loose{10, 100, 40, 40};
  EXPECT_EQ(loose.delay_ns(50), 0);
  EXPECT_EQ(loose.delay_ns(60), 50);
}

TEST(Job, ComplaintsNameTheFieldAndWhatWasFound) {
  EXPECT_EQ(complaint([](json &job) { job["name"] = "a b"; }),
            "job.name: expected 1 to 63 of letters, digits, '.', '_', '-', found \"a b\"");
  EXPECT_EQ(complaint([](json &job) { job.erase("seed"); }), "job: seed is missing");
  EXPECT_EQ(complaint([](json &job) { job["speed"] = 1; }), "job: unknown field \"speed\"");
  EXPECT_EQ(complaint([](json &job) { job["iterations"] = 0; }),
            "job.iterations: expected a whole number from 1 to 1000000, found 0");
  EXPECT_EQ(complaint([](json &job) { job["connections"] = 65; }),
            "job.connections: expected a whole number from 1 to 64, found 65");
  EXPECT_EQ(complaint([](json &job) { job["jitter"] = -0.1; }),
            "job.jitter: expected a number from 0 to 1, found -0.1");
  EXPECT_EQ(complaint([](json &job) { job["begins_ms"] = -1; }),
            "job.begins_ms: expected milliseconds from 0 to one day, found -1");
  EXPECT_EQ(complaint([](json &job) { job["workers"] = json::array({1}); }),
            "job.workers: expected a list of at least 2, found [1]");
  EXPECT_EQ(complaint([](json &job) { job["workers"][2]["address"] = "s1"; }),
            "job.workers[2].address: expected an IPv4 address, found \"s1\"");
  EXPECT_EQ(complaint([](json &job) { job["workers"][1]["port"] = 29500; }),
            "job.workers[1]: 10.0.0.1 port 29500 is given twice");
  EXPECT_EQ(complaint([](json &job) { job["phases"] = json::array(); }),
            "job.phases: expected a list of at least 1, found []");
}

TEST(Job, ComplaintsNameThePhaseAndTransfer) {
  const auto transfer = [](const json &wrong) {
    return complaint([&](json &job) { job["phases"][1]["transfers"][1] = wrong; });
  };
  EXPECT_EQ(transfer({1, 3, 1000}), "job.phases[1].transfers[1]: expected two ranks below 3, found [1,3,1000]");
  EXPECT_EQ(transfer({1, 1, 1000}), "job.phases[1].transfers[1]: expected two ranks below 3, found [1,1,1000]");
  EXPECT_EQ(transfer({1, 2, 0}), "job.phases[1].transfers[1]: expected bytes from 1 to 2^50, found [1,2,0]");
  EXPECT_EQ(transfer({0, 1, 5}), "job.phases[1].transfers[1]: this transfer is given twice");
  EXPECT_EQ(
      transfer({0, 1}),
      "job.phases[1].transfers[1]: expected [from, to, bytes], [from, to, bytes, lead_bytes] or [from, to, bytes, "
      "lead_bytes, channel, [feeders]], found [0,1]");
  EXPECT_EQ(transfer({1, 2, 5, 0, 2, json::array()}),
            "job.phases[1].transfers[1]: expected a channel below 2, found [1,2,5,0,2,[]]");
  EXPECT_EQ(transfer({1, 2, 5, 0, 0, {3}}),
            "job.phases[1].transfers[1]: expected feeders below 3, found [1,2,5,0,0,[3]]");
  EXPECT_EQ(transfer({1, 2, 5, 0, 1, {0}}),
            "job.phases[1].transfers[1]: expected feeders that send to rank 1 in channel 1, found 0");
  EXPECT_EQ(complaint([](json &job) { job["phases"][0]["alone_ms"] = 1; }),
            "job.phases[0]: expected either compute_ms, or alone_ms and transfers");
  EXPECT_EQ(complaint([](json &job) { job["phases"][1]["alone_ms"] = 0; }),
            "job.phases[1]: alone_ms: expected more than 0");
  EXPECT_EQ(complaint([](json &job) { job["phases"][0]["compute_ms"] = "x"; }),
            "job.phases[0].compute_ms: expected milliseconds from 0 to one day, found \"x\"");
}

TEST(Job, ThatIsNoJsonIsShown) {
  EXPECT_THROW(parse_job("{"), native::Failure);
  EXPECT_THROW(parse_job("[]"), native::Failure);
}

TEST(Job, ThatNestsWithoutEndIsRefused) {
  const std::string deep(1'000'000, '[');
  EXPECT_THROW(parse_job(deep + std::string(deep.size(), ']')), native::Failure);
}

} // namespace
} // namespace replay
