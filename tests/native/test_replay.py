# SPDX-License-Identifier: Apache-2.0
"""replay as a whole: real processes and sockets, on loopback and between namespaces."""

import re
import socket
import statistics
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

COMPUTE = {"name": "forward", "compute_ms": 40}
ALLREDUCE = {"name": "allreduce", "bytes": 1_000_001, "alone_ms": 20}
LONG = [{"name": "forward", "compute_ms": 10}, {"name": "allreduce", "bytes": 2_000_000, "alone_ms": 200}]


def iterations(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [event for event in events if event["event"] == "iteration"]


def milliseconds(event: dict[str, Any], start: str = "start_ns", end: str = "comm_end_ns") -> float:
    return (event[end] - event[start]) / 1e6


def excused_ms(events: list[dict[str, Any]]) -> float:
    """What a busy machine may add: how late the worker's own sleeps were."""
    return 2 * statistics.median(event["late_ns"] for event in events) / 1e6


@pytest.mark.parametrize(("workers", "flows"), [(2, 1), (4, 3)])
def test_every_byte_arrives_once(job: Callable[..., Any], workers: int, flows: int) -> None:
    ring = job([COMPUTE, ALLREDUCE, ALLREDUCE], workers, flows=flows, iterations=4)
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
        assert {event["remote_port"] for event in sent} == {ring.options["port"]}
        assert sum(event["bytes_acked"] for event in sent) == 4 * 2_000_002
        assert records[0]["start_ns"] == start_ns


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


def test_what_lags_is_sent_as_fast_as_the_network_takes_it(job: Callable[..., Any], namespaces: Any) -> None:
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
        took_ms = statistics.median(milliseconds(record, "compute_end_ns") for record in records)
        assert took_ms == pytest.approx(least_ms, rel=0.06, abs=excused_ms(records))


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


def test_a_job_begins_its_offset_after_the_agreed_start(job: Callable[..., Any]) -> None:
    ring = job([ALLREDUCE], iterations=1, **{"start-offset-ms": 50})
    ring.connect_all()
    start_ns = ring.begin()
    for worker in ring.workers.values():
        (record,) = iterations(worker.events())
        assert record["start_ns"] == start_ns + 50_000_000


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


def test_a_worker_of_another_job_is_refused_and_told_why(job: Callable[..., Any]) -> None:
    ring = job([ALLREDUCE])
    ours = ring.connect(0)
    stranger = ring.connect(1, job="j2", addresses="127.0.0.1,127.0.0.9")
    (error,) = stranger.events()
    assert error["message"] == "peer s0 (127.0.0.1) refused us: expected job j1 rank 1, found job j2 rank 1"
    assert stranger.status() == 1
    ring.connect(1)
    assert ours.event() == {"event": "ready"}


def test_a_worker_that_was_told_something_else_is_refused(job: Callable[..., Any]) -> None:
    ring = job([ALLREDUCE])
    ring.connect(0)
    (error,) = ring.connect(1, addresses="127.0.0.1,127.0.0.9").events()
    assert "rank 1 was given other options" in error["message"]


def test_a_connection_that_is_no_worker_does_no_harm(job: Callable[..., Any]) -> None:
    ring = job([ALLREDUCE])
    ours = ring.connect(0)
    for _ in range(100):
        try:
            stray = socket.create_connection(("127.0.0.1", ring.options["port"]))
            break
        except ConnectionRefusedError:
            time.sleep(0.01)
    with stray:
        stray.sendall(b"GET / HTTP/1.1\r\n".ljust(256, b"\0"))
        assert stray.recv(256).rstrip(b"\0") == b"expected a replay worker's hello, found something else"
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
def test_what_is_no_start_is_shown(job: Callable[..., Any], line: str, complaint: str) -> None:
    first, _ = job([ALLREDUCE]).connect_all()
    first.say(line)
    assert first.events() == [{"event": "error", "message": complaint}]


def test_a_start_in_the_past_is_refused(job: Callable[..., Any]) -> None:
    first, _ = job([ALLREDUCE]).connect_all()
    first.say(f"start {time.monotonic_ns() - 5_000_000}")
    (error,) = first.events()
    assert error["message"].endswith("us ago when it was read; agree on a later one")


def test_an_address_of_another_host_is_named(job: Callable[..., Any]) -> None:
    (error,) = job([ALLREDUCE], addresses="192.0.2.1,192.0.2.2").connect(0).events()
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
    assert "--start-offset-ms" in text
    assert "Exit status" in text
