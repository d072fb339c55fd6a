# SPDX-License-Identifier: Apache-2.0
"""The destination of a session's trials: a new run or an existing run."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

from roundabout.core.errors import RoundaboutError
from roundabout.plan import PlannedTrial
from roundabout.runner.disturbance.attempt_choice import commit_best
from roundabout.runner.hosts.clocks import RunClock
from roundabout.spec.experiment import Experiment
from roundabout.store import Attempt, Run
from roundabout.store.look_schedule import LookSchedule

MB = 1_000_000
SHOWN_CHANGES = 5


class ChangedError(RoundaboutError):
    """Error for a run that cannot be resumed because its experiment, testbed or programs have changed."""


class RunStore(Protocol):
    """The destination of a session's trials."""

    @property
    def path(self) -> Path:
        """Return the run's folder, which may not exist yet. The folder's name is the run's id."""
        ...

    @property
    def clock(self) -> RunClock:
        """Return the run's clock."""
        ...

    def open_run(self, identity: Mapping[str, Any], /) -> Run:
        """Open or create the run. `identity` is the part of the manifest that must be the same when a run is resumed.

        Raises RoundaboutError, such as ChangedError.
        """
        ...

    def commit(self, attempt: Attempt, record: dict[str, Any], /) -> dict[str, Any]:
        """Commit a trial's last attempt, or an earlier one that was disturbed less. Return the committed record.

        `record` becomes the last attempt's trial.json.
        """
        ...


@dataclass(frozen=True)
class NewRun:
    """A run that `open_run` creates. Its manifest records `where`, `which`, `length` and `looks` for `resume`."""

    path: Path
    clock: RunClock
    experiment: Experiment
    where: dict[str, str]
    which: str | None
    length: str | None
    looks: LookSchedule | None = None

    def open_run(self, identity: Mapping[str, Any], /) -> Run:
        """Create the run's folder with its manifest and experiment. Raises StoreError."""
        request = {"which": self.which, "length": self.length, "where": self.where}
        looks = {"looks": asdict(self.looks)} if self.looks else {}
        manifest = {**identity, **request, **looks, "clock": asdict(self.clock), "sessions": []}
        run = Run.create(self.path.parent.parent, self.experiment.name, manifest, self.path.name)
        if self.experiment.document:
            run.write_experiment(self.experiment.document)
        return run

    def commit(self, attempt: Attempt, record: dict[str, Any], /) -> dict[str, Any]:
        """Commit the attempt, or an earlier one that was disturbed less. Return the committed record."""
        return commit_best(attempt, record)


class ExistingRun:
    """A run that exists on disk. With `is_reference`, attempts are stored beside the committed ones."""

    def __init__(self, run: Run, *, is_reference: bool = False) -> None:
        self._run, self._is_reference = run, is_reference
        self.path, self.clock = run.path, RunClock.resume(run.recorded("clock"))

    def open_run(self, identity: Mapping[str, Any], /) -> Run:
        """Return the run. If it has no plan yet, store the plan in `identity`.

        Raises ChangedError if the stored plan differs from `identity`.
        """
        if self._run.manifest["plan"]:
            _refuse_changes(self._run, identity)
        else:
            self._run.write_manifest({**self._run.manifest, **identity})
        return self._run

    def commit(self, attempt: Attempt, record: dict[str, Any], /) -> dict[str, Any]:
        """Commit the attempt or an earlier one that was disturbed less, or store the attempt as a reference."""
        if self._is_reference:
            attempt.add_reference(record)
            return record
        return commit_best(attempt, record)


class ExtendedRun(ExistingRun):
    """A run whose plan grows by repetitions. Committed trials stay, because their keys do not change."""

    def open_run(self, identity: Mapping[str, Any], /) -> Run:
        """Store the longer plan in `identity`. Raises ChangedError if it lacks a trial of the stored plan."""
        run, keys = self._run, {trial["key"] for trial in identity["plan"]}
        shared = [trial for trial in run.manifest["plan"] if trial["key"] in keys]
        _refuse_changes(run, {**identity, "plan": shared})
        with run.hold():
            run.write_manifest({**run.manifest, **identity})
            if document := identity["experiment"]["document"]:
                run.write_experiment(document)
        return run


def update_index(run: Run, done: Iterable[PlannedTrial]) -> None:
    """Update trials.parquet with the committed trials `done`, and delete raw files beyond the run's limit."""
    run.refresh_trials()
    for trial in done:
        if trial.spec.capture:
            run.drop_raw(trial.spec.capture.keep_mb * MB)


def _refuse_changes(run: Run, now: Mapping[str, Any]) -> None:
    was = run.manifest
    if {trial["key"] for trial in was["plan"]} == {trial["key"] for trial in now["plan"]}:
        return
    names = ("experiment", "testbed", "artefacts")
    changes = [change for name in names for change in _changes(name, was[name], json.loads(json.dumps(now[name])))]
    more = [f"... and {len(changes) - SHOWN_CHANGES} more"] if len(changes) > SHOWN_CHANGES else []
    raise ChangedError(
        f"{run.path} cannot be resumed: its trials would not be what they were",
        "\n".join([*changes[:SHOWN_CHANGES], *more, "restore that, or start a new run"]),
    )


def _changes(where: str, was: Any, now: Any) -> list[str]:
    if isinstance(was, dict) and isinstance(now, dict):
        keys = list(dict.fromkeys([*was, *now]))
        return [change for key in keys for change in _changes(f"{where}.{key}", was.get(key), now.get(key))]
    if isinstance(was, list) and isinstance(now, list) and len(was) == len(now):
        pairs = enumerate(zip(was, now, strict=True))
        return [change for at, pair in pairs for change in _changes(f"{where}[{at}]", *pair)]
    return [] if was == now else [f"{where}: was {_shorten(was)}, is {_shorten(now)}"]


def _shorten(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
