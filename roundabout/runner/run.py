# SPDX-License-Identifier: Apache-2.0
"""A run from lease to last trial, and everything undone in reverse."""

import json
import os
import signal
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from roundabout.errors import RoundaboutError
from roundabout.plan import Plan, PlannedTrial, make_plan
from roundabout.programs import ROOT
from roundabout.runner.hosts.clocks import CONTROLLER, RunClock
from roundabout.runner.machine import journal, lease
from roundabout.runner.machine.journal import Journal
from roundabout.runner.machine.state import STATE
from roundabout.runner.observer import Observer
from roundabout.runner.tables.measurement import Measurement, identity, tables
from roundabout.runner.testbed import Testbed
from roundabout.runner.trial import captures, checks, facts
from roundabout.runner.trial.attempt import measure
from roundabout.runner.trial.bench import Bench, Facility, prepared, raised
from roundabout.runner.trial.jobs import workers
from roundabout.spec.experiment import Experiment
from roundabout.spec.topology import Topology
from roundabout.store import Run, StoreError, new_run_id
from roundabout.store.schemas import VERSION

REPEATS = 2  # how often an invalid trial is repeated
SHOWN_CHANGES = 5

Settle = Callable[[Plan, Testbed], Run]  # makes the run's folder, or checks that it still fits


class ChangedError(RoundaboutError):
    """A run cannot be resumed: what it is made of is not what it was."""


@dataclass(frozen=True)
class Runner:
    """Runs experiments on this machine."""

    facility: Facility
    observer: Observer
    artefacts: Mapping[str, str]
    state: Path = STATE

    def start(self, experiment: Experiment, which: str, runs: Path, length: str | None = None) -> Run:
        """Run a whole experiment, which `which` and `length` named, into a new folder under `runs`.

        Raises RoundaboutError; what was committed until then stays, everything else is undone.
        """
        run_id, clock = new_run_id(), RunClock.start()

        def create(plan: Plan, testbed: Testbed) -> Run:
            where = {"which": which, "length": length, **self.facility.where}
            manifest: dict[str, Any] = {**where, "clock": asdict(clock), "sessions": []}
            return Run.create(runs, experiment.name, {**self._identity(run_id, plan, testbed), **manifest}, run_id)

        return self._execute(experiment, runs / experiment.name / run_id, clock, create)

    def resume(self, run: Run, experiment: Experiment) -> Run:
        """Finish the trials of `run` that are not committed. Raises ChangedError where they are not what they were."""

        def check(plan: Plan, testbed: Testbed) -> Run:
            _refuse_changes(run, self._identity(run.id, plan, testbed))
            return run

        return self._execute(experiment, run.path, RunClock.carry_on(run.manifest["clock"]), check)

    def _execute(self, experiment: Experiment, path: Path, clock: RunClock, settle: Settle) -> Run:
        with _undisturbed() as undo_begins, ExitStack() as stack:
            stack.enter_context(lease.hold("machine", f"{experiment.name} {path.name}", self.state))
            notes = stack.enter_context(journal.keep(path.name, path, self.state))
            stack.enter_context(_temporary_files(path.name, notes, self.facility))
            benches = stack.enter_context(Benches(self, experiment, path.name, notes, clock))
            stack.callback(undo_begins)
            testbed = benches.testbed(experiment.cells[0].spec.topology)
            plan = make_plan(experiment, testbed.identity(), self.artefacts)
            run = settle(plan, testbed)
            stack.callback(_refresh, run)
            done = run.committed()
            self.observer.run_started(run, plan, len(done))
            left = [trial for trial in plan.trials if trial.key not in done]
            if left:
                _note_session(run, benches.ready(left[0].spec.topology), clock)
            for trial in left:
                self._settle(trial, run, benches, clock)
        return run

    def _identity(self, run_id: str, plan: Plan, testbed: Testbed) -> dict[str, Any]:
        """What a manifest says of what is run, and a resumed run must not change."""
        identified = {"kind": testbed.kind, "emulated": testbed.emulated, "scale": testbed.scale}
        fields = ("key", "variant", "levels", "repetition", "job", "expected_s")
        return {
            "run": run_id,
            "experiment": plan.experiment.model_dump(mode="json", by_alias=True),
            "testbed": {**identified, "identity": testbed.identity()},
            "artefacts": dict(self.artefacts),
            "plan": [{name: getattr(trial, name) for name in fields} for trial in plan.trials],
        }

    def _settle(self, trial: PlannedTrial, run: Run, benches: "Benches", clock: RunClock) -> None:
        """Attempt a trial until it is valid or was repeated often enough. Every attempt is kept."""
        again = True
        while again:
            bench = benches.ready(trial.spec.topology)
            self.facility.check_held()
            attempt = run.begin(trial.key)
            self.observer.trial_started(trial, attempt.number)
            started_ns = clock.now_ns()
            measured = measure(bench, trial, clock, self.observer, attempt)
            self.facility.check_held()
            who = identity(run.id, trial, attempt.number)
            found = tables(measured, bench.testbed, who)
            for name, table in found.items():
                attempt.write(name, table)
            captures.store(measured.captured, measured.ledger, bench.testbed, attempt, who)
            measures = checks.measures(found, measured.start_ns, measured.end_ns)
            reasons = measured.faults or checks.faults(trial, found, measures, len(workers(trial, bench.testbed)))
            again = bool(reasons) and run.rejected(trial.key) < REPEATS
            record = {
                **_record(trial, run, attempt.number, measured),
                **_when(started_ns, clock),
                "valid": not reasons,
                "reason": "; ".join(reasons),
                **measures,
            }
            if again:
                captures.drop(attempt)
                attempt.reject(record)
            else:
                attempt.commit(record)
                captures.prune(run.path, trial.spec.capture)
            self.observer.trial_ended(trial, reasons, again)
            if measured.lost_host:
                benches.close()


class Benches:
    """The one bench that is open: raised when it is needed, and anew for another topology or after it was closed."""

    def __init__(self, runner: Runner, experiment: Experiment, name: str, notes: Journal, clock: RunClock) -> None:
        self._runner, self._name, self._notes, self._clock = runner, name.lower(), notes, clock
        self._transports = frozenset[str]().union(*(cell.spec.transports for cell in experiment.cells))
        self._stack = ExitStack()
        self._topology: Topology | None = None
        self._testbed: Testbed | None = None
        self._bench: Bench | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    def testbed(self, topology: Topology) -> Testbed:
        """A testbed with `topology`, whose hosts may not be ready yet."""
        if self._testbed is None or self._topology != topology:
            self.close()
            self._runner.observer.step(f"raising testbed {topology.name}")
            up = raised(self._runner.facility, topology, self._name, self._notes)
            self._testbed, self._topology = self._stack.enter_context(up), topology
        return self._testbed

    def ready(self, topology: Topology) -> Bench:
        """A bench for trials on `topology`."""
        testbed = self.testbed(topology)
        if self._bench is None:
            self._runner.observer.step(f"preparing {len(testbed.hosts)} hosts")
            ready = prepared(self._runner.facility, testbed, sorted(self._transports), self._notes, self._clock)
            self._bench = self._stack.enter_context(ready)
        return self._bench

    def close(self) -> None:
        """Give up what is open."""
        self._bench = self._testbed = None
        self._stack.close()


def _refresh(run: Run) -> None:
    """What interrupted the run may have come between a trial's commit and its row among the trials."""
    with suppress(StoreError):  # a full disk was reported already
        run.refresh_trials()


def _record(trial: PlannedTrial, run: Run, attempt: int, measured: Measurement) -> dict[str, Any]:
    """What trial.json holds, but for the verdict."""
    return {
        "schema": VERSION,
        **asdict(identity(run.id, trial, attempt)),
        "job": trial.job,
        "host": CONTROLLER,
        "seed": trial.seed,
        "needs": trial.needs,
        "spec": trial.spec.model_dump(mode="json", by_alias=True),
        "settings": measured.settings,
        "clock": measured.ledger.as_json(),
        "clock_steps": [asdict(step) for step in measured.ledger.steps()],
        "sampling": {host: asdict(kept) for host, kept in measured.sampling().items()},
        "start_ns": measured.start_ns,
    }


def _when(started_ns: int, clock: RunClock) -> dict[str, Any]:
    now_ns = clock.now_ns()
    return {
        "host_ns": started_ns - clock.offset_ns,
        "controller_ns": started_ns,
        "offset_bound_ns": 0,
        "started_utc": _utc(started_ns),
        "ended_utc": _utc(now_ns),
    }


def _utc(run_ns: int) -> str:
    return datetime.fromtimestamp(run_ns / 1e9, UTC).isoformat(timespec="milliseconds")


def _note_session(run: Run, bench: Bench, clock: RunClock) -> None:
    """Add to the manifest who measures from now on, and where: a resumed run has several sessions."""
    session = {
        "started_utc": _utc(clock.now_ns()),
        "clock": asdict(clock),
        "code": facts.of_code(ROOT),
        "controller": facts.of_controller(),
        "hosts": facts.of_hosts(bench),
        "clocks": {host: asdict(reading) for host, reading in bench.read_clocks("before").items()},
    }
    run.write_manifest({**run.manifest, "sessions": [*run.manifest["sessions"], session]})


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
    return [] if was == now else [f"{where}: was {_short(was)}, is {_short(now)}"]


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


@contextmanager
def _temporary_files(run_id: str, notes: Journal, facility: Facility) -> Iterator[None]:
    """Keep all temporary files of this process and its children where `clean` finds them."""
    folder, before = Path(tempfile.gettempdir()) / f"roundabout-{run_id}", tempfile.tempdir
    names = ("TMPDIR", "ANSIBLE_LOCAL_TEMP")
    outer = {name: os.environ.pop(name, None) for name in names}
    with notes.owing({"kind": "folder", "path": str(folder)}, facility.undo):
        folder.mkdir(mode=0o700)
        tempfile.tempdir = str(folder)
        os.environ.update(dict.fromkeys(names, str(folder)))
        try:
            yield
        finally:
            tempfile.tempdir = before
            for name, value in outer.items():
                del os.environ[name]
                if value is not None:
                    os.environ[name] = value


@contextmanager
def _undisturbed() -> Iterator[Callable[[], None]]:
    """Once the function was called, Ctrl-C and SIGTERM wait for this context to end: nothing cuts an undo short."""
    handlers: dict[int, Any] = {}

    def begin() -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            handlers[number] = signal.signal(number, lambda *_: None)

    try:
        yield begin
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
