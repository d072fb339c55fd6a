# SPDX-License-Identifier: Apache-2.0
"""The progress of a run, for displays on its own terminal and in other processes."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from roundabout.plan import Plan, PlannedTrial
from roundabout.runner.observer import CrossTrafficUse, LinkUse
from roundabout.store import Run


@dataclass
class JobProgress:
    """A job's progress in a trial. Times are those of its first worker's iterations, or 0 before the first ends."""

    iterations: int
    done: int = 0
    last_ms: float = 0
    mean_ms: float = 0

    def add(self, ms: float) -> None:
        """Count an iteration that ended after `ms`."""
        self.mean_ms = (self.mean_ms * self.done + ms) / (self.done + 1)
        self.done, self.last_ms = self.done + 1, ms


@dataclass(frozen=True)
class TrialProgress:
    """The trial and the attempt that currently run."""

    key: str
    variant: str
    levels: dict[str, str | int | float]
    repetition: int
    job: str | None
    attempt: int


@dataclass(frozen=True)
class EndedAttempt:
    """An ended attempt. `reasons` make it disturbed or invalid.

    `again` is True if it will be repeated, and `disturbed` if the trial keeps a disturbed attempt.
    """

    label: str
    jobs: dict[str, JobProgress]
    reasons: list[str]
    again: bool
    disturbed: bool = False


@dataclass
class Progress:
    """The progress of a run, with rates, times and bytes in the papers' units.

    The values of a trial stay until the next trial begins.
    """

    experiment: str = ""
    run: str = ""
    path: str = ""
    what: str = "starting"
    phase: str = ""  # of the current trial
    trials: int = 0
    done: int = 0
    attempts: int = 0  # number of ended attempts
    time_left_s: float = 0
    trial: TrialProgress | None = None
    jobs: dict[str, JobProgress] = field(default_factory=dict)
    links: dict[str, LinkUse] = field(default_factory=dict)
    cross_traffic: dict[str, CrossTrafficUse] = field(default_factory=dict)
    ended: EndedAttempt | None = None


class View(Protocol):
    """A display of a run's progress."""

    def show(self, progress: Progress) -> None:
        """Show the progress. The caller calls it after every change; a view may skip calls."""

    def notice(self, text: str) -> None:
        """Show a notice that users need to read the run's results."""

    def leave(self, pending: Sequence[str]) -> None:
        """Note that the run ends at once, without undoing entries of these kinds."""


class Follower:
    """An Observer that accumulates a run's progress and updates views."""

    def __init__(self, *views: View) -> None:
        self.progress = Progress()
        self._views = views
        self._left = TimeLeft()

    def run_started(self, run: Run, plan: Plan, done: int) -> None:
        """Note the start of the run."""
        committed = run.committed()
        left_s = sum(trial.expected_s for trial in plan.trials if trial.key not in committed)
        self._left = TimeLeft(left_s, len(plan.trials))
        path = str(run.path.resolve())
        self.progress = Progress(run.experiment, run.id, path, self.progress.what, trials=len(plan.trials), done=done)
        self._show()

    def step(self, what: str) -> None:
        """Note the start of a long step, which also ends a trial that it interrupts."""
        self.progress.what, self.progress.trial = what, None
        self._show()

    def notice(self, text: str) -> None:
        """Note a notice that users need to read the run's results."""
        for view in self._views:
            view.notice(text)

    def trial_started(self, trial: PlannedTrial, attempt: int) -> None:
        """Note the start of an attempt at a trial."""
        now = self.progress
        self._left.begin(trial.expected_s)
        again = f", attempt {attempt}" if attempt > 1 else ""
        now.what = f"{now.done + 1} of {now.trials}: {trial_label(trial)}{again}"
        now.trial = TrialProgress(trial.key, trial.variant, trial.levels, trial.repetition, trial.job, attempt)
        now.jobs = {name: JobProgress(trial.spec.iterations_of(name)) for name in trial.spec.jobs}
        now.links, now.cross_traffic = {}, {}
        self._show()

    def phase(self, what: str) -> None:
        """Note the next phase of the attempt."""
        self.progress.phase = what
        self._show()

    def iteration(self, job: str, _number: int, ms: float) -> None:
        """Note a finished iteration of a job."""
        self.progress.jobs[job].add(ms)
        self._show()

    def traffic(self, links: Mapping[str, LinkUse], crossing: Mapping[str, CrossTrafficUse]) -> None:
        """Note the rates of links and cross traffic."""
        self.progress.links, self.progress.cross_traffic = dict(links), dict(crossing)
        self._show()

    def trial_ended(self, trial: PlannedTrial, reasons: list[str], again: bool, disturbed: bool = False) -> None:
        """Note that the attempt is stored."""
        now = self.progress
        self._left.end(again)
        now.done += not again
        now.attempts += 1
        now.ended = EndedAttempt(trial_label(trial), now.jobs, reasons, again, disturbed)
        now.trial, now.phase = None, ""
        self._show()

    def leaves(self, pending: Sequence[str]) -> None:
        """Note that the run ends at once."""
        for view in self._views:
            view.leave(pending)

    def _show(self) -> None:
        self.progress.time_left_s = self._left.seconds
        for view in self._views:
            view.show(self.progress)


class TimeLeft:
    """An estimate of the time until a run ends, from its plan and the share of repeated attempts so far."""

    def __init__(self, left_s: float = 0, trials: int = 0) -> None:
        """Start with `trials` remaining trials that take `left_s` together."""
        self._left_s, self._trials = left_s, trials
        self._settled_s = self._attempted_s = 0.0
        self._expected_s = self._began_s = 0.0
        self._running = False

    def begin(self, expected_s: float) -> None:
        """Note the start of an attempt at a trial."""
        self._expected_s, self._began_s, self._running = expected_s, time.monotonic(), True

    def end(self, again: bool) -> None:
        """Note the end of the attempt. `again` is True if it will be repeated."""
        self._running = False
        self._attempted_s += self._expected_s
        if not again:
            self._left_s -= self._expected_s
            self._settled_s += self._expected_s

    @property
    def seconds(self) -> float:
        """Return the expected remaining seconds of the run."""
        running_s = time.monotonic() - self._began_s if self._running else 0
        # As if one trial more had needed no repeat: the first that does shall not double it.
        one_s = (self._left_s + self._settled_s) / max(self._trials, 1)
        repeats = (self._attempted_s + one_s) / (self._settled_s + one_s) if one_s else 1.0
        return max(self._left_s * repeats - running_s, 0)


def trial_label(trial: PlannedTrial) -> str:
    """Return a trial's displayed name: its variant, other levels, job and repetition."""
    others = [f"{factor} {level}" for factor, level in trial.levels.items() if factor != "variant"]
    alone = [trial.job] if trial.job else []
    return ", ".join([trial.variant, *others, *alone, f"repetition {trial.repetition}"])
