# SPDX-License-Identifier: Apache-2.0
"""Leftovers of killed tests and benchmarks: labs, users of transports, and network namespaces.

Runs have journals. Tests and benchmarks have names instead, which hold the id of the process that chose them.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from roundabout.runner.machine.undo_journal import Entry

NAMESPACES = Path("/run/netns")  # folder of `ip netns`
NAME = re.compile(r".+-pid(\d+)")


def process_name(what: str) -> str:
    """Return a name for `what` that belongs to this process: `bench-sampler-pid1234`."""
    return f"{what}-pid{os.getpid()}"


def is_leftover(name: str) -> bool:
    """Return True if `name` is the `process_name` of a process that has ended."""
    pid = NAME.fullmatch(name)
    return pid is not None and not Path("/proc", pid[1]).exists()


def find_leftovers(state: Path, namespaces: Path = NAMESPACES) -> Iterator[Entry]:
    """Yield a journal entry for everything with the `process_name` of a process that has ended.

    Labs come before the transports that their sockets use. A transport's users are files: those of this project's
    transports in `transports`, those of Linux's own in `allowed`.
    """
    where = {"where": {"testbed": "lab"}}
    for path in _of_dead_processes(state.glob("labs/*")):
        yield {"kind": "testbed", "name": path.name, **where}
    for path in _of_dead_processes(state.glob("transports/*/users/*")):
        yield {"kind": "transport", "name": path.parents[1].name, "owner": path.name, **where}
    for path in _of_dead_processes(state.glob("allowed/*/*")):
        yield {"kind": "transport", "name": path.parent.name, "owner": path.name, **where}
    for path in _of_dead_processes(namespaces.glob("*")):
        yield {"kind": "namespace", "name": path.name, **where}


def _of_dead_processes(paths: Iterator[Path]) -> list[Path]:
    return [path for path in sorted(paths) if is_leftover(path.name)]
