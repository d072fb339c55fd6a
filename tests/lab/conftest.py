# SPDX-License-Identifier: Apache-2.0
"""Real labs, with names of their own, and what of a lab can be seen from outside."""

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from roundabout.runner.machine.process_leftovers import process_name
from roundabout.spec import Topology, load_topology
from roundabout.testbeds.lab import Lab, LabError
from roundabout.testbeds.lab.network import paths

BUILD = Path(__file__).parents[2] / "build"
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="a lab needs root")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if {"lab", "lab_name"} & set(getattr(item, "fixturenames", ())):
            item.add_marker(needs_root)


@pytest.fixture(scope="session")
def topology() -> Topology:
    return load_topology("dumbbell-2x2")


@pytest.fixture(scope="module")
def lab(topology: Topology) -> Iterator[Lab]:
    """A lab that all tests of a file share."""
    name = process_name("test-shared")
    built = Lab.create(topology, name)
    try:
        yield built
    finally:
        Lab.remove(name)


@pytest.fixture
def lab_name(request: pytest.FixtureRequest) -> Iterator[Callable[[], str]]:
    """Names for labs of one test; what still stands at its end is taken down."""
    names: list[str] = []

    def make() -> str:
        names.append(process_name(f"test-{len(names)}"))
        return names[-1]

    yield make
    for name in names:
        with suppress(LabError):
            Lab.remove(name)


def traces(name: str) -> dict[str, list[str]]:
    """Everything on this machine that carries the lab's name: processes, mounts, files, pins."""
    needle = f"labs/{name}".encode()
    processes = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if needle in (entry / "cmdline").read_bytes():
                processes.append(entry.name)
    mounts = [line for line in Path("/proc/self/mounts").read_text().splitlines() if f"labs/{name}" in line]
    files = [str(path) for path in (paths.LABS / name, paths.BPF / "labs" / name) if path.exists()]
    return {"processes": processes, "mounts": mounts, "files": files}


NOTHING: dict[str, list[str]] = {"processes": [], "mounts": [], "files": []}


def namespaces(lab: Lab) -> set[str]:
    """The network namespaces of a lab's nodes."""
    return {os.readlink(f"/proc/{pid}/ns/net") for pid in lab.pids().values()}


def namespaces_in_use() -> set[str]:
    found = set()
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            found.add(os.readlink(entry / "ns/net"))
    return found


def bpf_objects(lab: Lab) -> set[tuple[str, int]]:
    """The ids of a lab's pinned map, of the programs that use it, and of all their maps."""
    pinned = int(_query_kernel("id", str(lab.files.ports_map)))
    programs = [each for each in json.loads(_query_kernel("list"))["prog"] if pinned in each["map_ids"]]
    maps = {each for program in programs for each in program["map_ids"]}
    return {("prog", program["id"]) for program in programs} | {("map", each) for each in maps}


def bpf_objects_alive() -> set[tuple[str, int]]:
    alive = json.loads(_query_kernel("list"))
    return {(kind, each["id"]) for kind in ("prog", "map") for each in alive[kind]}


def _query_kernel(*words: str) -> str:
    command = [str(BUILD / "bin/bpf_objects"), *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def devices() -> set[str]:
    """The devices of the machine's own network namespace."""
    return set(os.listdir("/sys/class/net"))


def wait_until(true: Callable[[], bool], limit_s: float = 5) -> bool:
    deadline = time.monotonic() + limit_s
    while not true() and time.monotonic() < deadline:
        time.sleep(0.005)
    return true()
