# SPDX-License-Identifier: Apache-2.0
"""Runs that are interrupted at every point, and what becomes of them.

    python -m tests.runner.interruptions.interruption_points FOLDER COUNT [WAY...]

A point is a moment before a journal is written or a file is renamed, or before or after anything is done on a host.
They are found by counting those of an undisturbed run. Each run is then interrupted at one of them, in one of WAYS, and
followed by two commands. COUNT cases are tried: their points are spread evenly, and their ways and commands take turns.
0 is all cases. What became of them is printed as JSON.

Every case is a process forked from this one, and the testbed is one of threads and files: a run takes a moment.
"""

import importlib
import itertools
import json
import multiprocessing
import os
import shutil
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from roundabout.cli.main import main
from roundabout.cli.runs import clean
from roundabout.runner import run as run_module
from roundabout.runner.hosts import clocks
from roundabout.runner.machine import undo_journal
from roundabout.runner.session import host_session
from roundabout.store import Run
from roundabout.terminal import execution
from tests.fakes.testbed import FakeProvider, FakeSite
from tests.fakes.workplace import Workplace, experiment

# Signals, each so many points after the one that is tried.
WAYS = {
    "SIGKILL": [(0, signal.SIGKILL)],
    "SIGHUP": [(0, signal.SIGHUP)],
    "SIGTERM": [(0, signal.SIGTERM)],
    "Ctrl-C twice": [(0, signal.SIGINT), (1, signal.SIGINT)],
    "Ctrl-C, and again while all is undone": [(0, signal.SIGINT), (6, signal.SIGINT)],
    "SIGTERM, and SIGKILL while all is undone": [(0, signal.SIGTERM), (4, signal.SIGKILL)],
    "SIGKILL, and the next run, too": [(0, signal.SIGKILL)],
}
AGAIN, FIRST = "the next run, too", 40  # points, in which journals are replayed, and a run begins
COMMANDS = ("resume", "run", "clean")
ORDERS = list(itertools.product(COMMANDS, repeat=2))
VARIANTS = "alone: {one_job_at_a_time: true, iterations: 1}"  # two trials, one a job
MS = 1_000_000
STOPPED_S = 3.0  # who is stopped goes on after this; what is waited for must come sooner on a busy machine, too
IN_RUN_TIME = ("start_ns", "compute_end_ns", "comm_end_ns", "controller_ns", "host_ns")


class Points:
    """Counts the points that a process comes to, and sends it the signals that it shall get there."""

    def __init__(self, signals: dict[int, int]) -> None:
        self._signals, self._numbers = signals, itertools.count(1)

    def come(self) -> None:
        number = next(self._numbers)
        if number in self._signals:
            os.kill(os.getpid(), self._signals[number])

    @property
    def count(self) -> int:
        return next(self._numbers) - 1

    def around(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """A call that begins something elsewhere, between two points: at the second one that is at work."""

        def counted(*arguments: Any, **options: Any) -> Any:
            self.come()
            done = call(*arguments, **options)
            self.come()
            return done

        return counted


class Played:
    """A program of a host, played by a thread. It is a Channel."""

    def __init__(self, play: Callable[["Played"], None]) -> None:
        self._said: SimpleQueue[bytes] = SimpleQueue()
        self._received: SimpleQueue[bytes] = SimpleQueue()
        threading.Thread(target=self._play, args=(play,), daemon=True).start()

    def _play(self, play: Callable[["Played"], None]) -> None:
        try:
            play(self)
        finally:
            self._said.put(b"")

    def say(self, *lines: str) -> None:
        self._said.put("".join(f"{line}\n" for line in lines).encode())

    def receive(self, timeout_s: float | None = None) -> bytes:
        """What is written to it; empty at the end. Raises Empty."""
        return self._received.get(timeout=timeout_s)

    def read(self) -> bytes:
        return self._said.get()

    def write(self, data: bytes) -> None:
        self._received.put(data)

    def close_stdin(self) -> None:
        self._received.put(b"")

    def result(self) -> tuple[int, str]:
        return 0, ""

    def close(self) -> None:
        self.close_stdin()


class Host:
    """One host: a connection to it, and what its programs say. What it keeps is a file of the provider's."""

    def __init__(self, host: str, kept: Path, points: Points) -> None:
        self.host, self._kept, self._points = host, kept, points

    def start(self, argv: list[str]) -> Played:
        self._points.come()
        words = argv[2:] if argv[0] == "timeout" else argv
        name = next((each for each in PROGRAMS if any(each in word for word in words)), "facts")
        return Played(lambda channel: getattr(self, PROGRAMS.get(name, "facts"))(channel, words))

    def close(self) -> None:
        pass

    def facts(self, channel: Played, _words: list[str]) -> None:
        channel.say("kernel\tfake")

    def clock(self, channel: Played, _words: list[str]) -> None:
        while channel.receive():
            channel.say("{}")

    def settings(self, channel: Played, words: list[str]) -> None:
        requested = json.loads(b"".join(iter(channel.receive, b"")))
        if " apply " in words[-1]:
            self._kept.parent.mkdir(parents=True, exist_ok=True)
            self._kept.touch()
        self._points.come()
        answer = {"found": requested, "applied": requested, "changed": [], "differs": []}
        channel.say(json.dumps(answer), json.dumps({"params": {}, "counters": {"cnps": 7}}))

    def sampler(self, channel: Played, words: list[str]) -> None:
        channel.say("#sampler,before_ns,after_ns,samples,missed,dropped_lines")
        with suppress(Empty):
            channel.receive(0.001)

    def replay(self, channel: Played, words: list[str]) -> None:
        job, rank = json.loads(words[words.index("--job") + 1]), int(words[words.index("--rank") + 1])
        channel.say(json.dumps({"event": "ready"}))
        _secret, line = channel.receive(), channel.receive()
        if not line:
            return
        self._points.come()
        start_ns = int(line.split()[1])
        measured = {"sent_bytes": 1000, "received_bytes": 1000, "late_ns": 100_000}
        for number in range(job["iterations"]):
            begin_ns = start_ns + number * 4 * MS
            times = {"start_ns": begin_ns, "compute_end_ns": begin_ns + 2 * MS, "comm_end_ns": begin_ns + 4 * MS}
            channel.say(json.dumps({"event": "iteration", "iteration": number, **times, **measured}))
        flow = {"job": job["name"], "rank": rank, "flow": 0, "peer": "x", "peer_rank": 1, "local_port": 1}
        counts = {"bytes_acked": 1000 * job["iterations"], "retransmitted": 0, "delivered": 10, "delivered_ce": 1}
        channel.say(
            json.dumps({"event": "flow", **flow, "remote_port": 2, "congestion_control": "rb_dcqcn", **counts}),
            json.dumps({"event": "done", "iterations": job["iterations"]}),
        )


PROGRAMS = {"settings.py": "settings", "clock.py": "clock", "sampler": "sampler", "replay": "replay"}


class Site(FakeSite):
    def capabilities(self):
        return frozenset()


class Provider(FakeProvider):
    """Each thing that it makes or takes away lies between two points."""

    def __init__(self, folder: Path, points: Points) -> None:
        super().__init__(folder)
        self._points = points

    def create_hosts(self, topology, name):
        self._make(f"testbed {name}")
        return Site(self.folder, topology, name)

    def provision(self, site):
        self._points.come()

    def connect(self, site, host):
        return Host(host, self.folder / "made" / f"settings {host}", self._points)

    def undo(self, entry):
        self._points.come()
        super().undo(entry)
        if entry["kind"] == "settings":
            for path in (self.folder / "made").glob("settings *"):
                self._points.come()
                path.unlink()
        self._points.come()

    def _make(self, name):
        self._points.come()
        super()._make(name)
        self._points.come()


def hooked(points: Points) -> None:
    """Let this process come to points wherever something becomes durable, or is done elsewhere."""
    rename, write = Path.rename, undo_journal.write_entries

    def counted_rename(path, target):
        points.come()
        return rename(path, target)

    def counted_write(*words):
        points.come()
        write(*words)

    Path.rename, undo_journal.write_entries = counted_rename, counted_write


def command(name: str, folder: Path, signals: dict[int, int]) -> tuple[int, int]:
    """Run a command in a process of its own: its status (a signal's number, negative), and the points it came to."""
    count, said = folder / "count", folder / "said"
    count.unlink(missing_ok=True)
    with said.open("a") as file:
        number = file.tell()
        file.write(f"{name}\n")
    pid = os.fork()
    if pid == 0:
        with said.open("a") as file:
            os.dup2(file.fileno(), 2)
        points = Points(signals)
        hooked(points)
        run_module.new_run_id = lambda: f"20260101T{number:06d}Z-0000"  # no two in one second
        host_session.LocalConnection = clocks.LocalConnection = lambda: Host("controller", Path("none"), points)
        work = Workplace(folder)
        work.provider = Provider(folder / "fake", points)
        execution.undo_when_ended()
        # Through the command line's own handling of errors and signals, with this in the place of a command.
        clean.command = {"run": lambda: work.start(experiment(1, VARIANTS)), "resume": work.resume}.get(
            name, work.clean
        )
        status = main(["clean"])
        count.write_text(str(points.count))
        (folder / "modules").write_text("\n".join(sys.modules))
        sys.stderr.flush()
        os._exit(status)
    _, status = os.waitpid(pid, os.WUNTRACED)
    while os.WIFSTOPPED(status):
        time.sleep(STOPPED_S)
        os.kill(pid, signal.SIGCONT)
        _, status = os.waitpid(pid, os.WUNTRACED)
    return os.waitstatus_to_exitcode(status), int(count.read_text()) if count.exists() else 0


def kept(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Every committed file with its inode and its bytes."""
    return {str(path): (path.stat().st_ino, path.read_bytes()) for path in sorted(folder.glob("runs/*/*/trials/*/*"))}


def results(run: Run) -> dict[str, str]:
    """What trials measured, by their keys; instants count from the trial's start."""
    found = {}
    for trial in run.trials():
        rows = {}
        for name in ("iterations", "flows", "reactions"):
            mine = [row for row in run.table(name, valid_only=False).to_pylist() if row["trial"] == trial["trial"]]
            measured = [
                {key: value for key, value in row.items() if key not in ("run", "attempt", *IN_RUN_TIME)}
                | {key: row[key] - trial["start_ns"] for key in IN_RUN_TIME[:3] if key in row}
                for row in mine
            ]
            rows[name] = sorted(measured, key=str)  # hosts answer in any order
        found[trial["trial"]] = json.dumps([trial["valid"], trial["reason"], rows])
    return found


def tried(case: tuple[int, str, tuple[str, str]], folder: Path, expected: dict[str, str]) -> dict[str, object]:
    """What became of one case, as far as it should not have."""
    point, way, order = case
    command("run", folder, {point + after: number for after, number in WAYS[way]})
    before = kept(folder)
    wrong: dict[str, object] = {}
    whole = set()  # ids of the runs that must be whole in the end
    settled = False  # True once a process has replayed the journal
    again = {1 + point % FIRST: signal.SIGKILL} if AGAIN in way else {}
    for name, signals in zip(order, (again, {}), strict=True):
        runs = ids(folder)
        status, _ = command(name, folder, signals)
        if status == 0:
            settled = True
            whole |= {"run": ids(folder) - runs, "resume": {max(runs, default="")}, "clean": set()}[name]
        elif not (status == -signal.SIGKILL and signals) and not (name == "resume" and not runs):
            wrong["failed"] = f"{name}: {status}"
    if (
        Workplace(folder).has_leftovers and settled
    ):  # a process that was killed, or found no run to resume, leaves it to the next one
        wrong["left"] = True
    after = kept(folder)
    if lost := [path for path in before if after.get(path) != before[path]]:
        wrong["lost"] = lost
    found = {run.id: results(run) for run in Run.all(folder / "runs")}
    if any(each.items() - expected.items() for each in found.values()):
        wrong["different"] = found
    if unfinished := [each for each in whole if found[each] != expected]:
        wrong["unfinished"] = unfinished
    if "bug" in (folder / "said").read_text():
        wrong["said"] = (folder / "said").read_text()
    return wrong


def ids(folder: Path) -> set[str]:
    return {run.id for run in Run.all(folder / "runs")}


def one(job: tuple[int, tuple[int, str, tuple[str, str]], Path, dict[str, str]]) -> dict[str, object]:
    number, case, folder, expected = job
    place = folder / str(number)
    place.mkdir()
    wrong = tried(case, place, expected)
    if wrong:
        return {"case": case, **wrong}
    shutil.rmtree(place)
    return {}


def everything(folder: Path, count: int, ways: list[str]) -> dict[str, object]:
    """All cases of these ways, or `count` of them, one after the other on each CPU."""
    whole = folder / "undisturbed"
    whole.mkdir()
    status, points = command("run", whole, {})
    assert status == 0, (whole / "said").read_text()
    (run,) = Run.all(whole / "runs")
    expected = results(run)
    for name in (whole / "modules").read_text().split():  # or each process would import what comes late
        with suppress(ImportError):
            importlib.import_module(name)
    cases = list(itertools.product(range(1, points + 1), ways, ORDERS))
    if count:
        cases = [
            (1 + number * points // count, ways[number % len(ways)], ORDERS[number % len(ORDERS)])
            for number in range(count)
        ]
    with multiprocessing.get_context("fork").Pool(os.cpu_count(), maxtasksperchild=50) as pool:
        jobs = [(number, case, folder, expected) for number, case in enumerate(cases)]
        wrong = [each for each in pool.imap_unordered(one, jobs) if each]
    faults = Counter(name for each in wrong for name in each if name != "case")
    return {"points": points, "cases": len(cases), "trials": len(expected), "faults": faults, "wrong": wrong[:5]}


if __name__ == "__main__":
    json.dump(everything(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:] or list(WAYS)), sys.stdout)
