# SPDX-License-Identifier: Apache-2.0
"""replay as a whole: real processes and sockets, on loopback and between namespaces."""

import json
import re
import socket
import statistics
import subprocess
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from tests.native.conftest import SECRET, free_port
from tests.running import Running, job_document

pytestmark = [pytest.mark.lab, pytest.mark.quiet]

COMPUTE = {"name": "forward", "compute_ms": 40}
ALLREDUCE = {"name": "allreduce", "bytes": 1_000_001, "alone_ms": 20}
LONG = [{"name": "forward", "compute_ms": 10}, {"name": "allreduce", "bytes": 2_000_000, "alone_ms": 200}]


def iterations(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [event for event in events if event["event"] == "iteration"]


def elsewhere(job: Any, rank: int, address: str = "127.0.0.9") -> list[dict[str, Any]]:
    """The job's workers, one of them at another address."""
    return [
        worker | ({"address": address} if index == rank else {}) for index, worker in enumerate(job.document["workers"])
    ]


def milliseconds(event: dict[str, Any], start: str = "start_ns", end: str = "comm_end_ns") -> float:
    return (event[end] - event[start]) / 1e6


def excused_ms(events: list[dict[str, Any]]) -> float:
    """What a busy machine may add: how late the worker's own sleeps were."""
    return 2 * statistics.median(event["late_ns"] for event in events) / 1e6


@pytest.mark.parametrize(("workers", "flows"), [(2, 1), (4, 3)])
def test_every_byte_arrives_once(job: Callable[..., Any], workers: int, flows: int) -> None:
    ring = job([COMPUTE, ALLREDUCE, ALLREDUCE], workers, connections=flows, iterations=4)
    ring.connect_all()
    start_ns = ring.begin()
    for rank, worker in ring.workers.items():
        events = worker.events()
        assert worker.status() == 0, worker.errors()
        assert events[-1] == {"event": "done", "iterations": 4}
        records = iterations(events)
        assert [record["iteration"] for record in records] == [0, 1, 2, 3]
        assert {record["sent_bytes"] for record in records} == {2_000_002}
        assert {record["received_bytes"] for record in records} == {2_000_002}
        sent = [event for event in events if event["event"] == "flow"]
        assert [event["flow"] for event in sent] == list(range(flows))
        assert {event["peer"] for event in sent} == {f"s{(rank + 1) % workers}"}
        assert {event["remote_port"] for event in sent} == {ring.document["workers"][0]["port"]}
        assert sum(event["bytes_acked"] for event in sent) == 4 * 2_000_002
        assert records[0]["start_ns"] == start_ns


def share(pattern: str, size: int, **options: Any) -> dict[str, Any]:
    return {"name": pattern, "bytes": size, "alone_ms": 10, "pattern": pattern, **options}


PATTERNED = [
    ([COMPUTE, share("pairs", 300_001)], 4),
    ([share("all-to-all", 300_001)], 4),
    ([share("all-to-one", 300_001), COMPUTE, share("one-to-all", 100_003)], 3),
    ([COMPUTE, share("pipeline", 300_001), share("pipeline", 5, groups=[[3, 2, 1, 0]])], 4),
    # Tensors within a server, activations between them, gradients between those that hold the same part.
    (
        [
            share("ring", 200_001, groups=[[0, 1], [2, 3]]),
            share("pipeline", 100_000, groups=[[0, 2], [1, 3]]),
            share("ring", 300_000, groups=[[0, 2], [1, 3]]),
        ],
        4,
    ),
    ([share("tree", 300_001)], 5),
    # Both trees of two workers join them. A ring and the first tree share connections.
    ([share("tree", 300_001, groups=[[0, 2], [3, 1]]), COMPUTE, share("ring", 100_000), share("tree", 1)], 4),
    # The last one takes part in one phase only.
    ([share("all-to-all", 100_000, groups=[[0, 1, 2]]), share("ring", 50_000)], 4),
]


@pytest.mark.parametrize(("phases", "workers"), PATTERNED)
@pytest.mark.parametrize("connections", [1, 3])
def test_every_pattern_sends_what_its_transfers_say(
    job: Callable[..., Any], phases: list[dict[str, Any]], workers: int, connections: int
) -> None:
    ring = job(phases, workers, connections=connections, iterations=5)
    ring.connect_all()
    ring.begin()
    transfers = [each for phase in ring.document["phases"] for each in phase.get("transfers", ())]
    for rank, worker in ring.workers.items():
        events = worker.events()
        assert worker.status() == 0, worker.errors()
        assert events[-1] == {"event": "done", "iterations": 5}
        sent = sum(size for sender, _, size, *_ in transfers if sender == rank)
        received = sum(size for _, receiver, size, *_ in transfers if receiver == rank)
        assert [(each["sent_bytes"], each["received_bytes"]) for each in iterations(events)] == [(sent, received)] * 5
        flows = [event for event in events if event["event"] == "flow"]
        for peer in {receiver for sender, receiver, *_ in transfers if sender == rank}:
            own = [size for sender, receiver, size, *_ in transfers if (sender, receiver) == (rank, peer)]
            assert sum(flow["bytes_acked"] for flow in flows if flow["peer_rank"] == peer) == 5 * sum(own)
        used = {(each[1], each[4] if len(each) > 4 else 0) for each in transfers if each[0] == rank}
        expected = [(peer, connections * channel + n) for peer, channel in used for n in range(connections)]
        assert sorted((flow["peer_rank"], flow["flow"]) for flow in flows) == sorted(expected)


def test_all_packets_of_a_job_have_its_dscp(job: Callable[..., Any]) -> None:
    ring = job([COMPUTE, ALLREDUCE], iterations=1, dscp=46)
    ring.connect_all()
    port = ring.document["workers"][0]["port"]
    command = ["ss", "-tHn", "--tos", f"sport = :{port} or dport = :{port}"]
    shown = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    ring.begin()
    assert shown.count("ESTAB") == 4  # two connections, each seen from both ends
    assert shown.count("tos:0xb8") == 4


def test_a_pipeline_passes_on_what_it_receives(job: Callable[..., Any]) -> None:
    """The middle begins 60 ms late: the last one cannot end before, though nothing but data holds it back."""
    line = job([share("pipeline", 100_000)], 3, iterations=1)
    first, middle, last = line.connect_all()
    start_ns = time.monotonic_ns() + 100_000_000
    for worker, late_ms in ((first, 0), (middle, 60), (last, 0)):
        worker.say(f"start {start_ns + late_ms * 1_000_000}")
    (record,) = iterations(last.events())
    assert milliseconds(record) >= 60


def test_a_tree_waits_for_the_sum_of_all_children(job: Callable[..., Any]) -> None:
    """Worker 1 begins 60 ms late. No other can end before, as it has a sibling in both trees of eight workers."""
    tree = job([share("tree", 100_000)], 8, iterations=1)
    workers = tree.connect_all()
    start_ns = time.monotonic_ns() + 100_000_000
    for rank, worker in enumerate(workers):
        worker.say(f"start {start_ns + 60_000_000 * (rank == 1)}")
    for worker in (workers[0], *workers[2:]):
        (record,) = iterations(worker.events())
        assert milliseconds(record) >= 60


def test_a_sender_waits_for_a_receiver_that_has_not_come_to_the_phase(job: Callable[..., Any]) -> None:
    """No worker is ahead of those that it sends to by more than a phase, though sockets would take the bytes."""
    star = job([share("one-to-all", 1000)], 3, iterations=1)
    server, quick, late = star.connect_all()
    start_ns = time.monotonic_ns() + 100_000_000
    for worker, late_ms in ((server, 0), (quick, 0), (late, 300)):
        worker.say(f"start {start_ns + late_ms * 1_000_000}")
    (record,) = iterations(server.events())
    assert milliseconds(record) >= 300
    (record,) = iterations(quick.events())
    assert milliseconds(record) < 300


def test_in_every_pattern_a_peer_that_died_is_named(job: Callable[..., Any]) -> None:
    mesh = job([share("all-to-all", 100_000), COMPUTE], 3, iterations=1000)
    first, second, third = mesh.connect_all()
    mesh.begin()
    assert first.event()["iteration"] == 0
    third.process.kill()
    for worker in (first, second):
        error = worker.events()[-1]
        assert re.fullmatch(r"peer s\d \(.*\) closed the connection in iteration \d", error["message"])
        assert worker.status() == 1
    receiver, sender = job([share("all-to-one", 100_000), COMPUTE], 2, iterations=1000).connect_all()
    receiver.process.kill()
    assert sender.events() == [
        {"event": "error", "message": "peer s0 (127.0.0.1) closed the connection before the start"}
    ]


def test_workers_of_one_host_differ_in_their_ports(job: Callable[..., Any]) -> None:
    ports = [free_port(), free_port(), free_port()]
    hosts = [("s0", "127.0.0.1"), ("s0", "127.0.0.1"), ("s1", "127.0.0.2")]
    workers = [{"name": name, "address": at, "port": port} for (name, at), port in zip(hosts, ports, strict=True)]
    ring = job([ALLREDUCE], 3, iterations=2)
    ring.document["workers"] = workers
    ring.connect_all()
    ring.begin()
    for rank, worker in ring.workers.items():
        (flow,) = [event for event in worker.events() if event["event"] == "flow"]
        assert (flow["peer"], flow["peer_rank"]) == (hosts[(rank + 1) % 3][0], (rank + 1) % 3)
        assert flow["remote_port"] == ports[(rank + 1) % 3]
        assert worker.status() == 0


def test_flows_have_their_given_source_ports(job: Callable[..., Any]) -> None:
    ring = job([ALLREDUCE], connections=2, iterations=1)
    for rank, worker in enumerate(ring.document["workers"]):
        worker["source_port"] = 61_000 + 10 * rank
    ring.connect_all()
    ring.begin()
    for rank, worker in ring.workers.items():
        ports = [event["local_port"] for event in worker.events() if event["event"] == "flow"]
        assert ports == [61_000 + 10 * rank, 61_001 + 10 * rank]


@pytest.mark.parametrize("pxn", [False, True])
def test_connections_join_the_nics_that_their_numbers_say(job: Callable[..., Any], pxn: bool) -> None:
    """Worker 0 is next to NIC 0 of its host, worker 1 next to NIC 1; with PXN, NICs of one number are joined.

    Workers listen at all addresses, so those of one machine need ports of their own.
    """
    pair = job([share("all-to-one", 1000)], 2, connections=2, iterations=1)
    nics = [[f"127.0.{host}.1", f"127.0.{host}.2"] for host in (1, 2)]
    for rank, worker in enumerate(pair.document["workers"]):
        worker |= {"source_port": 61_000, "nics": nics[rank], "nic": rank, "port": free_port()}
    pair.document["pxn"] = pxn
    receiver, sender = pair.connect_all()
    port = pair.document["workers"][0]["port"]
    text = subprocess.run(["ss", "-Htn"], check=True, capture_output=True, text=True).stdout
    joined = {
        (own, other) for _, _, _, own, other, *_ in map(str.split, text.splitlines()) if other.endswith(f":{port}")
    }
    from_nics = (0, 1) if pxn else (1, 0)
    assert joined == {(f"{nics[1][from_nics[n]]}:{61_000 + n}", f"{nics[0][n]}:{port}") for n in (0, 1)}
    pair.begin()
    assert [worker.status() for worker in (receiver, sender)] == [0, 0]


def test_a_job_departs_wherever_it_is(job: Callable[..., Any]) -> None:
    """It is in its fourth iteration of 100 ms, on a quiet machine; whole iterations count."""
    phases = [{"name": "forward", "compute_ms": 50}, {"name": "allreduce", "bytes": 2_000_000, "alone_ms": 50}]
    ring = job(phases, 3, iterations=1000, departs_ms=380)
    ring.connect_all()
    start_ns = ring.begin()
    for worker in ring.workers.values():
        events = worker.events()
        ended_ns = time.monotonic_ns()
        assert worker.status() == 0, worker.errors()
        whole = len(iterations(events))
        assert 1 <= whole <= 3
        assert events[-1] == {"event": "done", "iterations": whole}
        assert iterations(events)[-1]["comm_end_ns"] <= start_ns + 380_000_000
        (flow,) = [event for event in events if event["event"] == "flow"]
        assert whole * 2_000_000 <= flow["bytes_acked"] < (whole + 1) * 2_000_000
        assert start_ns + 380_000_000 <= ended_ns < start_ns + 2_000_000_000


def test_a_job_that_is_done_before_it_departs_does_not_wait(job: Callable[..., Any]) -> None:
    ring = job([ALLREDUCE], iterations=2, departs_ms=60_000)
    ring.connect_all()
    ring.begin()
    for worker in ring.workers.values():
        assert worker.events()[-1] == {"event": "done", "iterations": 2}


def test_iterations_follow_each_other_on_both_clocks(job: Callable[..., Any]) -> None:
    ring = job([COMPUTE, ALLREDUCE])
    ring.connect_all()
    ring.begin()
    for worker in ring.workers.values():
        records = iterations(worker.events())
        for before, after in pairwise(records):
            assert after["start_ns"] == before["comm_end_ns"]
            assert after["start_utc_ns"] == before["comm_end_utc_ns"]
        for record in records:
            assert record["start_ns"] < record["compute_end_ns"] < record["comm_end_ns"]
            skew_ns = (time.time_ns() - time.monotonic_ns()) - (record["start_utc_ns"] - record["start_ns"])
            assert abs(skew_ns) < 20_000_000


@pytest.mark.quiet
def test_alone_an_iteration_takes_what_its_profile_says(job: Callable[..., Any], namespaces: Any) -> None:
    phases = [{"name": "forward", "compute_ms": 75}, {"name": "allreduce", "bytes": 6_000_000, "alone_ms": 75}]
    ring = job(phases, hosts=namespaces, iterations=12)
    ring.connect_all()
    ring.begin()
    for worker in ring.workers.values():
        records = iterations(worker.events())
        median_ms = statistics.median(milliseconds(record) for record in records)
        assert median_ms == pytest.approx(150, abs=1.5 + excused_ms(records))
        assert {milliseconds(record, end="compute_end_ns") for record in records} == {75}


@pytest.mark.quiet
def test_replay_sends_late_bytes_as_fast_as_the_network_takes_them(job: Callable[..., Any], namespaces: Any) -> None:
    """Demand is 400 Mbit/s for 20 ms, the link carries 100 Mbit/s, headers included: the link's time counts."""
    for host in namespaces:
        host.run("ip link set eth0 gso_max_size 9000")
        host.run("tc qdisc add dev eth0 root tbf rate 100mbit burst 20kb limit 5mb")
    ring = job([COMPUTE, {"name": "allreduce", "bytes": 1_000_000, "alone_ms": 20}], hosts=namespaces, iterations=8)
    ring.connect_all()
    ring.begin()
    least_ms = 1_000_000 * 8 / 100e6 * 1e3 * 1514 / 1448
    for worker in ring.workers.values():
        records = iterations(worker.events())
        took_ms = [milliseconds(record, "compute_end_ns") for record in records]
        pairs_ms = [
            statistics.mean(pair) for pair in pairwise(took_ms)
        ]  # after a late one, long and short ones alternate
        assert statistics.median(pairs_ms) == pytest.approx(least_ms, rel=0.06, abs=excused_ms(records))


def test_a_late_neighbour_holds_the_ring_back(job: Callable[..., Any]) -> None:
    """Step k needs step k-1: a worker that begins 60 ms later keeps the other's phase from ending."""
    ring = job([ALLREDUCE], iterations=1)
    first, second = ring.connect_all()
    start_ns = time.monotonic_ns() + 100_000_000
    first.say(f"start {start_ns}")
    second.say(f"start {start_ns + 60_000_000}")
    (record,) = iterations(first.events())
    assert milliseconds(record) >= 80
    (record,) = iterations(second.events())
    assert milliseconds(record) >= 20


def test_jitter_is_of_the_seed_and_the_same_for_all_workers(job: Callable[..., Any]) -> None:
    ring = job([{"name": "forward", "compute_ms": 100}], jitter=0.05, seed=7)
    ring.connect_all()
    ring.begin()
    # mt19937_64 seeded with 7 ^ fnv1a("j1"), Box and Muller.
    expected_ms = [106.936667716672, 106.980963244225, 103.992961035819]
    for worker in ring.workers.values():
        for record, expected in zip(iterations(worker.events()), expected_ms, strict=True):
            assert milliseconds(record, end="compute_end_ns") == pytest.approx(expected, abs=1e-5)


def test_one_worker_may_compute_for_longer_than_the_job_says(job: Callable[..., Any]) -> None:
    pair = job([{"name": "forward", "compute_ms": 100}], jitter=0)
    workers = [pair.connect(0), pair.connect(1, own=("--computing", "1.5"))]
    assert [worker.event()["event"] for worker in workers] == ["ready"] * 2
    pair.begin()
    for worker, expected in zip(workers, [100, 150], strict=True):
        for record in iterations(worker.events()):
            assert milliseconds(record, end="compute_end_ns") == pytest.approx(expected, abs=1e-5)


def test_a_job_begins_at_its_offset_after_the_agreed_start(job: Callable[..., Any]) -> None:
    ring = job([ALLREDUCE], iterations=1, begins_ms=50)
    ring.connect_all()
    start_ns = ring.begin()
    for worker in ring.workers.values():
        (record,) = iterations(worker.events())
        assert record["start_ns"] == start_ns + 50_000_000


def test_an_early_iteration_waits_for_its_timetable(job: Callable[..., Any]) -> None:
    """Iterations of 60 ms and more, set to begin every 300: a machine that holds them up for longer misses turns."""
    timetable = {"shift_ms": 50, "period_ms": 300, "threshold_ms": 20, "late_ms": 60}
    ring = job([COMPUTE, ALLREDUCE], iterations=3, begins_ms=50, timetable=timetable)
    ring.connect_all()
    start_ns = ring.begin()
    for worker in ring.workers.values():
        first, *later = iterations(worker.events())
        assert (first["start_ns"], first["delay_ns"]) == (start_ns + 50_000_000, 0)
        for before, record in pairwise([first, *later]):
            assert record["start_ns"] == before["comm_end_ns"], "the delay is the iteration's own"
            begins_ns = record["start_ns"] + record["delay_ns"]
            off_ns = (begins_ns - start_ns - 50_000_000) % 300_000_000
            assert off_ns == 0 if record["delay_ns"] else off_ns <= 60_000_000 or off_ns >= 280_000_000
            assert record["compute_end_ns"] == begins_ns + 40_000_000


def test_a_neighbour_that_comes_later_is_waited_for(job: Callable[..., Any]) -> None:
    ring = job([ALLREDUCE])
    first = ring.connect(0)
    time.sleep(0.5)
    second = ring.connect(1)
    assert [worker.event() for worker in (first, second)] == [{"event": "ready"}] * 2


def test_sigterm_ends_it_and_says_so(job: Callable[..., Any]) -> None:
    ring = job(LONG, iterations=100)
    first, _ = ring.connect_all()
    ring.begin()
    assert first.event()["event"] == "iteration"
    first.terminate()
    assert first.events()[-1] == {"event": "stopped", "reason": "SIGTERM", "iterations": 1}
    assert first.status() == 3


@pytest.mark.parametrize("begun", [False, True])
def test_closed_input_ends_it_and_says_so(job: Callable[..., Any], begun: bool) -> None:
    ring = job(LONG, iterations=100)
    first, _ = ring.connect_all()
    if begun:
        ring.begin()
    first.close_input()
    assert first.events()[-1] == {"event": "stopped", "reason": "standard input closed", "iterations": 0}
    assert first.status() == 3


def test_closed_input_ends_it_while_it_connects(job: Callable[..., Any]) -> None:
    alone = job([ALLREDUCE]).connect(0)
    alone.close_input()
    assert alone.events() == [{"event": "stopped", "reason": "standard input closed", "iterations": 0}]
    assert alone.status() == 3


def test_a_reader_that_is_gone_ends_it(job: Callable[..., Any]) -> None:
    ring = job(LONG, iterations=100)
    first, _ = ring.connect_all()
    first.process.stdout.close()
    ring.begin()
    assert first.status() == 3


def test_both_neighbours_name_a_peer_that_died(job: Callable[..., Any]) -> None:
    ring = job(LONG, workers=4, iterations=100)
    workers = ring.connect_all()
    ring.begin()
    assert workers[2].event()["iteration"] == 0
    workers[2].process.kill()
    said = []
    for rank in (1, 3):
        error = workers[rank].events()[-1]
        assert workers[rank].status() == 1
        assert error["message"] in workers[rank].errors()
        said.append(error["message"])
    assert any(re.fullmatch(r"peer s2 \(127\.0\.0\.3\) closed the connection in iteration [01]", text) for text in said)
    # The other neighbour names s2 too, or the first one, if that was quicker to end.
    assert all(re.fullmatch(r"peer s\d \(.*\) closed the connection in iteration [01]", text) for text in said)


def test_a_peer_that_died_before_the_start_is_named(job: Callable[..., Any]) -> None:
    first, second = job(LONG).connect_all()
    second.process.kill()
    assert first.events() == [
        {"event": "error", "message": "peer s1 (127.0.0.2) closed the connection before the start"}
    ]
    assert first.status() == 1


def test_a_worker_of_another_job_is_refused_with_the_reason(job: Callable[..., Any]) -> None:
    ring = job([ALLREDUCE])
    ours = ring.connect(0)
    stranger = ring.connect(1, name="j2", workers=elsewhere(ring, 1))
    (error,) = stranger.events()
    assert error["message"] == "peer s0 (127.0.0.1) refused us: expected job j1 rank 1, found job j2 rank 1"
    assert stranger.status() == 1
    ring.connect(1)
    assert ours.event() == {"event": "ready"}


def test_a_worker_with_another_job_document_is_refused(job: Callable[..., Any]) -> None:
    ring = job([ALLREDUCE])
    ring.connect(0)
    (error,) = ring.connect(1, workers=elsewhere(ring, 1)).events()
    assert "rank 1 received another job" in error["message"]


@pytest.mark.parametrize("words", [b"GET / HTTP/1.1\r\n", b"roundabout-replay-3 open-sesamE j1 1 0 1"])
def test_a_connection_without_the_secret_gets_no_answer(job: Callable[..., Any], words: bytes) -> None:
    ring = job([ALLREDUCE])
    ours = ring.connect(0)
    for _ in range(100):
        try:
            stray = socket.create_connection(("127.0.0.1", ring.document["workers"][0]["port"]))
            break
        except ConnectionRefusedError:
            time.sleep(0.01)
    with stray:
        stray.sendall(words.ljust(256, b"\0"))
        assert stray.recv(256) == b""
    second = ring.connect(1)
    assert [worker.event() for worker in (ours, second)] == [{"event": "ready"}] * 2


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("go", "expected `start MONOTONIC_NS` on standard input, found `go`"),
        ("start", "expected `start MONOTONIC_NS` on standard input, found `start`"),
        ("start 12x", "expected `start MONOTONIC_NS` on standard input, found `start 12x`"),
    ],
)
def test_an_invalid_start_line_is_shown(job: Callable[..., Any], line: str, complaint: str) -> None:
    first, _ = job([ALLREDUCE]).connect_all()
    first.say(line)
    assert first.events() == [{"event": "error", "message": complaint}]


def test_a_start_in_the_past_is_refused(job: Callable[..., Any]) -> None:
    first, _ = job([ALLREDUCE]).connect_all()
    first.say(f"start {time.monotonic_ns() - 5_000_000}")
    (error,) = first.events()
    assert error["message"].endswith("us ago when it was read; agree on a later one")


def test_an_address_of_another_host_is_named(job: Callable[..., Any]) -> None:
    (error,) = (ring := job([ALLREDUCE])).connect(0, workers=elsewhere(ring, 0, "192.0.2.1")).events()
    assert error["message"].startswith("cannot bind to own address 192.0.2.1 port")


def test_bad_usage_prints_no_record(start: Callable[..., Any]) -> None:
    program = start("replay", "--rank", "x")
    assert program.lines() == []
    assert program.status() == 2
    assert program.errors()


def test_help_shows_how_it_is_used(start: Callable[..., Any]) -> None:
    program = start("replay", "--help")
    text = "\n".join(program.lines())
    assert program.status() == 0
    assert "--rank" in text
    assert "--job" in text
    assert "Exit status" in text


def test_rdma_without_a_device_of_that_address_is_refused(start: Callable[..., Running]) -> None:
    there = [(f"s{rank}", f"127.0.0.{rank + 1}", free_port()) for rank in range(2)]
    worker = start("replay-rdma", "--rank", "0", "--job", json.dumps(job_document("j1", there, LONG)))
    worker.say(f"secret {SECRET}")
    said = worker.event()
    assert said["event"] == "error"
    assert re.match("RDMA: cannot (use this host's connection manager|find a device with own address)", said["message"])
    assert worker.status() == 1
