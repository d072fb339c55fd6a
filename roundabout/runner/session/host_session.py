# SPDX-License-Identifier: Apache-2.0
"""Sessions on a testbed's hosts, which are provisioned, connected, and have transports loaded."""

import base64
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

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
from roundabout.runner.hosts.host_group import Host, HostGroup
from roundabout.runner.hosts.programs import check_call
from roundabout.runner.machine.undo_journal import Entry
from roundabout.runner.program_list import plugin_programs
from roundabout.runner.testbed import RunContext
from roundabout.spec.transports import Transport

T = TypeVar("T")


@dataclass(frozen=True)
class HostSession:
    """An open session on a group of hosts. `owner` is the session's name in the hosts' settings journals."""

    site: HostGroup
    owner: str
    sampler: Path | None  # for this machine's CPU, if the hosts share it
    connections: Mapping[str, Connection]
    clocks: Mapping[str, Clock]  # of the controller and the hosts
    controller: Connection
    check_held: Callable[[], None]  # raises RoundaboutError if another program may use the site
    _pool: ThreadPoolExecutor

    def on_each_host(self, action: Callable[[Host], T]) -> dict[str, T]:
        """Call `action` for every host in parallel, and return the results by host. Raises the first error."""
        answers = {name: self._pool.submit(action, host) for name, host in self.site.hosts.items()}
        try:
            return {name: answer.result() for name, answer in answers.items()}
        finally:
            wait(answers.values())  # or a host might be restored first, and changed then

    def read_clocks(self, phase: Phase) -> dict[str, Reading]:
        """Read every clock. In the phase `during`, skip the daemons that discipline clocks. Raises LostHostError."""
        syncs: dict[str, Sync | None] = {}
        if phase != "during":  # daemons take their time to answer, and CPU
            syncs = self.on_each_host(lambda host: self.clocks[host.name].sync())
            syncs[CONTROLLER] = self.clocks[CONTROLLER].sync()
        # One after another: threads would lengthen each other's round trips.
        return {host: clock.read(phase, syncs.get(host)) for host, clock in self.clocks.items()}


class HostAccess(Protocol):
    """A testbed provider's access to the hosts of a site."""

    where: Mapping[str, str]

    @property
    def sampler(self) -> Path | None:
        """Return the path of the sampler for this machine's CPU if the hosts share the CPU, else None."""
        ...

    def provision(self, site: HostGroup) -> None:
        """Install the programs of trials on the hosts of `site`."""
        ...

    def load_transport(self, transport: Transport, owner: str) -> None:
        """Load a congestion control on the hosts for the run `owner`."""
        ...

    def connect(self, site: HostGroup, host: str) -> Connection:
        """Return an open connection to a host of `site`."""
        ...

    def check_held(self) -> None:
        """Raise RoundaboutError if another program may use the site."""
        ...

    def undo(self, entry: Entry) -> None:
        """Undo the change that a journal entry describes."""
        ...


@contextmanager
def open_host_session(provider: HostAccess, site: HostGroup, context: RunContext) -> Iterator[HostSession]:
    """Provision and connect the hosts of `site`, load transports, and yield the session.

    At the end of the block, undo these steps in reverse order.
    """
    assert context.journal is not None
    owner, journal, clock = site.name, context.journal, context.clock
    noted = {"owner": owner, "hosts": list(site.hosts), "where": dict(provider.where)}
    with ExitStack() as stack:

        def register(kind: str, **named: str) -> None:
            if site.settings_state:  # without root, hosts are not changed
                entry = {"kind": kind, **named, **noted}
                stack.enter_context(journal.register_undo(entry, provider.undo))

        provider.provision(site)  # what loads transports, too
        for transport in context.transports:
            register("transport", name=transport.name)
            provider.load_transport(transport, owner)
        pool = stack.enter_context(ThreadPoolExecutor(len(site.hosts), thread_name_prefix="host"))
        connections = {host: stack.enter_context(closing(provider.connect(site, host))) for host in site.hosts}
        _deploy(site, connections)
        clocks: dict[str, Clock] = {CONTROLLER: ControllerClock(clock)}
        clocks |= {host: _clock(site, connections[host], clock) for host in site.hosts}
        for each in clocks.values():
            stack.callback(each.stop)
        register("settings", testbed=owner)
        controller = stack.enter_context(closing(LocalConnection()))
        session = HostSession(site, owner, provider.sampler, connections, clocks, controller, provider.check_held, pool)
        _run_probes(session, context.probes)
        yield session


def _deploy(site: HostGroup, connections: Mapping[str, Connection]) -> None:
    """Copy programs from outside the tree to the hosts. `provision` copies the tree's own."""
    for path in plugin_programs():
        text = base64.b64encode(path.read_bytes()).decode()
        for host, connection in connections.items():
            there = str(site.hosts[host].prefix / "bin" / path.name)
            check_call(connection, ["sh", "-c", 'base64 -d > "$0" && chmod 755 "$0"', there], text)


def _run_probes(session: HostSession, probes: Collection[tuple[str, tuple[str, ...]]]) -> None:
    """Raise RoundaboutError for a host that lacks a requirement of its workers' trainer."""

    def on_host(host: Host) -> None:
        for argv in (argv for name, argv in probes if name == host.name):
            check_call(session.connections[host.name], argv)

    session.on_each_host(on_host)


def _clock(site: HostGroup, connection: Connection, run_clock: RunClock) -> Clock:
    if "own clock" in site.capabilities():
        clock_py = site.hosts[connection.host].prefix / "bin" / "clock.py"
        return HostClock(connection, clock_py, run_clock, site.dilation)
    return SharedClock(run_clock)
