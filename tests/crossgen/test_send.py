# SPDX-License-Identifier: Apache-2.0
"""Senders and sinks: what is sent, how it is timed, and what is reported when something breaks."""

import itertools
import json
import os
import re
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.crossgen.conftest import CROSSGEN, SECRET, Link, Outcome, outcome, show
from tests.running import Running

pytestmark = [pytest.mark.lab, pytest.mark.quiet]

Start = Callable[..., Running]
Sink = Callable[..., tuple[Running, str]]
Plan = Callable[..., Path]
Raw = Callable[[str], socket.socket]


def test_all_flows_arrive_and_are_reported(plan: Plan, sink: Sink, send: Start) -> None:
    load = plan(0.1, 1)
    receiver, address = sink()
    sender = send(load, "--line-rate-gbps", "10", "--base-rtt-us", "20", to=f"sink={address}")
    planned = show(load)
    assert sender.event() == {"event": "ready", "flows": len(planned)}
    start_ns = sender.begin()
    report = outcome(sender)
    assert report.status == 0
    assert report.last == {"event": "done", "not_listed": 0, "dropped_lines": 0}
    assert [(row["bytes"], start_ns + int(row["start_ns"])) for row in planned] == [
        (str(flow["bytes"]), flow["intended_ns"]) for flow in report.flows
    ]
    assert all(flow["intended_ns"] <= flow["start_ns"] < flow["end_ns"] for flow in report.flows)
    summary = report.summary
    assert summary["ended"] == "done" and not report.unfinished
    assert summary["finished_flows"] == len(planned)
    assert summary["achieved_gbps"] == pytest.approx(summary["offered_gbps"], rel=0.02)
    for name in ("lateness_us", "completion_us", "slowdown"):
        histogram = summary[name]
        assert histogram["count"] == len(planned)
        assert 0 < histogram["p50"] <= histogram["p99"] <= histogram["max"]
    receiver.close_input()
    (end,) = receiver.events()
    assert (end["flows"], end["bytes"]) == (len(planned), sum(int(row["bytes"]) for row in planned))
    assert (end["dropped_connections"], end["refused_connections"]) == (0, 0)
    assert receiver.status() == 0


def test_each_destination_gets_its_flows(plan: Plan, sink: Sink, send: Start) -> None:
    load = plan(0.1, 0.5, "--destinations", "a,b")
    sinks = {name: sink() for name in "ab"}
    sender = send(load, to=",".join(f"{name}={address}" for name, (_, address) in sinks.items()))
    sender.event()
    sender.begin()
    report = outcome(sender)
    for name, (receiver, _) in sinks.items():
        receiver.close_input()
        assert receiver.events()[0]["flows"] == sum(flow["destination"] == name for flow in report.flows) > 0


@pytest.mark.parametrize("more", [[], ["--fresh-connections"]])
def test_connections_come_from_the_given_address(plan: Plan, sink: Sink, send: Start, more: list[str]) -> None:
    receiver, address = sink()
    sender = send(plan(0.1, 0.5), "--bind", "127.0.0.77:0", *more, to=f"sink={address}")
    sender.event()
    listed = subprocess.run(["ss", "-Htn", "src", "127.0.0.77"], capture_output=True, text=True, check=True).stdout
    assert address in listed
    sender.begin()
    assert outcome(sender).status == 0
    receiver.close_input()


def test_flows_due_in_the_warm_up_are_not_measured(plan: Plan, sink: Sink, send: Start) -> None:
    load = plan(0.1, 1)
    sender = send(load, "--warm-up-s", "0.5", to=f"sink={sink()[1]}")
    sender.event()
    start_ns = sender.begin()
    report = outcome(sender)
    measured = [flow for flow in report.flows if flow["measured"]]
    assert all((flow["intended_ns"] - start_ns >= 5e8) == flow["measured"] for flow in report.flows)
    assert report.summary["measured_flows"] == report.summary["completion_us"]["count"] == len(measured)


@pytest.mark.quiet
def test_the_load_is_what_a_shaped_link_carries(plan: Plan, sink: Sink, send: Start, link: Link) -> None:
    link.shape(250)
    load = plan(0.125, 3, "--seed", "3")
    sender = send(load, "--warm-up-s", "0.5", to=f"sink={sink(link=link)[1]}", link=link)
    sender.event()
    sender.begin()
    report = outcome(sender)
    assert report.summary["lagging_share"] < 0.1  # a busy machine may not hold it, to 1 %
    assert report.summary["achieved_gbps"] == pytest.approx(report.summary["offered_gbps"], rel=0.03)


@pytest.mark.quiet
def test_a_load_above_the_link_is_said_and_goes_on(plan: Plan, sink: Sink, send: Start, link: Link) -> None:
    link.shape(100)
    load = plan(0.3, 1.5)
    sender = send(load, "--drain-s", "0.2", "--most-connections", "32", to=f"sink={sink(link=link)[1]}", link=link)
    sender.event()
    sender.begin()
    report = outcome(sender)
    assert report.status == 0 and report.complete
    assert report.summary["schedule_held"] is False
    assert report.summary["achieved_gbps"] == pytest.approx(0.095, rel=0.1)
    assert "the load was more than the network or this host took" in report.summary["notices"][-1]
    assert {flow["why"] for flow in report.unfinished} == {"under way", "no connection was free"}


def test_flows_that_may_not_wait_are_given_up_and_named(plan: Plan, sink: Sink, send: Start, link: Link) -> None:
    link.shape(10)
    limits = ["--most-waiting", "5", "--connections", "2", "--most-connections", "2", "--drain-s", "0"]
    sender = send(plan(0.1, 0.5), *limits, to=f"sink={sink(link=link)[1]}", link=link)
    sender.event()
    sender.begin()
    report = outcome(sender)
    assert report.complete
    assert "5 flows were waiting for a connection already" in {flow["why"] for flow in report.unfinished}


def test_results_beyond_the_limit_are_counted(plan: Plan, sink: Sink, send: Start) -> None:
    sender = send(plan(0.1, 0.5), "--most-results", "10", to=f"sink={sink()[1]}")
    sender.event()
    sender.begin()
    report = outcome(sender)
    assert len(report.flows) == 10
    assert report.last["not_listed"] == report.summary["finished_flows"] - 10 > 0
    assert report.summary["completion_us"]["count"] == report.summary["finished_flows"]


@pytest.mark.parametrize("how", ["standard input closed", "SIGTERM"])
def test_an_early_end_reports_all_so_far(plan: Plan, sink: Sink, send: Start, how: str) -> None:
    sender = send(plan(0.1, 30), to=f"sink={sink()[1]}")
    sender.event()
    sender.begin()
    time.sleep(0.5)
    sender.terminate() if how == "SIGTERM" else sender.close_input()
    report = outcome(sender)
    assert report.status == 0 and report.complete
    assert report.summary["ended"] == how
    assert 0 < report.summary["due_flows"] < report.summary["planned_flows"]


def outlived(sender: Running, sink: Running) -> Outcome:
    """What a sender reports whose sink is killed amid its load."""
    sender.event()
    sender.begin()
    time.sleep(0.6)
    sink.process.kill()
    report = outcome(sender)
    assert report.status == 1 and report.complete
    return report


def test_a_sink_that_dies_is_named_and_nothing_is_lost(plan: Plan, sink: Sink, send: Start, link: Link) -> None:
    link.shape(50)
    receiver, address = sink(link=link)
    sender = send(plan(0.06, 30), to=f"sink={address}", link=link)
    report = outlived(sender, receiver)
    assert report.last["event"] == "error"
    assert report.last["message"].startswith(f"sink sink ({address}) closed the connection; ")
    assert report.last["message"] in sender.errors()
    assert report.flows and report.unfinished


def test_sent_flows_are_reported_if_the_host_runs_out_of_sockets(plan: Plan, sink: Sink, send: Start) -> None:
    sender = send(plan(0.1, 30), "--connections", "1", to=f"sink={sink()[1]}")
    sender.event()
    pid = sender.process.pid
    known = max(int(fd) for fd in os.listdir(f"/proc/{pid}/fd")) + 1
    status = Path(f"/proc/{pid}/status").read_text()
    owner = dict(re.findall(r"^(Uid|Gid):\s+(\d+)", status, re.MULTILINE))
    is_ours = owner["Uid"] == str(os.getuid())
    who = [] if is_ours else ["setpriv", f"--reuid={owner['Uid']}", f"--regid={owner['Gid']}", "--clear-groups"]
    subprocess.run([*who, "prlimit", f"--pid={pid}", f"--nofile={known}:{known}"], check=True)  # its own user may
    sender.begin()
    report = outcome(sender)
    assert report.status == 1 and report.complete
    assert "Too many open files" in report.summary["ended"]
    assert report.summary["ended"] in sender.errors()


@pytest.mark.quiet
def test_other_sinks_continue_after_one_dies(plan: Plan, sink: Sink, send: Start) -> None:
    load = plan(0.1, 1.5, "--destinations", "a,b")
    (dying, one), (_, other) = sink(), sink()
    sender = send(load, to=f"a={one},b={other}")
    sender.event()
    sender.begin()
    time.sleep(0.5)
    dying.process.kill()
    report = outcome(sender)
    assert report.status == 1 and report.complete
    assert {flow["destination"] for flow in report.unfinished} == {"a"}
    assert max(flow["end_ns"] for flow in report.flows) - report.summary["start_ns"] > 1.3e9


def test_a_damaged_load_file_is_refused(plan: Plan, send: Start) -> None:
    load = plan(0.1, 0.5)
    data = bytearray(load.read_bytes())
    data[-100] ^= 1
    load.write_bytes(data)
    sender = send(load, to="sink=127.0.0.1:9")
    assert sender.status() == 1
    assert str(load) in sender.errors()


@pytest.mark.parametrize(
    ("options", "to", "complaint"),
    [
        ([], "other=127.0.0.1:9", "--to: expected sink=IPV4_ADDRESS:PORT, a destination of"),
        (["--warm-up-s", "9"], "sink=127.0.0.1:9", "--warm-up-s: expected less than the load's duration, 0.5"),
        (["--bind", "192.0.2.1:0"], "sink=127.0.0.1:9", "cannot send from 192.0.2.1:0: Cannot assign"),
        (["--class", "consistent:cc=nosuch"], "sink=127.0.0.1:9", "cannot use congestion control nosuch"),
    ],
)
def test_options_that_do_not_fit_the_load_are_refused(
    plan: Plan, send: Start, options: list[str], to: str, complaint: str
) -> None:
    sender = send(plan(0.1, 0.5), *options, to=to)
    assert sender.status() == 1
    assert complaint in sender.errors()


def test_another_secret_is_refused(plan: Plan, sink: Sink, send: Start) -> None:
    receiver, address = sink()
    sender = send(plan(0.1, 0.5), secret="open-sesamE", to=f"sink={address}")
    time.sleep(0.3)
    sender.close_input()
    assert sender.status() == 0
    receiver.close_input()
    (end,) = receiver.events()
    assert end["refused_connections"] > 0 and end["flows"] == 0


def test_a_port_in_use_is_named(sink: Sink, start: Start) -> None:
    _, address = sink()
    second = start([CROSSGEN, "sink", "--bind", address])
    assert second.status() == 1
    assert second.errors() == f"crossgen: cannot listen at {address}: Address already in use\n"


@pytest.mark.parametrize(
    ("line", "complaint"),
    [("go", "expected `start MONOTONIC_NS` on standard input, found `go`"), ("start 5", "agree on a later one")],
)
def test_an_invalid_start_line_is_refused(plan: Plan, sink: Sink, send: Start, line: str, complaint: str) -> None:
    sender = send(plan(0.1, 0.5), to=f"sink={sink()[1]}")
    sender.event()
    sender.say(line)
    assert sender.status() == 1
    assert complaint in sender.errors()


def test_classes_have_their_own_dscp_and_congestion_control(plan: Plan, sink: Sink, send: Start, link: Link) -> None:
    load = plan(0.1, 0.5, "--burst-width-us", "1000")
    classes = ["--class", "burst:dscp=10:cc=cubic", "--class", "quiet:dscp=8"]
    sender = send(load, *classes, "--connections", "3", to=f"sink={sink('--dscp', '9', link=link)[1]}", link=link)
    sender.event()
    sockets = link.run(0, "ss -Htni --tos dst 10.98.0.2")
    found = re.findall(r"tos:(\w+).*\n\s+(\w+)", sockets)
    assert sorted(found) == [("0x20", "reno")] * 3 + [("0x28", "cubic")] * 3
    assert re.findall(r"tos:(\w+)", link.run(1, "ss -Htni --tos dst 10.98.0.1")) == ["0x24"] * 6
    sender.begin()
    report = outcome(sender)
    assert report.summary["classes"] == [
        {"class": "burst", "dscp": 10, "congestion_control": "cubic"},
        {"class": "quiet", "dscp": 8, "congestion_control": None},
    ]
    assert report.summary["unfinished_flows"] == 0


@pytest.fixture
def raw(stack: ExitStack) -> Callable[[str], socket.socket]:
    def connect(address: str) -> socket.socket:
        host, port = address.split(":")
        return stack.enter_context(socket.create_connection((host, int(port)), timeout=20))

    return connect


HELLO = b"rbcross1" + SECRET.encode().ljust(64, b"\0")


def test_strangers_do_a_sink_no_harm(plan: Plan, sink: Sink, send: Start, raw: Raw) -> None:
    """More than it has room for: silent ones, noisy ones, and some that have the secret and then talk rubbish."""
    receiver, address = sink()
    strangers = [raw(address) for _ in range(100)]
    for number, stranger in enumerate(strangers):
        if number % 2:
            stranger.sendall(b"GET / HTTP/1.1\r\n".ljust(72, b"x"))
    rude = [raw(address) for _ in range(3)]
    for guest in rude:
        guest.sendall(HELLO)
        assert guest.recv(8) == b"welcome\n"
    rude[0].sendall(struct.pack("<QQ", 1, 0))  # a flow of no bytes
    assert rude[0].recv(8) == b""
    rude[1].sendall(struct.pack("<QQ", 1, 2**63))
    assert rude[1].recv(8) == b""
    rude[2].sendall(struct.pack("<QQ", 1, 100) + b"x" * 50)
    rude[2].close()  # half a flow
    sender = send(plan(0.1, 0.5), to=f"sink={address}")
    sender.event()
    sender.begin()
    assert outcome(sender).summary["unfinished_flows"] == 0
    receiver.close_input()
    (end,) = receiver.events()
    assert end["dropped_connections"] == 3
    assert end["refused_connections"] >= 50  # those that were noisy


@pytest.mark.quiet
def test_a_silent_connection_is_closed_by_the_sink(sink: Sink, raw: Raw) -> None:
    _, address = sink()
    guest = raw(address)
    guest.sendall(HELLO[:71])
    before = time.monotonic()
    assert guest.recv(8) == b""
    assert 4 < time.monotonic() - before < 8


def test_a_sink_has_room_for_so_many_and_no_more(sink: Sink, raw: Raw) -> None:
    receiver, address = sink("--most-connections", "4")
    for answer in [b"welcome\n"] * 4 + [b""]:
        guest = raw(address)
        guest.sendall(HELLO)
        assert guest.recv(8) == answer
    receiver.close_input()
    assert receiver.status() == 0
    assert "4 are open; allow more with --most-connections" in receiver.errors()


@pytest.mark.parametrize("program", ["sink", "send"])
def test_a_waiting_program_ends_when_its_stdin_closes(plan: Plan, sink: Sink, send: Start, program: str) -> None:
    receiver, address = sink()
    running = receiver
    if program == "send":
        running = send(plan(0.1, 0.5), to=f"sink={address}")
        running.event()
    running.close_input()
    assert running.status() == 0


def test_lines_are_json_whatever_the_names(plan: Plan, sink: Sink, send: Start) -> None:
    sender = send(plan(0.1, 0.1, "--destinations", 'a"\\é'), to=f'a"\\é={sink()[1]}')
    sender.event()
    sender.begin()
    report = outcome(sender)
    assert {flow["destination"] for flow in report.flows} == {'a"\\é'}
    assert json.dumps(report.summary)


def test_fresh_connections_carry_one_flow_each(plan: Plan, sink: Sink, send: Start) -> None:
    load = plan(0.1, 1)
    receiver, address = sink()
    sender = send(load, "--fresh-connections", to=f"sink={address}")
    planned = show(load)
    assert sender.event() == {"event": "ready", "flows": len(planned)}
    sender.begin()
    report = outcome(sender)
    assert report.status == 0 and report.complete and not report.unfinished
    assert report.summary["connections"] == len(planned) + 1  # and the one that shows that the sink is there
    assert report.summary["achieved_gbps"] == pytest.approx(report.summary["offered_gbps"], rel=0.02)
    assert all(flow["intended_ns"] <= flow["start_ns"] < flow["end_ns"] for flow in report.flows)
    receiver.close_input()
    (end,) = receiver.events()
    assert (end["flows"], end["bytes"]) == (len(planned), sum(int(row["bytes"]) for row in planned))
    assert (end["dropped_connections"], end["refused_connections"]) == (0, 0)


def test_fresh_connections_wait_for_a_place_and_all_are_reported(plan: Plan, sink: Sink, send: Start) -> None:
    sender = send(plan(0.1, 1), "--fresh-connections", "--most-connections", "1", to=f"sink={sink()[1]}")
    sender.event()
    sender.begin()
    report = outcome(sender)
    assert report.complete and not report.unfinished
    alone = sorted((flow["start_ns"], flow["end_ns"]) for flow in report.flows)
    # A place is given on as a flow ends, a moment before or after its end is reported.
    assert all(begin_ns > end_ns - 1_000_000 for (_, end_ns), (begin_ns, _) in itertools.pairwise(alone))


def test_fresh_connections_end_with_their_sink(plan: Plan, sink: Sink, send: Start) -> None:
    receiver, address = sink()
    sender = send(plan(0.1, 30), "--fresh-connections", to=f"sink={address}")
    report = outlived(sender, receiver)
    assert address in report.last["message"]


def test_fresh_connections_stop_at_sigterm(plan: Plan, sink: Sink, send: Start) -> None:
    sender = send(plan(0.1, 30), "--fresh-connections", to=f"sink={sink()[1]}")
    sender.event()
    sender.begin()
    time.sleep(0.5)
    sender.terminate()
    report = outcome(sender)
    assert report.status == 0 and report.complete
    assert report.summary["ended"] == "SIGTERM"


@pytest.fixture
def refusing_sink(stack: ExitStack) -> Callable[[int], str]:
    """A sink that closes some fresh connections without an answer; it returns its address."""

    def serve(listener: socket.socket, refusals: int) -> None:
        for number in itertools.count():
            try:
                peer = stack.enter_context(listener.accept()[0])
            except OSError:
                return
            if 0 < number <= refusals:  # the first connection shows that the sink is there
                peer.close()
                continue
            threading.Thread(target=answer, args=(peer,), daemon=True).start()

    def answer(peer: socket.socket) -> None:
        stream = peer.makefile("rb")
        if stream.read(len(HELLO)) != HELLO:
            return
        peer.sendall(b"welcome\n")
        if header := stream.read(16):
            number, size = struct.unpack("<QQ", header)
            stream.read(size)
            peer.sendall(struct.pack("<Q", number))

    def start(refusals: int) -> str:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        threading.Thread(target=serve, args=(listener, refusals), daemon=True).start()
        return f"127.0.0.1:{listener.getsockname()[1]}"

    return start


def test_flows_whose_connection_is_closed_without_an_answer_get_another_one(
    plan: Plan, refusing_sink: Callable[[int], str], send: Start
) -> None:
    sender = send(plan(0.02, 0.5), "--fresh-connections", to=f"sink={refusing_sink(5)}")
    sender.event()
    sender.begin()
    report = outcome(sender)
    assert report.status == 0 and report.complete and not report.unfinished
    assert report.summary["started_flows"] == report.summary["lateness_us"]["count"] == report.summary["due_flows"] > 5
    assert report.summary["connections"] == report.summary["due_flows"] + 1 + 5


def test_a_flow_that_gets_no_connection_is_unfinished_and_the_sink_is_not_lost(
    plan: Plan, refusing_sink: Callable[[int], str], send: Start
) -> None:
    sender = send(plan(0.02, 0.5), "--fresh-connections", "--drain-s", "0.2", to=f"sink={refusing_sink(10**6)}")
    sender.event()
    sender.begin()
    report = outcome(sender)
    assert report.status == 0 and report.complete and not report.flows
    assert {flow["why"] for flow in report.unfinished} <= {"was connecting", "under way"}


@pytest.mark.quiet
def test_thousands_of_fresh_connections_at_once_all_enter(plan: Plan, sink: Sink, send: Start, tmp_path: Path) -> None:
    sizes = tmp_path / "sizes"
    sizes.write_text("1500 1\n")
    load = plan(0.3, 0.1, "--sizes", str(sizes), scale=1)  # 2,500 flows
    receiver, address = sink()
    sender = send(load, "--fresh-connections", "--most-connections", "1024", "--drain-s", "30", to=f"sink={address}")
    sender.event()
    sender.begin()
    report = outcome(sender)
    assert report.status == 0 and not report.unfinished
    receiver.close_input()
    assert receiver.events()[0]["refused_connections"] == 0
