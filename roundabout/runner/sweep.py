# SPDX-License-Identifier: Apache-2.0
"""Runs whose trials are executed by the nodes of a Slurm cluster.

The submitting process locks the run and lists committed trials; it never opens a testbed. A first job makes the plan,
because trials' keys depend on the machines that execute them. Then each trial is a job, which opens its own testbed and
commits the trial by its key. Nodes share only the run's folder.
"""

import os
import re
import shutil
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from roundabout.core.errors import RoundaboutError, UsageError
from roundabout.plan import Plan, PlannedTrial
from roundabout.runner.hosts.clocks import RunClock
from roundabout.runner.machine.undo_journal import raise_together
from roundabout.runner.observer import Observer
from roundabout.runner.run import INTERRUPTED, make_run_plan
from roundabout.runner.run_store import ChangedError, NewRun, update_index
from roundabout.runner.slurm import LARGEST_ARRAY, Job, Slurm, SlurmError
from roundabout.runner.testbed import TestbedProvider
from roundabout.spec.experiment import Experiment
from roundabout.store import Run, new_run_id
from roundabout.store.trial_states import state_of_record

LOOK_S = 2.0  # seconds between queries, because Slurm's controller serves many users
END_TIMEOUT_S = 120.0  # time limit of cancelled jobs for their cleanup; a node may hang in COMPLETING forever
SHOWN = 5
ERROR = re.compile(
    r"^(?:slurmstepd: )?error: (.*(?:\n  .*)*)", re.MULTILINE
)  # an error and its hint in a job's log, as `cli` prints them


class SweepError(RoundaboutError):
    """Error for jobs that ended without committing their trials."""


@dataclass(frozen=True)
class Sweep:
    """A runner of experiments as jobs of `slurm`, on testbeds of its nodes."""

    provider: TestbedProvider
    observer: Observer
    slurm: Slurm

    def start(self, experiment: Experiment, which: str | None, runs: Path, length: str | None = None) -> Run:
        """Run a whole experiment into a new folder below `runs`. Nodes must see `runs` under the same path.

        If the run ends with a RoundaboutError, committed trials stay and all jobs are cancelled.
        """
        self._check()
        path = Path(os.path.realpath(runs)) / experiment.name / new_run_id()
        document = experiment.model_dump(mode="json", by_alias=True)
        kind = {"kind": self.provider.where["testbed"]}
        unplanned = {"run": path.name, "experiment": document, "testbed": kind, "artefacts": {}, "plan": []}
        where = dict(self.provider.where)
        run = NewRun(path, RunClock.start(), experiment, where, which, length).open_run(unplanned)
        try:
            return self.resume(run, experiment)
        finally:
            if not Run(run.path).manifest["plan"]:
                run.delete()

    def resume(self, run: Run, experiment: Experiment) -> Run:
        """Execute the trials of `run` that are not committed, like `Runner.resume`."""
        self._check()
        job = Job(run.path, alone=self.provider.takes_machine)
        if there := self.slurm.queue(job):
            raise SweepError(
                f"{run.path} is going on: {_read_logs(there)} on Slurm", f"wait, or: scancel --name={job.name}"
            )
        with run.hold(), self._cancel_on_error(job):
            if not run.manifest["plan"]:
                run = self._plan_on_node(job, run)
            plan = self._plan(run, experiment)
            self.observer.run_started(run, plan, len(run.committed()))
            self._submit_until_done(job, run, plan)
            if not self.provider.computes:
                self._measure_references(job, run, plan)
            shutil.rmtree(job.logs, ignore_errors=True)
        return run

    def _check(self) -> None:
        if self.provider.where["testbed"] == "rack":
            raise UsageError("found --executor for a rack, expected a testbed that each node has for itself")
        self.slurm.check()

    @contextmanager
    def _cancel_on_error(self, job: Job) -> Iterator[None]:
        """Cancel all jobs if an error ends the run; each job undoes what it made.

        If jobs may be left, the error says so, in addition to the error that ended the run.
        """
        try:
            yield
        except RoundaboutError as error:
            raise_together([error, *self._cancel(job)])
        except (KeyboardInterrupt, SystemExit) as error:
            for left in self._cancel(job):
                left.exit_code = INTERRUPTED if isinstance(error, KeyboardInterrupt) else int(error.code or 0)
                raise left from error
            raise
        except BaseException:
            self._cancel(job)
            raise

    def _cancel(self, job: Job) -> list[SweepError]:
        """Cancel the jobs that are left, and wait for their end. Return the error to raise if jobs may be left."""
        deadline, cancelled = time.monotonic() + END_TIMEOUT_S, False
        while True:
            there, said = Counter({"unknown": 1}), ""
            try:
                there = self.slurm.queue(job)
                if there and not cancelled:
                    self.slurm.cancel(job)
                    cancelled = True
            except SlurmError as error:
                said = error.message
            if not there:
                return []
            said = said or _read_logs(there)
            if time.monotonic() > deadline:
                message = (
                    f"jobs of the run may be left on Slurm, after {END_TIMEOUT_S:g} s of waiting for their end: {said}"
                )
                return [SweepError(message, f"cancel them: scancel --name={job.name}")]
            self.observer.step(f"cancelling jobs on Slurm: {said}")
            time.sleep(LOOK_S)

    def _plan_on_node(self, job: Job, run: Run) -> Run:
        """Return the run with a plan, which a node makes. Raises SweepError."""
        _empty_logs(job)
        self.slurm.submit(job, [])
        for said in self._poll_queue(job):
            self.observer.step(f"planning on Slurm: {said}")
        run = Run(run.path)  # its manifest was written elsewhere
        if not run.manifest["plan"]:
            raise _explain_failure(job, "no plan was made")
        return run

    def _plan(self, run: Run, experiment: Experiment) -> Plan:
        """Return the plan that nodes made, with the fields that a manifest leaves out. Raises ChangedError."""
        reported = run.manifest
        plan = make_run_plan(self.provider, experiment, reported["testbed"]["identity"], reported["artefacts"])
        if {trial.key for trial in plan.trials} != {trial["key"] for trial in reported["plan"]}:
            raise ChangedError(
                f"{run.path}: its nodes plan other trials than this machine", "install the same roundabout on all"
            )
        return plan

    def _submit_until_done(self, job: Job, run: Run, plan: Plan) -> None:
        """Submit missing trials until all are committed. Raises SweepError if a repeated submission commits none."""
        left = _missing_trials(run, plan)
        while left:
            _empty_logs(job)
            self._submit(job, left)
            self._follow_jobs(job, run, left)
            before, left = left, _missing_trials(run, plan)
            if len(left) == len(before):
                raise _explain_failure(job, f"{len(left)} of {len(plan.trials)} trials were not done")

    def _submit(self, job: Job, trials: Sequence[PlannedTrial]) -> None:
        """Submit all trials, and those that need others when these have ended."""
        after: list[str] = []
        for wave in group_in_waves(trials):
            keys = [trial.key for trial in wave]
            arrays = (keys[begin : begin + LARGEST_ARRAY] for begin in range(0, len(keys), LARGEST_ARRAY))
            after = [self.slurm.submit(job, array, after) for array in arrays]

    def _follow_jobs(self, job: Job, run: Run, trials: Sequence[PlannedTrial]) -> None:
        """Report and index committed trials until no job is left."""
        awaited = {trial.key: trial for trial in trials}
        for said in self._poll_queue(job):
            if fresh := run.committed() & awaited.keys():
                done = [record for record in run.trials() if record["trial"] in fresh]
                for record in done:
                    self.observer.trial_started(awaited[record["trial"]], record["attempt"])
                    disturbed = state_of_record(record) == "disturbed"
                    reasons = [record["reason"]] * (not record["valid"])
                    self.observer.trial_ended(awaited[record["trial"]], reasons, False, disturbed)
                update_index(run, [awaited.pop(record["trial"]) for record in done])
            self.observer.step(f"on Slurm: {said}")

    def _poll_queue(self, job: Job) -> Iterator[str]:
        """Yield the state of the run's jobs until none is left, and once more. A missing answer is not an end."""
        there: Mapping[str, int] = {"submitted": 1}
        while there:
            try:
                there = self.slurm.queue(job)
                yield _read_logs(there)
            except SlurmError as error:
                yield error.message
            if there:
                time.sleep(LOOK_S)

    def _measure_references(self, job: Job, run: Run, plan: Plan) -> None:
        """Measure the plan's first valid trial once on each other machine that took part, to compare the machines."""
        valid = {record["trial"]: record["machine"]["name"] for record in run.trials() if record["valid"]}
        trial = next((each for each in plan.trials if each.key in valid and not each.depends_on), None)
        if trial is None:
            return
        known = {valid[trial.key], *(record["machine"]["name"] for record in run.references())}
        others = sorted({*valid.values()} - known)
        for machine in others:
            self.slurm.submit(Job(job.run, job.alone, reference=True), [trial.key], node=machine)
        for said in self._poll_queue(job) if others else ():
            self.observer.step(f"reference trials on Slurm: {said}")


def group_in_waves(trials: Sequence[PlannedTrial]) -> list[list[PlannedTrial]]:
    """Group trials into waves. A trial's inputs come only from earlier waves, and each wave keeps the plan's order."""
    depth: dict[str, int] = {}
    found = defaultdict[int, list[PlannedTrial]](list)
    for trial in trials:
        depth[trial.key] = 1 + max((depth.get(key, 0) for key in trial.depends_on), default=0)
        found[depth[trial.key]].append(trial)
    return [found[each] for each in sorted(found)]


def _missing_trials(run: Run, plan: Plan) -> list[PlannedTrial]:
    done = run.committed()
    return [trial for trial in plan.trials if trial.key not in done]


def _empty_logs(job: Job) -> None:
    shutil.rmtree(job.logs, ignore_errors=True)
    job.logs.mkdir()


def _read_logs(there: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {state.lower()}" for state, count in sorted(there.items())) or "none left"


def _explain_failure(job: Job, what: str) -> SweepError:
    """Return the error of jobs that failed, with their messages by node.

    Jobs without a message cannot see the run's folder.
    """
    said: dict[str, set[str]] = defaultdict(set)
    for log in sorted(job.logs.glob("*.log")):
        for why in ERROR.findall(log.read_text(errors="replace")):
            said[why.replace("\n  ", "; ")].add(log.name.partition(".")[0])
    reported = [f"{', '.join(sorted(nodes))}: {why}" for why, nodes in said.items()]
    if not reported:
        return SweepError(
            f"{what}: jobs of Slurm ended without output",
            f"nodes must see {job.run} under this name: put --runs on a file system that they share",
        )
    more = [f"... and {len(reported) - SHOWN} more, in {job.logs}"] if len(reported) > SHOWN else []
    return SweepError(f"{what}: jobs of Slurm failed", "\n".join([*reported[:SHOWN], *more]))
