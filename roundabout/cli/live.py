# SPDX-License-Identifier: Apache-2.0
"""What a run shows while it runs: a few lines that change on a terminal, plain lines elsewhere."""

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO, Any, cast

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from roundabout.cli.plan import duration
from roundabout.plan import Plan, PlannedTrial
from roundabout.runner.observer import Observer
from roundabout.store import Run

REFRESH_S = 0.25  # drawing takes CPU from what is being measured


@dataclass
class JobProgress:
    """One job in the present trial."""

    iterations: int
    done: int = 0
    last_ms: float = 0
    total_ms: float = 0

    def add(self, number: int, ms: float) -> None:
        """An iteration ended."""
        self.done, self.last_ms, self.total_ms = number, ms, self.total_ms + ms

    @property
    def mean_ms(self) -> float:
        """Over the iterations so far."""
        return self.total_ms / max(self.done, 1)


@dataclass
class Progress:
    """Where a run is."""

    trials: int = 0
    done: int = 0
    left_s: float = 0
    settled_s: float = 0
    attempted_s: float = 0
    what: str = "starting"
    trial: PlannedTrial | None = None
    trial_began: float = 0
    jobs: dict[str, JobProgress] = field(default_factory=dict)
    link: str = ""

    def begin(self, plan: Plan, done: int, committed: frozenset[str]) -> None:
        """The run's plan is known."""
        self.trials, self.done = len(plan.trials), done
        self.left_s = sum(trial.expected_s for trial in plan.trials if trial.key not in committed)

    def start(self, trial: PlannedTrial, attempt: int) -> None:
        """A trial begins."""
        self.trial, self.trial_began = trial, time.monotonic()
        self.what = f"{self.done + 1} of {self.trials}: {label(trial)}{f', attempt {attempt}' if attempt > 1 else ''}"
        self.jobs = {name: JobProgress(trial.spec.iterations_of(name)) for name in trial.spec.jobs}
        self.link = ""

    def end(self, again: bool) -> None:
        """The trial ended."""
        if self.trial:
            self.attempted_s += self.trial.expected_s
            if not again:
                self.done += 1
                self.left_s -= self.trial.expected_s
                self.settled_s += self.trial.expected_s
        self.trial = None

    @property
    def time_left_s(self) -> float:
        """By the plan's expectations, with as many repeats as there were until now."""
        running_s = time.monotonic() - self.trial_began if self.trial else 0
        # As if one trial more had needed no repeat: the first that does shall not double it.
        one_s = (self.left_s + self.settled_s) / max(self.trials, 1)
        repeats = (self.attempted_s + one_s) / (self.settled_s + one_s) if one_s else 1.0
        return max(self.left_s * repeats - running_s, 0)


def label(trial: PlannedTrial) -> str:
    """A trial for people: its variant, other levels, job and repetition."""
    others = [f"{factor} {level}" for factor, level in trial.levels.items() if factor != "variant"]
    alone = [trial.job] if trial.job else []
    return ", ".join([trial.variant, *others, *alone, f"repetition {trial.repetition}"])


class TerminalObserver:
    """Redraws a few lines, at most four times a second."""

    def __init__(self, console: Console, live: Live) -> None:
        self._console, self._live = console, live
        self._progress = Progress()
        self._drawn = 0.0

    def run_started(self, run: Run, plan: Plan, done: int) -> None:
        """The run begins."""
        self._console.print(f"run {run.path}")
        self._progress.begin(plan, done, run.committed())

    def step(self, what: str) -> None:
        """Something that takes a while begins."""
        self._progress.what = what
        self._draw(now=True)

    def trial_started(self, trial: PlannedTrial, attempt: int) -> None:
        """An attempt at a trial begins."""
        self._progress.start(trial, attempt)
        self._draw(now=True)

    def iteration(self, job: str, number: int, ms: float) -> None:
        """A job finished an iteration."""
        self._progress.jobs[job].add(number, ms)
        self._draw()

    def link(self, name: str, gbps: float, marks_per_s: float | None) -> None:
        """The bottleneck's use."""
        marks = "" if marks_per_s is None else f", {marks_per_s:.0f} ECN marks a second"
        self._progress.link = f"link {name}: {gbps:5.1f} Gbit/s{marks}"
        self._draw()

    def trial_ended(self, trial: PlannedTrial, reasons: list[str], again: bool) -> None:
        """The attempt is stored."""
        for reason in reasons:
            self._console.print(Text(f"{'again' if again else 'invalid'}: {label(trial)}: {reason}", style="yellow"))
        self._progress.end(again)
        self._draw(now=True)

    def leaves(self, owed: Sequence[str]) -> None:
        """The run ends at once."""
        self._live.stop()
        self._console.print(left(owed), soft_wrap=True, highlight=False)

    def _draw(self, *, now: bool = False) -> None:
        if now or time.monotonic() - self._drawn >= REFRESH_S:
            self._drawn = time.monotonic()
            self._live.update(draw(self._progress), refresh=True)


def draw(progress: Progress) -> RenderableType:
    """The lines that change."""
    overall = Table.grid(padding=(0, 2))
    left = f"about {duration(progress.time_left_s)} left" if progress.trials else ""
    overall.add_row(ProgressBar(total=max(progress.trials, 1), completed=progress.done, width=30), progress.what, left)
    jobs = Table.grid(padding=(0, 2))
    for name, job in progress.jobs.items():
        times = f"last {job.last_ms:6.1f} ms   mean {job.mean_ms:6.1f} ms" if job.done else "starting"
        jobs.add_row(f"  {name}", f"iteration {job.done:3d} of {job.iterations}", times)
    return Group(overall, jobs, Text(f"  {progress.link}" if progress.link else ""))


def left(owed: Sequence[str]) -> str:
    """What a run says that was interrupted once more."""
    return f"interrupted: stays owed: {', '.join(owed)}; undo it: roundabout clean" if owed else "interrupted"


class PlainObserver:
    """One line an event, for logs."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._progress = Progress()

    def run_started(self, run: Run, plan: Plan, done: int) -> None:
        """The run begins."""
        self._progress.begin(plan, done, run.committed())
        self._say(f"run {run.path}")

    def step(self, what: str) -> None:
        """Something that takes a while begins."""
        self._say(what)

    def trial_started(self, trial: PlannedTrial, attempt: int) -> None:
        """An attempt at a trial begins."""
        self._progress.start(trial, attempt)
        self._say(f"trial {self._progress.what}; about {duration(self._progress.time_left_s)} left")

    def iteration(self, job: str, number: int, ms: float) -> None:
        """Counted; shown when the trial ends."""
        self._progress.jobs[job].add(number, ms)

    def link(self, name: str, gbps: float, marks_per_s: float | None) -> None:
        """Too much for a log."""

    def trial_ended(self, trial: PlannedTrial, reasons: list[str], again: bool) -> None:
        """The attempt is stored."""
        for name in trial.spec.jobs:
            job = self._progress.jobs[name]
            self._say(f"  {name}: {job.done} iterations, mean {job.mean_ms:.1f} ms")
        for reason in reasons:
            self._say(f"  {'again' if again else 'invalid'}: {reason}")
        self._progress.end(again)

    def leaves(self, owed: Sequence[str]) -> None:
        """The run ends at once."""
        self._say(left(owed))

    def _say(self, line: str) -> None:
        self._console.print(line, soft_wrap=True, highlight=False)


class Outlived:
    """A stream that may end before a run does: a terminal hangs up, a pipe's reader dies. Nothing is then said."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Say it, if anybody is there."""
        with self._mute_at_the_end():
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Say what was kept back."""
        with self._mute_at_the_end():
            self._stream.flush()

    @contextmanager
    def _mute_at_the_end(self) -> Iterator[None]:
        try:
            yield
        except OSError:  # what it still holds back must go somewhere, or it is said to have failed when we end
            nobody = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nobody, self._stream.fileno())
            os.close(nobody)


@contextmanager
def watching(console: Console) -> Iterator[Observer]:
    """An observer for this console, for as long as the run takes. What is shown never ends the run."""
    console.file = cast("IO[str]", Outlived(console.file))
    if not console.is_terminal or console.is_dumb_terminal:  # on which nothing can be drawn anew
        yield PlainObserver(console)
        return
    with Live(console=console, auto_refresh=False, transient=True) as live:
        yield TerminalObserver(console, live)
