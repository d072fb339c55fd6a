# SPDX-License-Identifier: Apache-2.0
"""The way over SSH: what every testbed shares whose hosts are reached so, from connecting to tables."""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from roundabout.core.errors import RoundaboutError
from roundabout.plan import PlannedTrial
from roundabout.runner.fidelity import Fidelity
from roundabout.runner.hosts.connections import Connection, LostHostError
from roundabout.runner.hosts.host_group import Site
from roundabout.runner.machine.journal import Entry
from roundabout.runner.program_list import artefacts
from roundabout.runner.session import host_facts as facts
from roundabout.runner.session.connectivity_check import Survey, survey
from roundabout.runner.session.host_session import Bench, prepared
from roundabout.runner.testbed import Facility, Outcome, Visit
from roundabout.runner.transports import build_outside
from roundabout.runner.trial import captures, checks
from roundabout.runner.trial.attempt import attempt_once
from roundabout.runner.trial.jobs import ways
from roundabout.runner.trial.measurement import Measurement, tables, units
from roundabout.spec.topology import Topology
from roundabout.spec.transports import Transport
from roundabout.store import Attempt, Identity

OWED = ("testbed", "transport", "settings")


def check_known(entry: Entry) -> None:
    """Raise RoundaboutError for what another version noted in a journal: forgetting it would leave it for good."""
    if entry["kind"] not in OWED:
        raise RoundaboutError(
            f"found a debt of the unknown kind {entry['kind']!r}, expected one of: {', '.join(OWED)}",
            "roundabout clean, with the version whose run that was",
        )


class SshFacility(Facility):
    """How this machine gets sites. A kind of them says how one is raised, made ready and given up."""

    takes_machine = True
    programs: tuple[str, ...] = ("hosts", "controller")
    """What of programs.yaml takes part."""

    @property
    def sampler(self) -> Path | None:
        """For the controller's CPU, where that is the hosts'; None where each host has its own and samples it."""
        return None

    @abstractmethod
    def raise_site(self, topology: Topology, name: str) -> Site:
        """Build or join the site called `name`; what the journal's entry "testbed" undoes."""

    @abstractmethod
    def provision(self, site: Site) -> None:
        """Put what trials need on its hosts."""

    @abstractmethod
    def load_transport(self, transport: Transport, owner: str) -> None:
        """Make a congestion control available; its program, if it has one, is built. Undone as "transport"."""

    @abstractmethod
    def connect(self, site: Site, host: str) -> Connection:
        """Connect to one of its hosts."""

    def check_held(self) -> None:
        """Raise RoundaboutError where somebody else may use the site meanwhile."""

    def artefacts(self, transports: Iterable[Transport], /) -> Mapping[str, str]:
        """The programs of hosts, and those that read what they leave. Builds transports from outside the tree."""
        return {**artefacts(*self.programs), **build_outside(transports)}

    @contextmanager
    def opened(self, topology: Topology, visit: Visit) -> "Iterator[SshTestbed]":
        """A site with `topology`, given up at the end, and before that all that was done on it."""
        assert visit.journal is not None
        entry = {"kind": "testbed", "name": visit.name, "where": dict(self.where)}
        with ExitStack() as stack:
            stack.enter_context(visit.journal.owing(entry, self.undo))
            yield SshTestbed(self, self.raise_site(topology, visit.name), visit, stack)


class SshTestbed:
    """A site that stands. It is a Testbed; its hosts are made ready when they are first needed."""

    def __init__(self, facility: SshFacility, site: Site, visit: Visit, stack: ExitStack) -> None:
        self._facility, self._site, self._visit, self._stack = facility, site, visit, stack
        self._bench: Bench | None = None

    @property
    def kind(self) -> str:
        """The site's."""
        return self._site.kind

    @property
    def scale(self) -> float:
        """The site's."""
        return self._site.scale

    @property
    def dilation(self) -> float:
        """The site's."""
        return self._site.dilation

    @property
    def fidelity(self) -> Fidelity:
        """The site's."""
        return self._site.fidelity

    def identity(self) -> dict[str, Any]:
        """The site's."""
        return self._site.identity()

    def facts(self) -> dict[str, Any]:
        """What hosts are, and how far their clocks are from the run's."""
        bench = self._ready()
        clocks = {host: asdict(reading) for host, reading in bench.read_clocks("before").items()}
        return {"hosts": facts.of_hosts(bench), "clocks": clocks}

    def execute(self, trial: PlannedTrial, attempt: Attempt, who: Identity) -> Outcome:
        """Run the trial once on its hosts. Raises RoundaboutError where the site was lost to somebody else."""
        try:
            bench = self._ready()
        except LostHostError as error:  # as good as lost during the attempt
            return Outcome({}, [str(error)], lost=True)
        self._facility.check_held()
        measured = attempt_once(bench, trial, self._visit.clock, self._visit.observer, attempt)
        self._facility.check_held()
        into = units(self._site, self._visit.clock)
        found = tables(measured, self._site, who, into)
        captures.store(measured.captured, measured.ledger, self._site, into, attempt, who)
        start_ns, end_ns = (None if at is None else into.instant(at) for at in (measured.start_ns, measured.end_ns))
        strain = checks.strain(found, start_ns, end_ns)
        faults = measured.faults or checks.faults(trial, found, strain)
        record = {"ways": ways(trial, self._site), **_record(measured)}
        return Outcome(found, faults, {**record, "start_ns": start_ns, **strain}, lost=measured.lost_host)

    def survey(self) -> Survey:
        """What its hosts reach of each other, before any trial. Raises LostHostError."""
        return survey(self._ready())

    def _ready(self) -> Bench:
        if self._bench is None:
            self._visit.observer.step(f"preparing {len(self._site.hosts)} hosts")
            self._bench = self._stack.enter_context(prepared(self._facility, self._site, self._visit))
        return self._bench


def _record(measured: Measurement) -> dict[str, Any]:
    return {
        "settings": measured.settings,
        "clock": measured.ledger.as_json(),
        "clock_steps": [asdict(step) for step in measured.ledger.steps()],
        **({"nccl": measured.nccl} if measured.nccl else {}),
        "sampling": {host: asdict(kept) for host, kept in measured.sampling().items()},
    }
