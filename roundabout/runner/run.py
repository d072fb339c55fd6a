# SPDX-License-Identifier: Apache-2.0
"""Execution of a run, from the machine's lease to the last trial, with cleanup in reverse order."""

import json
import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn, Protocol, Self

from pydantic_core import to_jsonable_python

from roundabout.core.errors import RoundaboutError, UsageError
from roundabout.models.cluster.timeline import Timeline
from roundabout.plan import Plan, PlannedTrial, make_plan, with_simulated_jobs
from roundabout.plan.routes import record_routes
from roundabout.runner import code_facts, machine_facts
from roundabout.runner.disturbance.attempt_choice import MAX_REPEATS, InheritedDisturbance, verdict_fields
from roundabout.runner.hosts.clocks import CONTROLLER, RunClock
from roundabout.runner.machine import machine_lease, temporary, undo_journal
from roundabout.runner.machine.state import STATE
from roundabout.runner.machine.undo_journal import JOURNALS, Journal, Undo
from roundabout.runner.observer import Observer
from roundabout.runner.run_store import ExistingRun, ExtendedRun, NewRun, RunStore, update_index
from roundabout.runner.testbed import RunContext, Testbed, TestbedProvider
from roundabout.spec.cluster import Cluster
from roundabout.spec.experiment import Experiment
from roundabout.spec.job import InputValue
from roundabout.spec.topology import Topology
from roundabout.spec.trial_spec import TrialSpec
from roundabout.store import Attempt, Identity, Run, StoreError, new_run_id
from roundabout.store.look_schedule import LookSchedule
from roundabout.store.schemas import VERSION
from roundabout.store.trial_states import state_of_record

LONGEST_S = 3600.0  # limit of the expected duration of a cluster's trial that is not computed
TIMELINE = "timeline.json"  # file of a cluster's simulated timeline (docs/how-to/cluster-runs.md)
INTERRUPTED = 128 + signal.SIGINT  # exit status of an interrupted run

PreflightCheck = Callable[[Testbed], None]  # checks the testbed before the first trial; its error ends the run


class InputResolver(Protocol):
    """A resolver of a trial's inputs from earlier trials of the run."""

    def __call__(self, run: Run, spec: TrialSpec, needs: Sequence[str], /) -> Mapping[str, Mapping[str, InputValue]]:
        """Return the value of each input (job -> field) of `spec`, from the trials with the keys `needs`.

        Raises RoundaboutError if one cannot be had; then the trial is invalid, and the run goes on.
        """
        ...


class TestbedPool:
    """The open testbed of a run. It is replaced if a trial needs another topology, or after it was lost."""

    def __init__(self, provider: TestbedProvider, context: RunContext) -> None:
        self._provider, self._context = provider, context
        self._stack = ExitStack()
        self._topology: Topology | None = None
        self._testbed: Testbed | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    def of(self, topology: Topology) -> Testbed:
        """Return an open testbed with `topology`. Close an open testbed with another topology first."""
        if self._testbed is None or self._topology != topology:
            self.close()
            self._context.observer.step(f"raising testbed {topology.name}")
            opened = self._provider.open_testbed(topology, self._context)
            self._testbed, self._topology = self._stack.enter_context(opened), topology
        return self._testbed

    def close(self) -> None:
        """Close the open testbed, if any."""
        self._testbed = None
        self._stack.close()


def make_run_plan(
    provider: TestbedProvider, experiment: Experiment, testbed_identity: Mapping[str, Any], artefacts: Mapping[str, str]
) -> Plan:
    """Return the plan of an experiment on the provider's testbeds.

    On a testbed that computes results, expected times are its provider's, and trials without random parts have one
    repetition. On other testbeds, raises UsageError if a cluster's trial is expected to take more than LONGEST_S.
    """
    if not provider.computes:
        return _refuse_long_trials(make_plan(experiment, testbed_identity, artefacts, provider.dilation))
    if provider.repeats_nothing(experiment):
        experiment = experiment.model_copy(update={"repetitions": 1})
    plan = make_plan(experiment, testbed_identity, artefacts)
    kept: list[PlannedTrial] = []
    for trial in reversed(plan.trials):  # what a trial needs comes before it
        is_random = provider.has_jitter or trial.spec.has_random_parts
        if trial.repetition == 1 or is_random or any(trial.key in later.depends_on for later in kept):
            kept.append(trial)
    at_once = max(1, min(provider.processors, len(kept)))
    trials = (replace(trial, expected_s=provider.computing_s(trial) / at_once) for trial in reversed(kept))
    return replace(plan, trials=tuple(trials))


def _refuse_long_trials(plan: Plan) -> Plan:
    """Return `plan`. Reject cluster trials expected to exceed LONGEST_S. Raises UsageError."""
    for trial in plan.trials:
        if trial.spec.cluster and trial.expected_s > LONGEST_S:
            hours = f"{trial.expected_s / 3600:.1f} hours here at least, expected {LONGEST_S / 3600:g} at most"
            raise UsageError(
                f"{plan.experiment.name}, {trial.variant}: found a trace that takes {hours}",
                "compute it with --testbed fluid; or run a slice of it, as cluster-slices does: "
                "--set 'cluster.slice={from_s: 600, lasts_s: 60}'",
            )
    return plan


@dataclass(frozen=True)
class Runner:
    """A runner of experiments on the testbeds of one provider.

    `undo` must handle journal entries of every kind of testbed, because other runs may have crashed.
    """

    provider: TestbedProvider
    observer: Observer
    undo: Undo
    state: Path = STATE
    journals: Path = JOURNALS
    resolve_inputs: InputResolver | None = None

    def start(  # noqa: PLR0913 - as on the command line
        self,
        experiment: Experiment,
        which: str | None,
        runs: Path,
        length: str | None = None,
        preflight: PreflightCheck | None = None,
        *,
        looks: LookSchedule | None = None,
    ) -> Run:
        """Run a whole experiment into a new folder under `runs`.

        `which` and `length` are the name or file and the length with which the experiment was loaded; the manifest
        records them, and `looks` of a run that may be extended. If the run ends with a RoundaboutError, committed
        trials stay and everything else is undone.
        """
        where = dict(self.provider.where)
        store = NewRun(runs / experiment.name / new_run_id(), RunClock.start(), experiment, where, which, length, looks)
        return self._execute(experiment, store, preflight)

    def resume(self, run: Run, experiment: Experiment) -> Run:
        """Execute the trials of `run` that are not committed. Raises ChangedError if the plan has changed."""
        return self._execute(experiment, ExistingRun(run))

    def extend(self, run: Run, experiment: Experiment) -> Run:
        """Execute the further trials of `experiment`, which has more repetitions. Raises ChangedError as `resume`."""
        return self._execute(experiment, ExtendedRun(run))

    def plan(self, run: Run, experiment: Experiment) -> None:
        """Write the trial plan for this machine into the manifest of `run`.

        The caller must already hold the run's lock.
        """
        store = ExistingRun(run)
        with self._open_session(experiment, store) as session:
            _note_session(run, session.testbed, store.clock)

    def trial(self, run: Run, experiment: Experiment, key: str, *, reference: bool = False) -> None:
        """Execute the trial `key` of `run` unless it is committed. A `reference` is always executed.

        The caller must already hold the run's lock. Raises RoundaboutError, without a commit, if the testbed fails or
        if the trial's inputs are not committed.
        """
        if key in run.committed() and not reference:
            return
        with self._open_session(experiment, ExistingRun(run, is_reference=reference)) as session:
            trial = next((each for each in session.plan.trials if each.key == key), None)
            if trial is None:
                raise UsageError(f"found no trial {key} in {run.path}, expected one of its plan")
            if missing := sorted({*trial.depends_on} - run.committed()):
                raise StoreError(f"{run.path}: trial {key} needs trial {missing[0]}, which is not done")
            self._run_until_valid(trial, session)

    def _execute(self, experiment: Experiment, store: RunStore, preflight: PreflightCheck | None = None) -> Run:
        with self._open_session(experiment, store) as session, session.run.hold(), ExitStack() as stack:
            run, plan = session.run, session.plan
            stack.callback(_repair_index, run)
            stack.callback(session.ending.begin)  # before the refreshing, too
            if preflight:
                preflight(session.testbed)
            done = run.committed()
            self.observer.run_started(run, plan, len(done))
            left = [trial for trial in plan.trials if trial.key not in done]
            if left:
                _note_session(run, session.testbeds.of(left[0].spec.topology), store.clock)
            stack.enter_context(self.provider.compute_ahead([trial for trial in left if not trial.spec.has_inputs]))
            for trial in left:
                self._run_until_valid(trial, session)
                update_index(run, [trial])
        return run

    @contextmanager
    def _open_session(self, experiment: Experiment, store: RunStore) -> "Iterator[_RunSession]":
        """Open a testbed, plan the trials on it and open the run; undo everything at the end."""
        if self.provider.takes_machine and threading.current_thread() is not threading.main_thread():
            raise UsageError(
                f"found a thread for a run on testbed {self.provider.where['testbed']}, expected the main thread: "
                "only that thread gets the signals that undo everything",
                "call it from the main thread; computed runs may have threads of their own",
            )
        with ExitStack() as stack:
            self.provider.check_experiment(experiment)
            ending = stack.enter_context(_SignalGuard(self.observer))
            undo_journal = None
            if self.provider.takes_machine:
                undo_journal = stack.enter_context(self.hold_machine(experiment.name, store.path))
            ending.undo_journal = undo_journal
            transports = tuple(experiment.transports.values())
            artefacts = self.provider.artifacts(transports)
            name = store.path.name.lower()
            context = RunContext(name, transports, experiment.probes, store.clock, self.observer, undo_journal)
            testbeds = stack.enter_context(TestbedPool(self.provider, context))
            stack.callback(ending.begin)
            testbed = testbeds.of(experiment.cells[0].spec.topology)
            plan = make_run_plan(self.provider, experiment, testbed.identity(), artefacts)
            warnings = self.provider.find_warnings(experiment)
            identity = _identity(store.path.name, plan, testbed, warnings, has_jitter=self.provider.has_jitter)
            run = store.open_run(identity)
            yield _RunSession(run, store, plan, testbeds, testbed, ending)

    @contextmanager
    def hold_machine(self, what: str, path: Path) -> Iterator[Journal]:
        """Wait for the machine's lease, clean up after crashed runs, and yield the journal of the new run of `what`."""
        owner = f"{what} {path.name}"
        with machine_lease.hold("machine", owner, self.state, wait_s=machine_lease.QUEUE_S, report=self.observer.step):
            self._clean_up_dead_runs()
            opened = undo_journal.open_journal(path.name, path.resolve(), self.journals)
            with opened as kept, temporary.temporary_files(path.name, kept, self.state):
                yield kept

    def _clean_up_dead_runs(self) -> None:
        """Clean up after crashed runs, because their leftovers would distort measurements.

        If cleanup fails on another testbed, only warn.
        """
        here = self.provider.where["testbed"]
        refused = []
        for error in undo_journal.replay(self.journals, self.undo, self.observer.step):
            if error.entries and here not in {entry["where"]["testbed"] for entry in error.entries}:
                self.observer.step(f"{error.message}; {error.hint}")
            else:
                refused.append(error)
        undo_journal.raise_together(refused)

    def _resolve(self, trial: PlannedTrial, run: Run) -> tuple[PlannedTrial, dict[str, Any]]:
        """Return the trial with the inputs that it takes from earlier trials, and their record. Raises StoreError."""
        if not trial.spec.has_inputs:
            return trial, {}
        if self.resolve_inputs is None:
            raise StoreError(f"{run.path}: trial {trial.key} has unresolved inputs. No input resolver is configured.")
        values = self.resolve_inputs(run, trial.spec, trial.depends_on)
        reported = {
            name: {
                field: {"value": to_jsonable_python(each.value, by_alias=True), "trials": each.trials}
                for field, each in fields.items()
            }
            for name, fields in values.items()
        }
        return replace(trial, spec=trial.spec.with_inputs(values)), {"given": reported}

    def _run_until_valid(self, trial: PlannedTrial, session: "_RunSession") -> None:
        """Attempt a trial until it is valid or the number of repeats is reached. Every attempt is stored.

        A trial that takes inputs from a disturbed trial is disturbed itself, which no repeat changes.
        """
        run, testbeds, clock = session.run, session.testbeds, session.store.clock
        try:
            trial, given = self._resolve(trial, run)
            inherited = InheritedDisturbance.of_inputs(run, given.get("given", {}))
            trial, timeline = _simulate_cluster(trial, self.observer)
        except RoundaboutError as error:  # a trial that it needs is not valid, or lacks the input
            self.observer.trial_started(trial, 1)
            _commit_unmeasured(trial, run, clock, error.message)
            self.observer.trial_ended(trial, [error.message], False)
            return
        again = True
        while again:
            testbed = testbeds.of(trial.spec.topology)
            attempt = run.begin_attempt(trial.key)
            self.observer.trial_started(trial, attempt.number)
            started_ns = clock.now_ns()
            identity = row_identity(run.id, trial, attempt.number)
            outcome = testbed.execute(trial, attempt, identity)
            for name, table in outcome.tables.items():
                attempt.write(name, table)
            if timeline and trial.spec.cluster:
                _store_timeline(timeline, trial.spec.cluster, attempt, outcome.record.get("start_ns", started_ns))
            may_differ = not self.provider.computes
            again = bool(outcome.invalid_reasons) and may_differ and run.rejected_count(trial.key) < MAX_REPEATS
            record = {
                **_trial_record(trial, identity),
                **given,
                **_when(started_ns, clock),
                **outcome.record,
                **verdict_fields(outcome, inherited),
            }
            if again:
                attempt.reject(record)
            else:
                record = session.store.commit(attempt, record)
            reasons = [*outcome.invalid_reasons, *inherited.reasons]
            if record["attempt"] != attempt.number:
                reasons = [f"attempt {record['attempt']} was the least disturbed: {record['reason']}"]
            disturbed = not again and state_of_record(record) == "disturbed"
            self.observer.trial_ended(trial, reasons, again, disturbed)
            if outcome.lost:
                testbeds.close()


def _identity(
    run_id: str, plan: Plan, testbed: Testbed, warnings: Sequence[str], *, has_jitter: bool
) -> dict[str, Any]:
    """Return the part of a manifest that a resumed run must not change."""
    real = testbed.fidelity.nature == "real"
    about = {"kind": testbed.kind, "emulated": not real, "scale": testbed.scale, "dilation": testbed.dilation}
    drawn = {"has_jitter": True} if has_jitter else {}
    fields = ("key", "variant", "levels", "repetition", "job", "expected_s")
    return {
        "run": run_id,
        "experiment": plan.experiment.model_dump(mode="json", by_alias=True),
        "testbed": {**about, **drawn, "identity": testbed.identity(), "fidelity": asdict(testbed.fidelity)},
        "artefacts": dict(plan.artefacts),
        **({"warnings": list(warnings)} if warnings else {}),
        "plan": [{name: getattr(trial, name) for name in fields} for trial in plan.trials],
    }


def _simulate_cluster(trial: PlannedTrial, observer: Observer) -> tuple[PlannedTrial, Timeline | None]:
    """Return the trial with the jobs of its cluster's trace and their timeline, if it has a trace.

    Raises RoundaboutError.
    """
    if not trial.spec.cluster:
        return trial, None
    observer.step(f"working out who runs where: {trial.spec.cluster.describe}")
    spec, timeline = with_simulated_jobs(trial.spec, trial.seed)
    return replace(trial, spec=spec), timeline


def _store_timeline(timeline: Timeline, cluster: Cluster, attempt: Attempt, start_ns: int) -> None:
    """Store the timeline as a table of the trial, and its decisions as events."""
    reported = timeline.as_json(cluster.scheduler.name, cassini=cluster.cassini is not None)
    attempt.write_json(TIMELINE, reported)
    for decision in reported["decisions"]:
        attempt.log("decision", start_ns + round(decision["at_s"] * 1e9), **decision)


def _commit_unmeasured(trial: PlannedTrial, run: Run, clock: RunClock, reason: str) -> None:
    attempt = run.begin_attempt(trial.key)
    record = _trial_record(trial, row_identity(run.id, trial, attempt.number))
    attempt.commit({**record, **_when(clock.now_ns(), clock), "valid": False, "reason": reason})


def _repair_index(run: Run) -> None:
    """Add rows that are missing because a run was interrupted between a trial's commit and its row."""
    with suppress(StoreError):  # a full disk was reported already
        run.refresh_trials()


def row_identity(run_id: str, trial: PlannedTrial, attempt: int) -> Identity:
    """Return the columns that identify the attempt in every row of its tables."""
    return Identity(run_id, trial.key, trial.variant, json.dumps(trial.levels), trial.repetition, attempt)


def _trial_record(trial: PlannedTrial, identity: Identity) -> dict[str, Any]:
    """Return the entries of trial.json that do not depend on the attempt's outcome."""
    return {
        "schema": VERSION,
        **asdict(identity),
        "job": trial.job,
        "host": CONTROLLER,
        "machine": machine_facts.machine_facts(),
        "seed": trial.seed,
        "depends_on": trial.depends_on,
        "spec": trial.spec.model_dump(mode="json", by_alias=True),
        **record_routes(trial.spec),
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


@dataclass(frozen=True)
class _RunSession:
    """The objects that a run works with while its testbeds exist. `testbed` is that of the experiment's first cell."""

    run: Run
    store: RunStore
    plan: Plan
    testbeds: TestbedPool
    testbed: Testbed
    ending: "_SignalGuard"


def _note_session(run: Run, testbed: Testbed, clock: RunClock) -> None:
    """Add to the manifest which process executes trials, and where. A resumed run has several sessions."""
    session = {
        "started_utc": _utc(clock.now_ns()),
        "clock": asdict(clock),
        "code": code_facts.code_facts(),
        "controller": machine_facts.controller_facts(),
        **testbed.facts(),
    }
    run.write_manifest({**run.manifest, "sessions": [*run.recorded("sessions"), session]})


class _SignalGuard:
    """A guard that cleans up on SIGINT, SIGTERM and SIGHUP. A second Ctrl-C skips the cleanup.

    After a second Ctrl-C the entries stay in the journal, because hosts may not answer and waiting may be useless.
    """

    def __init__(self, observer: Observer) -> None:
        self.undo_journal: Journal | None = None
        self._observer = observer
        self._begun = False
        self._handlers: dict[int, Any] = {}

    def __enter__(self) -> Self:
        self._handle(signal.SIGINT, self._interrupt)
        return self

    def __exit__(self, *_exception: object) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    def begin(self) -> None:
        """Begin the cleanup, during which other signals wait."""
        self._begun = True
        for number in {signal.SIGTERM, signal.SIGHUP} - self._handlers.keys():
            self._handle(number, lambda *_: None)

    def _handle(self, number: int, handler: Callable[..., None]) -> None:
        if threading.current_thread() is threading.main_thread():  # other threads get no signals
            self._handlers[number] = signal.signal(number, handler)

    def _interrupt(self, *_signal: object) -> None:
        signal.signal(signal.SIGINT, self._leave_at_once)
        if self.undo_journal is None:
            self._observer.step("ending; finished trials stay")
        else:
            self._observer.step(
                "undoing what the run set on hosts; finished trials stay; "
                "Ctrl-C once more leaves the undoing to `roundabout clean`"
            )
        if not self._begun:
            raise KeyboardInterrupt

    def _leave_at_once(self, *_signal: object) -> NoReturn:
        self._observer.leaves(self.undo_journal.entry_kinds if self.undo_journal else [])
        os._exit(INTERRUPTED)  # threads may wait for hosts, and would be waited for
