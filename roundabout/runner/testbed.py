# SPDX-License-Identifier: Apache-2.0
"""What the runner needs of a testbed: something that executes trials into tables, however it does so.

A kind of testbed is a folder of roundabout/testbeds, whose module `facility` offers `facility(where)`: a Facility.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol

import pyarrow as pa

from roundabout.core.errors import UsageError
from roundabout.plan import PlannedTrial
from roundabout.runner.fidelity import Fidelity
from roundabout.runner.hosts.clocks import RunClock
from roundabout.runner.hosts.connections import Connection
from roundabout.runner.machine.journal import Entry, Journal
from roundabout.runner.observer import Observer
from roundabout.spec.experiment import TrialSpec
from roundabout.spec.topology import Topology
from roundabout.spec.transports import Transport
from roundabout.store import Attempt, Identity


@dataclass(frozen=True)
class Visit:
    """What a run brings along: the name for what it raises, and where that is noted, timed and told."""

    name: str
    transports: tuple[Transport, ...]  # that its trials use
    probes: frozenset[tuple[str, tuple[str, ...]]]  # hosts, and what must succeed there before any trial
    clock: RunClock
    observer: Observer
    journal: Journal | None  # of what it owes this machine; none for a facility that owes nothing


@dataclass(frozen=True)
class Outcome:
    """What came of one attempt at a trial."""

    tables: Mapping[str, pa.Table]  # by name, as store/schemas.py describes them, in the papers' units
    faults: Sequence[str] = ()  # why it may not be used
    record: Mapping[str, Any] = field(default_factory=dict)  # what else trial.json says, columns of `trials` above all
    lost: bool = False  # the testbed is of no more use, and must be raised anew


class Testbed(Protocol):
    """A testbed that stands, with the topology asked for."""

    @property
    def kind(self) -> str:
        """For people to read; code never asks."""
        ...

    @property
    def scale(self) -> float:
        """By how much its rates are smaller than the papers'."""
        ...

    @property
    def dilation(self) -> float:
        """By how much its times are longer than the papers'."""
        ...

    @property
    def fidelity(self) -> Fidelity:
        """How real what comes out is."""
        ...

    def identity(self) -> dict[str, Any]:
        """What makes two testbeds give different results; part of every trial's key."""
        ...

    def facts(self) -> dict[str, Any]:
        """What the manifest notes of its hosts and their clocks, each time that a run begins or goes on."""
        ...

    def execute(self, trial: PlannedTrial, attempt: Attempt, who: Identity) -> Outcome:
        """Run the trial once. `attempt` takes events and files, `who` is what every row of its tables carries.

        What spoils one attempt is among the outcome's faults; raises RoundaboutError for what ends the run.
        """
        ...


@dataclass(frozen=True)
class Check:
    """One thing that was looked at. `good` is None where nobody could tell; `mend` says how to get what is missing."""

    name: str
    good: bool | None
    found: str
    mend: str = ""
    needed: bool = True


@dataclass(frozen=True)
class Exported:
    """A host or switch that stands now, and whose counters an exporter says while others use it."""

    site: str
    node: str
    argv: tuple[str, ...]
    facts: Mapping[str, Any]  # the first line that the exporter reads
    connect: Callable[[], Connection]


class Facility(ABC):
    """How this machine gets testbeds of one kind, and gives them up."""

    where: Mapping[str, str]
    """What manifests and journals note, so that another process finds this facility again: `testbed`, its folder's
    name, and what else was asked for."""
    takes_machine: ClassVar[bool] = False
    """Whether nothing else may run on this machine meanwhile, and traces stay on it after a crash (then be root)."""

    dilation: float = 1.0
    """By how much its testbeds' times are longer than the papers'."""
    computes: ClassVar[bool] = False
    """Whether a model gives the figures: soon, and the same ones for the same seed. What no seed draws is run once."""

    @abstractmethod
    def opened(self, topology: Topology, visit: Visit) -> AbstractContextManager[Testbed]:
        """A testbed with `topology`, given up when the context ends."""

    def check_trial(self, trial: TrialSpec, /) -> None:  # noqa: B027 - a model takes every trial
        """Raise RoundaboutError if it is known, before anything is reached, that no testbed here can run `trial`."""

    def artefacts(self, transports: Iterable[Transport], /) -> Mapping[str, str]:  # noqa: ARG002 - of hosts alone
        """What is deployed for these transports: name -> hash; part of every trial's key.

        Raises RoundaboutError where something lacks.
        """
        return {}

    def undo(self, entry: Entry) -> None:
        """Undo what an entry of the visit's journal says, whether it was made wholly, in part or not at all."""
        raise NotImplementedError(f"testbed {self.where['testbed']} owes nothing, found {entry}")

    def checks(self) -> Iterable[Check]:
        """What this kind of testbed needs, and whether it is there; nothing is changed."""
        return ()

    def exported(self) -> Iterable[Exported]:
        """The hosts and switches that stand now, whose counters may be read while others use them."""
        return ()

    def inventories(self, name: str, /) -> AbstractContextManager[Sequence[Path]]:
        """Files for Ansible that tell how the hosts of `name` are made ready, for as long as the context lasts."""
        raise UsageError(f"testbed {self.where['testbed']} has no hosts to make ready, found {name!r}")
