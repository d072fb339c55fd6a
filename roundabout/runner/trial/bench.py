# SPDX-License-Identifier: Apache-2.0
"""A testbed ready for trials: raised, provisioned, its hosts connected, its transports loaded."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from roundabout.programs import ROOT
from roundabout.runner.hosts.clocks import (
    CONTROLLER,
    Clock,
    ControllerClock,
    HostClock,
    Phase,
    Reading,
    RunClock,
    SharedClock,
    Sync,
)
from roundabout.runner.hosts.connections import Connection, LocalConnection
from roundabout.runner.machine.journal import Entry, Journal
from roundabout.runner.testbed import Host, Testbed
from roundabout.spec.topology import Topology

T = TypeVar("T")


class Facility(Protocol):
    """How this machine gets testbeds, and gets rid of them."""

    @property
    def sampler(self) -> Path | None:
        """For the controller's CPU, where that is the hosts'; None where each host has its own and samples it."""
        ...

    @property
    def where(self) -> Mapping[str, str]:
        """What a journal and a manifest note, so that another process finds this facility again."""
        ...

    def raise_testbed(self, topology: Topology, name: str) -> Testbed:
        """Build or join the testbed called `name`."""

    def provision(self, testbed: Testbed) -> None:
        """Put what trials need on its hosts."""

    def load_transport(self, name: str, owner: str) -> None:
        """Make a congestion control available; one that the kernel brings needs nothing."""

    def connect(self, testbed: Testbed, host: str) -> Connection:
        """Connect to one of its hosts."""

    def check_held(self) -> None:
        """Raise RoundaboutError where somebody else may use the testbed meanwhile."""

    def undo(self, entry: Entry) -> None:
        """Undo what a journal's entry says, whether it was made wholly, in part or not at all."""


@dataclass(frozen=True)
class Bench:
    """An open testbed. `owner` is who applies settings on it."""

    testbed: Testbed
    owner: str
    facility: Facility
    links: Mapping[str, Connection]
    clocks: Mapping[str, Clock]  # of the controller and its hosts
    controller: Connection
    _pool: ThreadPoolExecutor

    def each(self, action: Callable[[Host], T]) -> dict[str, T]:
        """Do something for every host at once; answers by host. Raises the first error."""
        return dict(zip(self.testbed.hosts, self._pool.map(action, self.testbed.hosts.values()), strict=True))

    def read_clocks(self, phase: Phase) -> dict[str, Reading]:
        """A reading of every clock; during a trial nobody is asked what keeps it. Raises LostHostError."""
        syncs: dict[str, Sync | None] = {}
        if phase != "during":  # daemons take their time to answer, and CPU
            syncs = self.each(lambda host: self.clocks[host.name].sync())
            syncs[CONTROLLER] = self.clocks[CONTROLLER].sync()
        # One after another: threads would lengthen each other's round trips.
        return {host: clock.measure(phase, syncs.get(host)) for host, clock in self.clocks.items()}


@contextmanager
def raised(facility: Facility, topology: Topology, owner: str, journal: Journal) -> Iterator[Testbed]:
    """A testbed with `topology`, given up at the end."""
    with journal.owing({"kind": "testbed", "name": owner, **facility.where}, facility.undo):
        yield facility.raise_testbed(topology, owner)


@contextmanager
def prepared(
    facility: Facility, testbed: Testbed, transports: Iterable[str], journal: Journal, clock: RunClock
) -> Iterator[Bench]:
    """A bench for trials on `testbed`, undone in reverse at the end."""
    owner = testbed.name
    where = {"owner": owner, "hosts": list(testbed.hosts), **facility.where}
    with ExitStack() as stack:
        facility.provision(testbed)  # what loads transports, too
        for name in transports:
            entry = {"kind": "transport", "name": name, **where}
            stack.enter_context(journal.owing(entry, facility.undo))
            facility.load_transport(name, owner)
        pool = stack.enter_context(ThreadPoolExecutor(len(testbed.hosts), thread_name_prefix="host"))
        links = {host: stack.enter_context(closing(facility.connect(testbed, host))) for host in testbed.hosts}
        clocks: dict[str, Clock] = {CONTROLLER: ControllerClock(ROOT / "collectors/clock.py", clock)}
        clocks |= {host: _clock(testbed, links[host], clock) for host in testbed.hosts}
        for each in clocks.values():
            stack.callback(each.stop)
        entry = {"kind": "settings", "testbed": owner, **where}
        stack.enter_context(journal.owing(entry, facility.undo))
        yield Bench(testbed, owner, facility, links, clocks, LocalConnection(), pool)


def _clock(testbed: Testbed, link: Connection, run_clock: RunClock) -> Clock:
    if "own clock" in testbed.capabilities():
        return HostClock(link, testbed.hosts[link.host].prefix / "bin" / "clock.py", run_clock)
    return SharedClock(run_clock)
