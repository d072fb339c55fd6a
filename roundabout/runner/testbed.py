# SPDX-License-Identifier: Apache-2.0
"""The interface of testbeds to the runner: an object that executes trials into tables.

A kind of testbed is a folder of roundabout/testbeds. The function `create_provider(where)` of its module `provider`
returns a TestbedProvider.
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
class RunContext:
    """The context of a run on a testbed: the run's name, clock, observer and undo journal."""

    name: str
    transports: tuple[Transport, ...]  # that its trials use
    probes: frozenset[tuple[str, tuple[str, ...]]]  # hosts, and what must succeed there before any trial
    clock: RunClock
    observer: Observer
    journal: Journal | None  # of what it owes this machine; none for a provider that owes nothing


@dataclass(frozen=True)
class Outcome:
    """The outcome of one attempt at a trial."""

    tables: Mapping[str, pa.Table]  # by name, as store/schemas.py describes them, in the papers' units
    invalid_reasons: Sequence[str] = ()  # why it may not be used
    record: Mapping[str, Any] = field(default_factory=dict)  # what else trial.json says, columns of `trials` above all
    lost: bool = False  # the testbed is of no more use, and must be raised anew


class Testbed(Protocol):
    """An open testbed with the requested topology."""

    @property
    def kind(self) -> str:
        """Return the kind of testbed for people to read; code never asks."""
        ...

    @property
    def scale(self) -> float:
        """Return the divisor of its rates against the papers'."""
        ...

    @property
    def dilation(self) -> float:
        """Return the factor of its times against the papers'."""
        ...

    @property
    def fidelity(self) -> Fidelity:
        """Return how real its figures are."""
        ...

    def identity(self) -> dict[str, Any]:
        """Return everything that makes two testbeds give different results; part of every trial's key."""
        ...

    def facts(self) -> dict[str, Any]:
        """Return the facts of its hosts and clocks that the manifest records in each session."""
        ...

    def execute(self, trial: PlannedTrial, attempt: Attempt, who: Identity) -> Outcome:
        """Run the trial once. `attempt` takes events and files; `who` is the identity of every row.

        The reasons that spoil one attempt are part of the outcome. Raises RoundaboutError if the run must end.
        """
        ...


@dataclass(frozen=True)
class Check:
    """One check of a requirement. `good` is None if it is not known; `mend` tells how to get the missing part."""

    name: str
    good: bool | None
    found: str
    mend: str = ""
    needed: bool = True


@dataclass(frozen=True)
class ExporterTarget:
    """A host or switch whose counters an exporter serves."""

    site: str
    node: str
    argv: tuple[str, ...]
    facts: Mapping[str, Any]  # the first line that the exporter reads
    connect: Callable[[], Connection]


class TestbedProvider(ABC):
    """A provider of testbeds of one kind on this machine."""

    where: Mapping[str, str]
    """What manifests and journals note, so that another process finds this provider again: `testbed`, its folder's
    name, and what else was asked for."""
    takes_machine: ClassVar[bool] = False
    """Whether nothing else may run on this machine meanwhile, and traces stay on it after a crash (then be root)."""

    dilation: float = 1.0
    """By how much its testbeds' times are longer than the papers'."""
    computes: ClassVar[bool] = False
    """Whether a model gives the figures: soon, and the same ones for the same seed. What no seed draws is run once."""

    @abstractmethod
    def open_testbed(self, topology: Topology, visit: RunContext) -> AbstractContextManager[Testbed]:
        """Open a testbed with `topology`, and give it up when the context ends."""

    def check_trial(self, trial: TrialSpec, /) -> None:  # noqa: B027 - a model takes every trial
        """Raise RoundaboutError if no testbed of this kind can run `trial`. Nothing is reached for it."""

    def artifacts(self, transports: Iterable[Transport], /) -> Mapping[str, str]:  # noqa: ARG002 - of hosts alone
        """Return the artifacts deployed for these transports, name -> hash; part of every trial's key.

        Raises RoundaboutError if one is missing.
        """
        return {}

    def undo(self, entry: Entry) -> None:
        """Undo an entry of the run's journal, even if it was made in part or not at all."""
        raise NotImplementedError(f"testbed {self.where['testbed']} owes nothing, found {entry}")

    def checks(self) -> Iterable[Check]:
        """Yield the requirements of this kind of testbed, and whether they are met. Nothing is changed."""
        return ()

    def exporter_targets(self) -> Iterable[ExporterTarget]:
        """Return the hosts and switches that exist now, and whose counters may be read while others use them."""
        return ()

    def inventories(self, name: str, /) -> AbstractContextManager[Sequence[Path]]:
        """Write inventories for Ansible that provision the hosts of `name`; they exist while the context lasts."""
        raise UsageError(f"testbed {self.where['testbed']} has no hosts to make ready, found {name!r}")
