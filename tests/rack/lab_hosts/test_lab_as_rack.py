# SPDX-License-Identifier: Apache-2.0
"""A lab's hosts pose as a rack's machines: reached over ssh alone, by an inventory, as servers are.

Lab links are slower than a rack's; the rack gets by how much, so that experiments can be as they are.
"""

import json
import os
import shutil
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any

import pytest

from roundabout.cli.main import main
from roundabout.core.errors import RoundaboutError
from roundabout.runner.hosts.connections import SshConnection
from roundabout.runner.hosts.programs import Program
from roundabout.runner.machine.machine_lease import BusyError
from roundabout.runner.machine.process_leftovers import process_name
from roundabout.spec import load_topology
from roundabout.store import Run
from roundabout.testbeds.lab import Lab
from roundabout.testbeds.rack import rack_lease
from roundabout.testbeds.rack.provider import RackProvider
from tests.deadline import wait_for
from tests.observers import Reasons, Silent
from tests.rack.lab_hosts.rack_runs import driven, inventory_of
from tests.rack.lab_hosts.rack_trials import run
from tests.runner.interruptions import interruption_points
from tests.traces import traces

WORK = (b"replay", b"sampler", b"tcpdump", b"crossgen", b"iperf3", b"clock.py")
pytestmark = [pytest.mark.lab, pytest.mark.quiet, pytest.mark.skipif(os.geteuid() != 0, reason="a lab needs root")]

FIELDS = {"line_rate_gbps": 25, "payload_rate_gbps": 23.5, "cross_traffic_dscp": 8}
PORTS = {"tor": {"s0": "Ethernet0", "s1": "Ethernet4", "s2": "Ethernet8", "s3": "Ethernet12"}}
TINY = """
schema: 1
name: tiny
about: A job for a moment
topology: configuration-b
jobs: {dnn: {profile: resnet50-ring3, workers: [s0, s1, s3]}}
transport: {name: dcqcn}
iterations: 3
capture: {hosts: [s0], budget_mb: 5}
"""
THESIS = f"""{TINY}
cross_traffic: {{cross: {{kind: consistent, from: s2, to: [s0], load_gbps: 11}}}}
factors:
  variant:
    consistent: {{cross_traffic: {{cross: {{transport: {{name: dcqcn, T_us: 100}}}}}}}}
    burst: {{cross_traffic: {{cross: {{kind: burst, traffic_class: own}}}}}}
    iperf:
      topology: configuration-a
      jobs:
        dnn: null
        j1: {{profile: resnet50-1600, workers: [s0, s2], transport: {{name: reno}}}}
        j2: {{profile: resnet50-1600, workers: [s1, s3], transport: {{name: cubic}}}}
      cross_traffic: {{cross: {{kind: iperf, from: s0, to: [s1]}}}}
"""
COOKIE_BYTES = 3700  # of iperf3's 37, in the papers' units: the lab divides by 100
# A test machine may be loaded, and servers' TCP may probe for lost tails: what spoils figures must not fail tests.
NOISE = ("busy", "woke up", "took", "sent again")


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    name = process_name("test-rack")
    lab = Lab.create(load_topology("configuration-a"), name, verify=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("roundabout.runner.run.MAX_REPEATS", 1)
        yield lab
    Lab.remove(name)


@pytest.fixture(scope="module")
def inventory(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("rack") / "inventory"
    path.write_text(inventory_of(lab, FIELDS, PORTS))
    return path


@pytest.fixture(scope="module")
def routes_before(lab: Lab) -> dict[str, str]:
    return {host: on_host(lab, host, "ip", "route") for host in lab.hosts}


@pytest.fixture(scope="module")
def thesis(lab: Lab, inventory: Path, routes_before: Any, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Configurations A and B with each kind of cross traffic, all in one run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("roundabout.runner.run.MAX_REPEATS", 0)
        return run(inventory, THESIS, tmp_path_factory.mktemp("thesis"), Silent())


def on_host(lab: Lab, host: str, *command: str) -> str:
    done = subprocess.run(["ssh", "-F", lab.ssh_config(), host, *command], capture_output=True, text=True, check=True)
    return done.stdout


def test_an_experiment_on_a_rack(thesis: Run) -> None:
    assert thesis.manifest["testbed"]["kind"] == "rack"
    assert thesis.manifest["testbed"]["emulated"] is True
    assert "by a lab's hosts" in thesis.manifest["testbed"]["fidelity"]["stamp"]
    assert thesis.manifest["testbed"]["identity"]["capabilities"] == ["own clock"]
    for trial in thesis.trials():
        assert all(any(word in reason for word in NOISE) for reason in trial["reason"].split("; ") if reason)
    workers = {"consistent": 3, "burst": 3, "iperf": 4}
    for variant, iterations in rows_by_variant(thesis, "iterations").items():
        assert len(iterations) == 3 * workers.pop(variant)
    assert not workers


def test_each_job_and_cross_traffic_has_its_own_transport(thesis: Run) -> None:
    found = {
        trial["variant"]: {host: each["after"] for host, each in trial["settings"].items()} for trial in thesis.trials()
    }
    routes = {
        variant: {host: name["congctl"] for host, each in hosts.items() for name in each["route"].values()}
        for variant, hosts in found.items()
    }
    assert routes == {
        "consistent": dict.fromkeys(("s0", "s1", "s2", "s3"), "rb_dcqcn"),
        "burst": {"s0": "rb_dcqcn", "s1": "rb_dcqcn", "s2": "cubic", "s3": "rb_dcqcn"},
        "iperf": {"s0": "reno", "s1": "cubic", "s2": "reno", "s3": "cubic"},
    }
    timers = {host: each["transport"]["dcqcn"]["T_us"] for host, each in found["consistent"].items()}
    assert timers == {"s0": 125, "s1": 125, "s2": 100, "s3": 125}


def test_each_trial_begins_with_what_was_found(lab: Lab, thesis: Run, routes_before: dict[str, str]) -> None:
    """Also where the trial before wanted the same."""
    for trial in thesis.trials():
        for each in trial["settings"].values():
            assert any("congctl" in name for name in each["changed"])
    assert {host: on_host(lab, host, "ip", "route") for host in lab.hosts} == routes_before


def test_cross_traffic_is_reported_in_the_papers_units(thesis: Run) -> None:
    for variant, (load,) in rows_by_variant(thesis, "cross_traffic").items():
        assert load["asked_gbps"] == 11
        assert load["kind"] == variant
        assert 3 < load["achieved_gbps"] < 16  # a second or two of few, large flows
        assert load["host"] == ("s0" if variant == "iperf" else "s2")
    flows = rows_by_variant(thesis, "cross_flows")
    assert set(flows) == {"consistent", "burst"}
    for each in flows.values():
        assert {flow["destination"] for flow in each} == {"s0"}
        assert 500_000 < sum(flow["bytes"] for flow in each) / len(each) < 8_000_000  # the thesis: 2.4 MB


def test_captures_come_from_every_trial(thesis: Run) -> None:
    for captures in rows_by_variant(thesis, "captures").values():
        assert [each["host"] for each in captures] == ["s0"]
        assert captures[0]["decoded"] > 100
        assert captures[0]["malformed"] == 0


def test_packets_carry_the_dscp_of_their_class(thesis: Run) -> None:
    """By what the decoder sees of s0: both ways, acknowledgements too.

    Of iperf3 what it sends, but for its control connection and the cookie that all begin with (esnet/iperf, #510).
    """
    for variant, packets in rows_by_variant(thesis, "packets").items():
        tcp = [each for each in packets if each["protocol"] == 6]
        jobs = [each for each in tcp if {29500, 29501} & {each["source_port"], each["destination_port"]}]
        cross = [each for each in tcp if 29400 in (each["source_port"], each["destination_port"])]
        if variant == "iperf":
            sent = Counter[int]()
            for each in cross:
                sent[each["flow"]] += each["payload_bytes"] or 0
            ((most, _),) = sent.most_common(1)
            cross = [each for each in cross if each["flow"] == most and (each["payload_bytes"] or 0) > COOKIE_BYTES]
            assert cross
        assert {each["dscp"] for each in jobs} == {26}
        assert {each["dscp"] for each in cross} == {8 if variant == "burst" else 26}


@pytest.fixture
def deployed(thesis: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The programs are on the hosts already, and need not be compared again and again."""
    monkeypatch.setattr("roundabout.testbeds.rack.provider.run_playbook", lambda *_: None)


SINK = """
import socket
peer = socket.create_server(("", 5000)).accept()[0]
while peer.recv(1 << 20):
    pass
"""
SENDER = """
import socket, sys, time
turn_s, size, began = float(sys.argv[2]), int(sys.argv[3]), time.monotonic()
while True:
    try:
        peer = socket.create_connection((sys.argv[1], 5000))
        break
    except ConnectionRefusedError:
        time.sleep(0.1)
for turn in range(10000):
    time.sleep(max(0, began + turn * turn_s - time.monotonic()))
    peer.sendall(bytes(size))
"""
JOBS = {"j1": ("s0", "s2", 0.2, 1_500_000), "j2": ("s1", "s3", 0.3, 2_000_000)}
"""Who sends to whom, how often in s, and how many bytes."""


@pytest.mark.proof
def test_advice_samples_the_senders_of_a_live_rack(
    lab: Lab, inventory: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rack = RackProvider(inventory)
    rack.provision(rack.create_hosts(load_topology("configuration-a"), "provisioned"))
    rack.undo({"kind": "testbed", "name": "provisioned"})
    jobs = tmp_path / "jobs.yaml"
    jobs.write_text("".join(f"{job}: [{sender}]\n" for job, (sender, *_) in JOBS.items()))
    with ExitStack() as stack:
        for sender, receiver, *often in JOBS.values():
            address = lab.hosts[receiver].address
            for host, words in ((receiver, [SINK]), (sender, [SENDER, address, *map(str, often)])):
                connection = stack.enter_context(closing(SshConnection(host, lab.connect(host))))
                stack.callback(Program("job", connection, ["python3", "-c", *words]).finish, 0)
        words = ["--inventory", inventory, "--jobs", jobs, "--for", "12s", "--capacity", "0.235", "--json"]
        assert main(["advise", *map(str, words)]) == 0
        assert not any(processes(lab, host, b"sampler") for host in lab.hosts)
    found = {job["job"]: job for job in json.loads(capsys.readouterr().out)["jobs"]}
    for job, (_, _, turn_s, _) in JOBS.items():
        assert found[job]["advice"], found[job]["reason"]
        assert found[job]["found"]["period_ms"]["value"] == pytest.approx(1e3 * turn_s, rel=0.02)
    second = RackProvider(inventory)  # the lease has ended, too
    second.create_hosts(load_topology("configuration-a"), "second")
    second.undo({"kind": "testbed", "name": "second"})


def rows_by_variant(run: Run, table: str) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for row in run.table(table, valid_only=False).to_pylist():
        found.setdefault(row["variant"], []).append(row)
    return found


def test_a_second_user_is_shown_who_has_the_rack(inventory: Path) -> None:
    topology = load_topology("configuration-b")
    first, second = RackProvider(inventory), RackProvider(inventory)
    first.create_hosts(topology, "first")
    try:
        with pytest.raises(BusyError, match='leased: host s0 {"owner": "first"'):
            second.create_hosts(topology, "second")
        second.undo({"kind": "testbed", "name": "first"})  # only who holds it gives it back
        with pytest.raises(BusyError):
            second.create_hosts(topology, "second")
    finally:
        first.undo({"kind": "testbed", "name": "first"})
    second.create_hosts(topology, "second")
    second.undo({"kind": "testbed", "name": "second"})


def processes(lab: Lab, host: str, word: bytes) -> list[int]:
    """Those on the host whose command lines have this word."""
    pid = lab.pids()[host]
    namespace = os.readlink(f"/proc/{pid}/ns/pid")
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if os.readlink(entry / "ns/pid") == namespace and word in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
    return found


def lose(lab: Lab, host: str, how: signal.Signals) -> None:
    """Break every connection to the host, once; or have it fall silent, as a machine without power does."""
    for pid in processes(lab, host, b"sshd"):
        with suppress(ProcessLookupError):
            os.kill(pid, how)


def when_started(folder: Path, act: Callable[[], None]) -> threading.Thread:
    def wait() -> None:
        deadline = time.monotonic() + 60
        while not any('"start"' in path.read_text() for path in folder.glob("runs/*/*/partial/*/events.jsonl")):
            if time.monotonic() > deadline:
                return
            time.sleep(0.02)
        act()

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


@pytest.mark.proof
@pytest.mark.usefixtures("deployed")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_a_host_that_is_lost_costs_an_attempt(
    lab: Lab, inventory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: signal.Signals
) -> None:
    monkeypatch.setattr("roundabout.runner.hosts.clocks.ANSWER_TIMEOUT_S", 3.0)
    observer = Reasons(lambda: lose(lab, "s3", signal.SIGKILL))
    thread = when_started(tmp_path, lambda: lose(lab, "s3", how))
    ended = run(inventory, TINY, tmp_path, observer)
    thread.join()
    assert any("lost host s3" in reason for reason in observer.reasons)
    assert len(ended.trials()) == 1


def test_a_guard_that_receives_nothing_breaks_the_connection_that_it_came_by(lab: Lab) -> None:
    with closing(SshConnection("s0", lab.connect("s0"))) as connection:
        other = Program("cat", connection, ["cat"])
        guard = Program("guard", connection, ["python3", "-c", rack_lease.GUARD, "0.5"])
        wait_for(lambda: guard.lost_connection and other.lost_connection, 5)


@pytest.mark.proof
@pytest.mark.usefixtures("deployed")
@pytest.mark.parametrize("times", [(6, 0.5, 8), (rack_lease.SILENCE_S, rack_lease.HEARTBEAT_S, 120)])
def test_a_stopped_controllers_load_ends_with_its_lease(
    lab: Lab, inventory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: tuple[float, float, float]
) -> None:
    silence_s, heartbeat_s, stopped_s = times
    routes = {host: on_host(lab, host, "ip", "route") for host in lab.hosts}
    monkeypatch.setenv("LEASES", json.dumps({"SILENCE_S": silence_s, "HEARTBEAT_S": heartbeat_s}))
    (tmp_path / "experiment.yaml").write_text(TINY.replace("iterations: 3", "iterations: 5000"))
    events = "runs/*/*/partial/*/events.jsonl"
    with driven("run", inventory, tmp_path) as process:
        wait_for(lambda: any('"start"' in path.read_text() for path in tmp_path.glob(events)))
        process.send_signal(signal.SIGSTOP)
        stopped = time.monotonic()
        try:
            assert any(processes(lab, host, b"replay") for host in lab.hosts)
            wait_for(lambda: not any(processes(lab, host, b"replay") for host in lab.hosts), silence_s)
            second = RackProvider(inventory)
            wait_for(lambda: free(second), silence_s)
            time.sleep(max(0, stopped + stopped_s - time.monotonic()))
        finally:
            process.send_signal(signal.SIGCONT)
        _, stderr = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "the lease on the rack was lost" in stderr
    assert {host: on_host(lab, host, "ip", "route") for host in lab.hosts} == routes
    assert not (tmp_path / "state/roundabout").exists()
    second.undo({"kind": "testbed", "name": "second"})


def free(provider: RackProvider) -> bool:
    """Whether the rack can be leased, which then is so."""
    try:
        provider.create_hosts(load_topology("configuration-b"), "second")
    except BusyError:
        return False
    return True


KILLED = 12
COUNTED: dict[str, Any] = {}


def committed(folder: Path) -> dict[Path, tuple[int, bytes]]:
    return {
        path: (path.stat().st_ino, path.read_bytes()) for path in folder.glob("runs/*/*/trials/*/*") if path.is_file()
    }


def keys(run: Run) -> set[str]:
    return {trial["trial"] for trial in run.trials()}


def done(inventory: Path, folder: Path, action: str, signals: dict[int, int] | None = None) -> tuple[int, int]:
    """A run's status, and the points that it came to; 0 where it did not come to its end."""
    (folder / "count").unlink(missing_ok=True)
    with driven(action, inventory, folder, json.dumps(signals or {})) as process:
        _, stderr = process.communicate(timeout=300)
    assert "Traceback" not in stderr, stderr
    assert "bug" not in stderr, stderr
    status = process.returncode
    return status, int((folder / "count").read_text()) if (folder / "count").exists() else 0


def left(lab: Lab, folder: Path) -> set[str]:
    """What runs could leave: on this machine, on the rack's hosts, and what they must undo."""
    routes = {f"route on {host}: {on_host(lab, host, 'ip', 'route')}" for host in lab.hosts}
    at_work = {f"{word!r} on {host}" for host in lab.hosts for word in WORK if processes(lab, host, word)}
    files = {str(path) for state in ("state", "journals") for path in (folder / state).rglob("*")}
    return traces() | routes | at_work | files


@pytest.mark.proof
@pytest.mark.usefixtures("deployed")
@pytest.mark.parametrize("number", range(KILLED))
def test_a_rack_run_interrupted_anywhere_loses_and_leaves_nothing(
    lab: Lab, inventory: Path, tmp_path: Path, number: int
) -> None:
    (tmp_path / "experiment.yaml").write_text(TINY.replace("iterations: 3", "iterations: 2"))
    untouched = left(lab, tmp_path)
    if not COUNTED:
        status, COUNTED["points"] = done(inventory, tmp_path, "run")
        assert status == 0
        COUNTED["keys"] = keys(Run.open("last", tmp_path / "runs"))
        assert not left(lab, tmp_path) - untouched
        shutil.rmtree(tmp_path / "runs")
        print(f"{COUNTED['points']} points")
    way = list(interruption_points.WAYS.values())[number % len(interruption_points.WAYS)]
    point = 1 + number * COUNTED["points"] // KILLED
    done(inventory, tmp_path, "run", {point + after: signal_ for after, signal_ in way})
    before = committed(tmp_path)
    begun = bool(Run.all(tmp_path / "runs"))
    order = interruption_points.ORDERS[number % len(interruption_points.ORDERS)] if begun else ("resume", "clean")
    for action in order:
        status, _ = done(inventory, tmp_path, action)
        assert status == 0 or (action == "resume" and not begun)
    after = committed(tmp_path)
    assert {path: after.get(path) for path in before} == before
    assert all(keys(run) <= COUNTED["keys"] for run in Run.all(tmp_path / "runs"))
    assert order[-1] == "clean" or keys(Run.open("last", tmp_path / "runs")) == COUNTED["keys"]
    wait_for(lambda: not left(lab, tmp_path) - untouched, 15)


@pytest.mark.usefixtures("deployed")
def test_a_host_that_stays_lost_ends_the_run_with_one_message(
    lab: Lab, inventory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("roundabout.testbeds.rack.provider.REBOOT_S", 1)
    pid = lab.pids()["s3"]
    assert pid
    thread = when_started(tmp_path, lambda: os.kill(pid, signal.SIGKILL))
    with pytest.raises(RoundaboutError, match="host s3 does not answer"):
        run(inventory, TINY, tmp_path, Silent())
    thread.join()
