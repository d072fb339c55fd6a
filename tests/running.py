# SPDX-License-Identifier: Apache-2.0
"""Programs as their users start them, with a pipe on standard input and records on standard output, or as modules."""

import importlib.util
import json
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

from roundabout.spec.patterns import all_transfers, describe_transfers

TIMEOUT_S = 40
CAP_SYS_RESOURCE = 24
RIGHTS = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("CapEff:"))
MAY_RAISE_LIMITS = bool(int(RIGHTS.split()[1], 16) >> CAP_SYS_RESOURCE & 1)  # root of a container may lack it

Event = dict[str, Any]


def load_program(path: Path) -> ModuleType:
    """Return a Python program that no package has, such as one of a host, as a module."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Running:
    """One started program."""

    def __init__(self, argv: Sequence[str]) -> None:
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=pipe, text=True)

    def say(self, line: str) -> None:
        assert self.process.stdin
        with suppress(BrokenPipeError):  # it ended: what it said shows why
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()

    def begin(self, delay_s: float = 0.05) -> int:
        """Lets a program that is ready start; returns the start."""
        start_ns = time.monotonic_ns() + int(delay_s * 1e9)
        self.say(f"start {start_ns}")
        return start_ns

    def close_input(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()

    def event(self) -> Event:
        assert self.process.stdout
        line = self.process.stdout.readline()
        assert line, f"ended without a further event: {self.errors()}"
        event: Event = json.loads(line)
        return event

    def lines(self) -> list[str]:
        """All that is still to come, until the program ends by itself."""
        assert self.process.stdout
        return self.process.stdout.read().splitlines()

    def events(self) -> list[Event]:
        return [json.loads(line) for line in self.lines()]

    def errors(self) -> str:
        assert self.process.stderr
        return self.process.stderr.read()

    def status(self) -> int:
        return self.process.wait(TIMEOUT_S)

    def terminate(self) -> None:
        self.process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert stream
            with suppress(BrokenPipeError):
                stream.close()


def job_document(name: str, workers: Sequence[tuple[str, str, int]], phases: Sequence[Event], **options: Any) -> Event:
    """A job as trainers get it: its workers by host, address and port; `options` change the rest."""
    return {
        "name": name,
        "workers": [{"name": host, "address": address, "port": port} for host, address, port in workers],
        "connections": 1,
        "iterations": 3,
        "seed": 7,
        "jitter": 0,
        "begins_ms": 0,
        "departs_ms": None,
        "phases": [_phase_document(phase, len(workers)) for phase in phases],
        **options,
    }


def _phase_document(phase: Event, workers: int) -> Event:
    """A phase as trainers get it."""
    if "bytes" not in phase:
        return phase
    groups = tuple(tuple(group) for group in phase.get("groups", [range(workers)]))
    pattern = phase.get("pattern", "ring")
    transfers = describe_transfers(pattern, all_transfers(pattern, phase["bytes"], groups))
    return {"name": phase["name"], "alone_ms": phase["alone_ms"], "transfers": transfers}
