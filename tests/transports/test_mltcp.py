# SPDX-License-Identifier: Apache-2.0
"""MLTCP over real sockets of programs without a change for it: what it counts, what it learns, and what F does."""

import json
import subprocess
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from roundabout.runner.machine.process_leftovers import process_name
from tests.deadline import wait_for

pytestmark = [pytest.mark.lab, pytest.mark.quiet]

WINDOWS = ("mltcp_reno", "mltcp_cubic", "mltcp_dctcp")
EVERY = (*WINDOWS, "mltcp_dcqcn")

# Takes what comes over any number of connections, and says how much that was and its hash, one line each.
SINK = """
import hashlib, socket, sys, threading
listener = socket.create_server(("", 5001)); print("ready", flush=True)
def take(connection):
    digest, total = hashlib.sha256(), 0
    while taken := connection.recv(1 << 18): digest.update(taken); total += len(taken)
    found.append(f"{total} {digest.hexdigest()}")  # printed at the end: threads that print mix their words
found = []
takers = [threading.Thread(target=take, args=listener.accept()[:1]) for _ in range(int(sys.argv[1]))]
for taker in takers: taker.start()
for taker in takers: taker.join()
print(*found, sep="\\n")
"""
# Sends the same bytes over each connection, iteration after iteration: ADDRESS SOCKETS BYTES COMPUTE_S ITERATIONS
JOB = """
import hashlib, random, socket, sys, time
address, sockets, size, compute_s, iterations = sys.argv[1], *(float(each) for each in sys.argv[2:])
block = random.Random(1).randbytes(int(size))
connections = [socket.create_connection((address, 5001)) for _ in range(int(sockets))]
sent = hashlib.sha256(block * int(iterations)).hexdigest()
for _ in range(int(iterations)):
    time.sleep(compute_s)
    for connection in connections: connection.sendall(block)
for connection in connections: connection.close()  # at once: a FIN after a silence would begin another iteration
print(sent)
"""
# Sends for some seconds, and says how many bytes were acknowledged (tcpi_bytes_acked): ADDRESS SECONDS
STREAM = """
import socket, struct, sys, time
connection = socket.create_connection((sys.argv[1], 5001)); connection.settimeout(0.2)
end = time.monotonic() + float(sys.argv[2])
while time.monotonic() < end:
    try: connection.send(bytes(1 << 16))
    except TimeoutError: pass
print(struct.unpack_from("Q", connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256), 120)[0])
"""


def sysctl(namespaces: Any, name: str) -> None:
    for each in namespaces:
        each.run("sysctl", "-qw", f"net.ipv4.tcp_congestion_control=rb_{name}", "net.ipv4.tcp_ecn=1")


def play(sender: Any, receiver: Any, *, sockets: int = 1, size: int = 400_000, wait_s: float = 0.1, rounds: int = 1,
         before: tuple[str, ...] = ()) -> None:  # fmt: skip
    """A job's iterations; fails unless all arrives as it was sent."""
    with subprocess.Popen(
        ["ip", "netns", "exec", receiver.name, "/usr/bin/python3", "-c", SINK, str(sockets)],
        stdout=subprocess.PIPE,
        text=True,
    ) as sink:
        assert sink.stdout is not None
        sink.stdout.readline()
        words = [receiver.address, str(sockets), str(size), str(wait_s), str(rounds)]
        # `ip netns exec` hides cgroups: they are entered before.
        inside = [*before, "ip", "netns", "exec", sender.name, "/usr/bin/python3", "-c", JOB, *words]
        sent = subprocess.run(inside, check=True, stdout=subprocess.PIPE, text=True, timeout=60).stdout.strip()
        taken = sink.stdout.read().splitlines()
    assert taken == [f"{size * rounds} {sent}"] * sockets


@pytest.mark.parametrize("name", ["dctcp", *EVERY])
def test_data_arrive_whole_however_it_is_chosen(pair: Any, tools: Any, name: str) -> None:
    sender, receiver = pair
    with tools.loaded(name):
        receiver.run("sysctl", "-qw", f"net.ipv4.tcp_congestion_control=rb_{name}", "net.ipv4.tcp_ecn=1")
        sender.run("ip", "route", "change", "10.77.9.0/24", "dev", "eth0", "congctl", f"rb_{name}")
        play(sender, receiver, size=3_000_000, rounds=2)  # by a route
        sender.run("ip", "route", "change", "10.77.9.0/24", "dev", "eth0")
        receiver.run("iperf3", "-s", "-1", "-D")
        for _ in range(100):  # the daemon may not listen yet
            answer = sender.run("iperf3", "-c", receiver.address, "-n", "3M", "-C", f"rb_{name}", "-J", check=False)
            found = json.loads(answer.stdout)
            if "unable to connect" not in found.get("error", ""):
                break
            time.sleep(0.05)
        assert "error" not in found, found
        assert found["end"]["sender_tcp_congestion"] == f"rb_{name}"
        sysctl(pair, name)
        play(sender, receiver, size=3_000_000, rounds=2)
        counters = sender.transport("get", name)["counters"]
    counted = counters["segments"] if name == "dctcp" else counters["sent_bytes"]
    assert counted > 0


@pytest.mark.quiet
@pytest.mark.parametrize("name", EVERY)
def test_mltcp_learns_the_bytes_and_silence_of_a_periodic_job(pair: Any, tools: Any, name: str) -> None:
    sender, receiver = pair
    with tools.loaded(name):
        sysctl(pair, name)
        play(sender, receiver, rounds=12)
        learned = sender.transport("get", name)["counters"]
    assert learned["learned_bytes"] == pytest.approx(400_000, rel=0.02)
    assert learned["learned_silence_us"] == pytest.approx(100_000, rel=0.3)
    assert 10 <= learned["iterations"] <= 14
    assert learned["bytes_ratio"] == pytest.approx(1, abs=0.02)
    assert learned["aggressiveness"] == pytest.approx(2, abs=0.04)


@pytest.mark.quiet
@pytest.mark.parametrize("name", ["mltcp_reno", "mltcp_dcqcn"])  # one with a window, and the one with a rate
def test_a_hosts_next_job_is_another_one(pair: Any, tools: Any, name: str) -> None:
    """It may come hours later: a second is ten silences here, and what was learned of the first job misled the next."""
    sender, receiver = pair
    with tools.loaded(name):
        sysctl(pair, name)
        play(sender, receiver, rounds=6)
        time.sleep(1)
        play(sender, receiver, rounds=8, size=800_000)
        learned = sender.transport("get", name)["counters"]
    assert learned["learned_bytes"] == pytest.approx(800_000, rel=0.02)
    assert learned["learned_silence_us"] == pytest.approx(100_000, rel=0.3)
    assert learned["aggressiveness"] == pytest.approx(2, abs=0.04)


@pytest.fixture
def group(tmp_path: Path) -> Iterator[tuple[str, ...]]:
    """What begins a command within a cgroup of its own; a system that shows none gets to see them meanwhile."""
    cgroups, path = tmp_path / "cgroups", tmp_path / "cgroups" / f"rbt-{uuid.uuid4().hex[:6]}"
    cgroups.mkdir()
    subprocess.run(["mount", "-t", "cgroup2", "cgroup2", cgroups], check=True)
    try:
        path.mkdir()
        yield ("sh", "-c", f'echo $$ > {path}/cgroup.procs && exec "$@"', "sh")
        path.rmdir()
    finally:
        subprocess.run(["umount", cgroups], check=True)


@pytest.mark.quiet
@pytest.mark.parametrize(("count_by", "share"), [("host", 1), ("cgroup", 1), ("socket", 0.5)])
def test_a_jobs_sockets_share_one_count(pair: Any, tools: Any, group: Any, count_by: str, share: float) -> None:
    sender, receiver = pair
    with tools.loaded("mltcp_reno"):
        sysctl(pair, "mltcp_reno")
        sender.transport("set", "mltcp_reno", f"count_by={count_by}", "gap_us=40000")
        play(sender, receiver, sockets=2, size=200_000, rounds=12, before=group if count_by == "cgroup" else ())
        learned = sender.transport("get", "mltcp_reno")["counters"]
    assert learned["learned_bytes"] == pytest.approx(400_000 * share, rel=0.02)


def entries_of_jobs(tools: Any) -> int:
    return int(tools.run(str(tools.build / "bin/bpf_objects"), "entries", "jobs").stdout)


def test_a_job_that_ended_takes_no_room(pair: Any, tools: Any) -> None:
    sender, receiver = pair
    with tools.loaded("mltcp_reno"):
        sysctl(pair, "mltcp_reno")
        play(sender, receiver, sockets=2, rounds=2)
        wait_for(lambda: entries_of_jobs(tools) == 0, 15)


# Begins and ends a job on each of as many hosts as given, for each of which it makes a network namespace.
JOBS = """
import ctypes, socket, subprocess, sys
for _ in range(int(sys.argv[1])):
    assert ctypes.CDLL(None).unshare(0x40000000) == 0
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    listener = socket.socket(); listener.setsockopt(6, 13, b"rb_mltcp_reno")
    listener.bind(("", 5001)); listener.listen()
    with listener, socket.create_connection(("127.0.0.1", 5001)) as client, listener.accept()[0] as server:
        client.sendall(b"a"); server.recv(1)
"""


@pytest.mark.proof
def test_a_job_after_4200_others_is_counted_as_one(pair: Any, tools: Any) -> None:
    """The map of jobs has room for 4,096. A job that is not in it would be counted by socket."""
    sender, receiver = pair
    with tools.loaded("mltcp_reno"):
        subprocess.run(["/usr/bin/python3", "-c", JOBS, "4200"], check=True)
        sysctl(pair, "mltcp_reno")
        sender.transport("set", "mltcp_reno", "count_by=host", "gap_us=40000")
        play(sender, receiver, sockets=2, size=200_000, rounds=12)
        learned = sender.transport("get", "mltcp_reno")["counters"]
    assert learned["learned_bytes"] == pytest.approx(400_000, rel=0.02)


@pytest.mark.quiet
def test_adaptive_unfairness_is_a_setting_of_dcqcn(pair: Any, tools: Any) -> None:
    """HotNets'22, section 4: R_AI (1 + sent / total)."""
    sender, receiver = pair
    with tools.loaded("mltcp_dcqcn"):
        sysctl(pair, "mltcp_dcqcn")
        adaptive = ["acts_on=additive", "slope=1", "intercept=1", "iteration_bytes=800000", "gap_us=40000"]
        answer = sender.transport("set", "mltcp_dcqcn", *adaptive)["params"]
        assert (answer["acts_on"], answer["shape"]) == ("additive", "linear")
        play(sender, receiver, rounds=5)
        counters = sender.transport("get", "mltcp_dcqcn")["counters"]
    assert counters["bytes_ratio"] == pytest.approx(0.5, abs=0.01)
    assert counters["aggressiveness"] == pytest.approx(1 + counters["bytes_ratio"], abs=1e-4)


@pytest.fixture
def bottleneck(tools: Any) -> Iterator[tuple[Any, Any, Any]]:
    """Two senders and a receiver, behind one port of 40 Mbit/s with 12 ms of buffer that drops."""
    router, *ends = (tools.namespace(process_name(f"test-bottleneck-{i}"), f"10.77.{i}.2") for i in range(4))
    try:
        for each in (router, *ends):
            tools.run("ip", "netns", "add", each.name)
        router.run("sysctl", "-qw", "net.ipv4.ip_forward=1")
        for number, end in enumerate(ends, 1):
            port, gateway = f"port{number}", f"10.77.{number}.1"
            peer = ["type", "veth", "peer", "eth0", "netns", end.name]
            tools.run("ip", "link", "add", port, "netns", router.name, *peer)
            router.run("ip", "addr", "add", f"{gateway}/24", "dev", port)
            router.run("ip", "link", "set", port, "up")
            end.run("ip", "addr", "add", f"{end.address}/24", "dev", "eth0")
            end.run("ip", "link", "set", "eth0", "up", "gso_max_size", "4600")
            end.run("ip", "route", "add", "default", "via", gateway)
        shape = ["rate", "40mbit", "burst", "10kb", "limit", "60kb"]
        router.run("tc", "qdisc", "add", "dev", "port3", "root", "tbf", *shape)
        yield ends[0], ends[1], ends[2]
    finally:
        for each in (router, *ends):
            tools.run("ip", "netns", "del", each.name, check=False)


# As the lab would have them at a tenth of a percent of the papers' rates.
SLOW = ["R_max_mbps=40", "R_min_mbps=0.5", "R_AI_mbps=0.2", "R_HAI_mbps=0.02", "T_us=2000", "byte_counter_bytes=0"]
SLOW += ["g=0.5", "alpha_timer_us=500000", "cnp_gap_us=1500"]


QUICK = [("mltcp_reno", "increase", 1.5, 5), ("mltcp_cubic", "increase", 1.5, 5)]
# Where packets are dropped, DCQCN's shares hang on its cuts, and little on its steps.
LONG = [("mltcp_dctcp", "increase", 1.5, 10), ("mltcp_dcqcn", "increase", 1.05, 10)]
LONG += [(name, "decrease", 1.5, 10) for name in EVERY]


@pytest.mark.quiet
@pytest.mark.parametrize(
    ("name", "acts_on", "times", "seconds"), [*QUICK, *(pytest.param(*each, marks=pytest.mark.proof) for each in LONG)]
)
def test_flows_of_unlike_aggressiveness_share_unlike(
    bottleneck: Any, tools: Any, *, name: str, acts_on: str, times: float, seconds: int
) -> None:
    *senders, receiver = bottleneck
    with tools.loaded(name):
        sysctl(bottleneck, name)
        for sender, intercept in zip(senders, (8, 0.25), strict=True):
            constant = ["slope=0", f"intercept={intercept}", "iteration_bytes=1e12", f"acts_on={acts_on}"]
            sender.transport("set", name, *constant, *(SLOW if name == "mltcp_dcqcn" else []))
        taking = [["ip", "netns", "exec", receiver.name, "/usr/bin/python3", "-c", SINK, "2"]]
        with subprocess.Popen(*taking, stdout=subprocess.PIPE, text=True) as sink:
            assert sink.stdout is not None
            sink.stdout.readline()
            stream = ["/usr/bin/python3", "-c", STREAM, receiver.address, str(seconds)]
            flows = [
                subprocess.Popen(["ip", "netns", "exec", each.name, *stream], stdout=subprocess.PIPE, text=True)
                for each in senders
            ]
            eager, modest = (int(flow.communicate()[0]) for flow in flows)
    assert eager > times * modest > 0


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (["slope=-1"], "slope: found '-1', expected a number from 0 to 100"),
        (["shape=cubic"], "shape: found 'cubic', expected one of: linear quadratic reciprocal decreasing"),
        (["learn=0"], "iteration_bytes: found 0, with learn 0, expected one of them"),
        (["learn=0", "iteration_bytes=5"], "gap_us: found 0, with learn 0, expected one of them"),
    ],
)
def test_settings_with_which_it_could_not_work_are_refused(
    pair: Any, tools: Any, wrong: list[str], reason: str
) -> None:
    host, _ = pair
    with tools.loaded("mltcp_reno"):
        before = host.transport("get", "mltcp_reno")["params"]
        answer = host.run(str(tools.build / "bin/transport"), "set", "mltcp_reno", *wrong, check=False)
        assert (answer.returncode, reason in answer.stderr) == (2, True), answer.stderr
        assert host.transport("get", "mltcp_reno")["params"] == before
