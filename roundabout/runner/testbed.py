# SPDX-License-Identifier: Apache-2.0
"""The interface between testbeds and the runner: a testbed executes trials and returns tables.

A kind of testbed is a folder of roundabout/testbeds. The function `create_provider(where)` of its module provider.py
returns a TestbedProvider.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from roundabout.core.errors import UsageError
from roundabout.plan import PlannedTrial
from roundabout.runner.fidelity import Fidelity
from roundabout.runner.hosts.clocks import RunClock
from roundabout.runner.hosts.connections import Connection
from roundabout.runner.machine.undo_journal import Entry, Journal
from roundabout.runner.observer import Observer
from roundabout.spec import preconditions
from roundabout.spec.errors import list_choices
from roundabout.spec.experiment import Experiment
from roundabout.spec.job_mix import JobMix
from roundabout.spec.topology import Topology
from roundabout.spec.transports import Transport
from roundabout.spec.trial_spec import TrialSpec
from roundabout.store import Attempt, Identity

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class RunContext:
    """The context of a run on a testbed: the run's name, clock, observer and undo journal."""

    name: str
    transports: tuple[Transport, ...]  # in use by the run's trials
    probes: frozenset[
        tuple[str, tuple[str, ...]]
    ]  # hosts, each with a command that must succeed before the first trial
    clock: RunClock
    observer: Observer
    journal: Journal | None  # undo journal; None for a provider that changes nothing on this machine


@dataclass(frozen=True)
class Outcome:
    """The outcome of one attempt at a trial."""

    tables: Mapping[str, pa.Table]  # by name, with the schemas of store/schemas.py, in the papers' units
    invalid_reasons: Sequence[str] = ()  # empty if the attempt is valid
    record: Mapping[str, Any] = field(default_factory=dict)  # further fields of trial.json, such as columns of `trials`
    lost: bool = False  # True if the testbed must be opened again
    disturbed: bool = False  # True if the reasons are a lack of CPU time alone, so that figures are biased, not wrong


class Testbed(Protocol):
    """An open testbed with the requested topology."""

    @property
    def kind(self) -> str:
        """Return the kind of testbed for display. Code must not depend on it."""
        ...

    @property
    def scale(self) -> float:
        """Return the divisor that the testbed applies to the papers' rates."""
        ...

    @property
    def dilation(self) -> float:
        """Return the factor that the testbed applies to the papers' times."""
        ...

    @property
    def fidelity(self) -> Fidelity:
        """Return the statement of the testbed's fidelity."""
        ...

    def identity(self) -> dict[str, Any]:
        """Return all properties that can make results of two testbeds differ. They are part of every trial's key."""
        ...

    def facts(self) -> dict[str, Any]:
        """Return the facts about hosts and clocks that the manifest records for each session."""
        ...

    def execute(self, trial: PlannedTrial, attempt: Attempt, identity: Identity) -> Outcome:
        """Run the trial once. Events and files go to `attempt`. `identity` has the identifying columns of every row.

        Reasons that make only this attempt invalid are part of the outcome. Raises RoundaboutError if the run must end.
        """
        ...


@dataclass(frozen=True)
class Check:
    """The result of checking one requirement. `good` is None if unknown. `mend` is the remedy."""

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
    facts: Mapping[str, Any]  # content of the first line on the exporter's stdin
    connect: Callable[[], Connection]


def refuse_switch_features(trial: TrialSpec, fields: Iterable[str], why: str) -> None:
    """Raise UsageError if the trial needs a feature of `fields` from switches. `why` says what the testbed has instead.

    A field that had no effect would make its results those of other switches.
    """
    for name in fields:
        if found := trial.switch_features.get(name):
            raise UsageError(
                f"{name}: found {found}, allowed is none: {why}", "run it with --testbed packets, or leave it out"
            )


def refuse_spreading(trial: TrialSpec, why: str, but: tuple[str, ...] = ()) -> None:
    """Raise UsageError if packets of one flow may take different paths by another rule than those of `but`.

    `why` says what the testbed has instead.
    """
    routing = trial.topology.routing
    if trial.topology.spreads_packets and routing and routing.name not in but:
        allowed = list_choices(("static", "ecmp", "rail", *but))
        raise UsageError(
            f"topology.routing.name: found {routing.name}, allowed are {allowed}: {why}",
            f"run it with --testbed packets, or choose --set routing.name={but[0] if but else 'ecmp'}",
        )


def refuse_mixes(trial: TrialSpec) -> None:
    """Raise UsageError if the trial is a mix of jobs, whose iterations nothing plays."""
    if trial.cluster and isinstance(trial.cluster.trace, JobMix):
        raise UsageError(
            "cluster.trace.kind: found mix, allowed are all others: the jobs of a mix are computed flow by flow alone",
            "run it with --testbed fluid",
        )


def refuse_modeled_transports(trial: TrialSpec) -> None:
    """Raise UsageError if a user of the trial has a transport without a program for hosts."""
    users = {f"jobs.{name}": job.transport for name, job in trial.jobs.items()}
    users |= {f"cross_traffic.{name}": traffic.transport for name, traffic in trial.cross_traffic.items()}
    users |= {"cluster": trial.cluster.transport} if trial.cluster else {}
    for user, transport in users.items():
        if transport.declaration and transport.declaration.is_model:
            raise UsageError(
                f"{user}.transport.name: found {transport.name}, allowed is a transport with a program for hosts",
                "run it with --testbed packets: models alone play it",
            )


def refuse_trees(trial: TrialSpec) -> None:
    """Raise UsageError if a job sends in trees, but its trainer cannot separate their two channels."""
    for name, job in trial.jobs.items():
        for phase in job.profile.phases:
            if phase.pattern == "tree" and not job.trainer.plays_trees:
                raise UsageError(
                    f"jobs.{name}.trainer.name: found {job.trainer.name} with the pattern tree in phase {phase.name}, "
                    "allowed is replay: other trainers support one transfer from a worker to another in a phase, and "
                    "a tree has two",
                    "use the trainer replay, run it with --testbed fluid or packets, or choose a profile with rings",
                )


class Replay(Protocol):
    """A function that plays a trial again, or a variant of it, by a model."""

    def __call__(self, spec: TrialSpec, stretches: Mapping[str, Sequence[float]], /) -> Mapping[str, Floats]:
        """Return the times of each job's iterations, ms: of an iteration, its slowest worker's.

        The computing times of iteration i of a job are multiplied by entry i of its `stretches`, cyclically. Cross
        traffic that `spec` has sends what it sends in the trial. Raises RoundaboutError.
        """
        ...


class TestbedProvider(ABC):
    """A provider of testbeds of one kind on this machine."""

    where: Mapping[str, str]
    """The request that manifests and journals record to recreate this provider: `testbed`, which is the name of its
    folder, and further options."""
    takes_machine: ClassVar[bool] = False
    """True if runs need exclusive use of this machine and leave changes after a crash. Such runs need root."""

    dilation: float = 1.0
    """The factor that the provider's testbeds apply to the papers' times."""
    computes: ClassVar[bool] = False
    """True if a model computes results, so that the seed determines them. Then trials without random parts run once."""
    has_jitter: ClassVar[bool] = False
    """True if a model draws times from the seed, so that repetitions of each trial differ."""
    can_replay: ClassVar[bool] = False
    """True if a model plays variants of trials (`open_replay`)."""

    @abstractmethod
    def open_testbed(self, topology: Topology, context: RunContext) -> AbstractContextManager[Testbed]:
        """Open a testbed with `topology`, and close it at the end of the block."""

    def check_trial(self, trial: TrialSpec, /) -> None:  # noqa: B027 - a model takes every trial
        """Raise RoundaboutError if no testbed of this kind can run `trial`. No host is contacted."""

    def check_experiment(self, experiment: Experiment, /) -> None:
        """Raise the error of the first trial that no testbed of this kind can run."""
        for cell in experiment.cells:
            self.check_trial(cell.spec)

    def find_warnings(self, experiment: Experiment, /) -> list[str]:
        """Return sentences about trials that can run, but whose results may mean something else than they seem to."""
        found = preconditions.find_warnings(cell.spec for cell in experiment.cells)
        if experiment.repetitions > 1 and self.repeats_nothing(experiment):
            name = self.where["testbed"]
            found.append(
                f"repetitions: found {experiment.repetitions}, one is run: on {name} every one comes out the same"
            )
        return found

    def repeats_nothing(self, experiment: Experiment) -> bool:
        """Return True if repetitions of each trial would have the same result, so that one is run."""
        return (
            self.computes and not self.has_jitter and not any(cell.spec.has_random_parts for cell in experiment.cells)
        )

    @property
    def processors(self) -> int:
        """Return the number of trials that a model computes at once."""
        return 1

    def computing_s(self, trial: PlannedTrial, /) -> float:  # noqa: ARG002
        """Return how long a model computes for a trial on one processor, about; 0 if that is soon."""
        return 0.0

    def compute_ahead(self, trials: Sequence[PlannedTrial], /) -> AbstractContextManager[None]:  # noqa: ARG002
        """Let a model compute trials, in the order of their execution, before they are executed within the context."""
        return nullcontext()

    def open_replay(self, trial: PlannedTrial, is_stopped: Callable[[], bool], /) -> Replay:  # noqa: ARG002
        """Return a function by which a model plays variants of a trial, until `is_stopped`.

        Raises UsageError if no model computes the testbed's results.
        """
        raise UsageError(f"testbed {self.where['testbed']} is no model, and replays nothing")

    def artifacts(self, transports: Iterable[Transport], /) -> Mapping[str, str]:  # noqa: ARG002 - of hosts alone
        """Return the hash of each artifact that trials with these transports use, by name.

        The hashes are part of every trial's key. Raises RoundaboutError if an artifact is missing.
        """
        return {}

    def undo(self, entry: Entry) -> None:
        """Undo the change of a journal entry, even if it was made only in part or not at all."""
        raise NotImplementedError(f"testbed {self.where['testbed']} has nothing to clean up, found {entry}")

    def checks(self) -> Iterable[Check]:
        """Yield the result of checking each requirement of this kind of testbed. Nothing is changed."""
        return ()

    def exporter_targets(self) -> Iterable[ExporterTarget]:
        """Return the existing hosts and switches whose counters may be read while other programs use them."""
        return ()

    def inventories(self, name: str, /) -> AbstractContextManager[Sequence[Path]]:
        """Yield paths of Ansible inventories that provision the hosts of the site `name`.

        The files are removed at the end of the block. Raises UsageError if the testbed has no hosts.
        """
        raise UsageError(f"testbed {self.where['testbed']} has no hosts to make ready, found {name!r}")
