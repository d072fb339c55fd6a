# SPDX-License-Identifier: Apache-2.0
"""A job by RDMA, a worker on each of two guests: what they record, and how a peer's death is reported."""

import json
import shlex
import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack

from roundabout.core.errors import RoundaboutError
from tests.running import Event, Running, job_document
from tests.vms.guests import Guest
from tests.vms.holding import hold

PROGRAM = "/opt/roundabout/bin/replay-rdma"
PORT = 29500
AHEAD_S = 10  # emulated guests receive the start by then
COMPUTE_MS, ALONE_MS, BYTES = 3500, 500, 100_000  # at 1.6 Mbit/s, which emulation carries beside others
ITERATIONS = 30
DEVIATION = 0.01

# The command line of a shell on a guest that runs a command.
Shell = Callable[[Guest, str], Sequence[str]]


class Pair:
    """The two workers, connected. At the end of the context none is left."""

    def __init__(self, guests: Sequence[Guest], shell: Shell, dscp: int) -> None:
        self._guests, self._shell, self._stack = guests, shell, ExitStack()
        phases = [{"name": "compute", "compute_ms": COMPUTE_MS}]
        phases.append({"name": "allreduce", "bytes": BYTES, "alone_ms": ALONE_MS})
        there = [(guest.name, guest.address, PORT) for guest in guests]
        document = json.dumps(
            job_document("rdma", there, phases, iterations=ITERATIONS, dscp=dscp), separators=(",", ":")
        )
        words = [[PROGRAM, "--rank", str(rank), "--job", document] for rank in range(len(guests))]
        self._words = [shlex.join(each) for each in words]

    def __enter__(self) -> "Pair":
        with ExitStack() as stack:
            self.workers = [self._running(stack, *each) for each in zip(self._guests, self._words, strict=True)]
            for worker in self.workers:
                worker.say("secret of-this-run-alone")
            for worker in self.workers:
                hold(worker.event()["event"], "ready", "what a worker says first")
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def begin(self) -> None:
        """Start all, at one instant as far as their clocks are known."""
        start_ns = time.monotonic_ns() + round(AHEAD_S * 1e9)
        for guest, worker in zip(self._guests, self.workers, strict=True):
            before_ns = time.monotonic_ns()
            uptime_s = float(self.call(guest, "cat /proc/uptime").split()[0])
            ahead_ns = round(uptime_s * 1e9) - (before_ns + time.monotonic_ns()) // 2
            worker.say(f"start {start_ns + ahead_ns}")

    def call(self, guest: Guest, command: str) -> str:
        """What a command says on a guest."""
        with ExitStack() as stack:
            return "\n".join(self._running(stack, guest, command).lines())

    def _running(self, stack: ExitStack, guest: Guest, command: str) -> Running:
        running = Running(self._shell(guest, command))
        stack.callback(running.kill)
        return running


def play(guests: Sequence[Guest], shell: Shell, dscp: int) -> str:
    """Play the job to its end: every byte once, and the profile kept. What was found; raises RoundaboutError."""
    with Pair(guests, shell, dscp) as pair:
        pair.begin()
        events = [worker.events() for worker in pair.workers]
    found = []
    for guest, each in zip(guests, events, strict=True):
        hold(each[-1], {"event": "done", "iterations": ITERATIONS}, f"what the worker on {guest.name} ends with")
        found.append(_judged(guest, each))
    return "\n".join(found)


def _judged(guest: Guest, events: Sequence[Event]) -> str:
    records = [event for event in events if event["event"] == "iteration"]
    for way in ("sent_bytes", "received_bytes"):
        hold({record[way] for record in records}, {BYTES}, f"{way} of iterations on {guest.name}")
    (flow,) = [event for event in events if event["event"] == "flow"]
    hold(flow["bytes_acked"], ITERATIONS * BYTES, f"bytes acknowledged on {guest.name}")
    hold(flow["congestion_control"], None, f"the congestion control of a flow by RDMA on {guest.name}")
    # The first one has what clocks differ by.
    lasted_ms = [(record["comm_end_ns"] - record["start_ns"]) / 1e6 for record in records[1:]]
    expected_ms = COMPUTE_MS + ALONE_MS
    late_ms = statistics.median(record["late_ns"] for record in records[1:]) / 1e6
    off = statistics.median(lasted_ms) / expected_ms - 1
    text = (
        f"{guest.name}: iterations of {expected_ms} ms, off by {off:+.2%}, {min(lasted_ms):.0f} to {max(lasted_ms):.0f}"
    )
    text += f"; woken late by {late_ms:.1f} ms; {flow['bytes_acked']} bytes acknowledged"
    # Emulation may be late: once where computing ends, and once while bytes go.
    if abs(off) > DEVIATION + 2 * late_ms / expected_ms:
        raise RoundaboutError(f"{text}; expected {DEVIATION:.0%} at most, beside that lateness")
    return text


def lose_one(guests: Sequence[Guest], shell: Shell, dscp: int) -> str:
    """Kill one of the workers while they play: the other says so, and ends. How long that took."""
    survivor, victim = guests
    with Pair(guests, shell, dscp) as pair:
        pair.begin()
        for _ in range(2):
            hold(pair.workers[0].event()["event"], "iteration", "what a worker says")
        killed = time.monotonic()
        pair.call(victim, f"kill -9 $(pidof {PROGRAM})")
        *_, last = pair.workers[0].events()
        took_s = time.monotonic() - killed
    said = f"peer {victim.name} ({victim.address}) closed the connection in iteration"
    hold(last.get("message", "").rpartition(" ")[0], said, f"what the worker on {survivor.name} says of a peer's death")
    return f"{survivor.name}: {last['message']}, {took_s:.1f} s after a kill was requested"
