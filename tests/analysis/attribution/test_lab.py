# SPDX-License-Identifier: Apache-2.0
"""Causes that are planted in a lab, and what `explain` says of its runs."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import pytest

from analysis.attribution.attribution import JobDelay, attribute_delays, choose_trials
from analysis.attribution.attribution_tables import sentence
from analysis.reading.cached_run import CachedRun
from roundabout.api import run_experiment
from roundabout.spec.trainers.replay import Trainer
from roundabout.spec.training.trainer import Task
from roundabout.terminal.replays import choose_models
from tests.analysis.attribution import planted_causes as planted
from tests.analysis.attribution.planted_causes import Planted

pytestmark = [pytest.mark.lab, pytest.mark.quiet, pytest.mark.proof]

NOT_IN_LAB = {planted.marking_off, planted.slow_recovery, planted.lossy_link}
"""A lab has no pauses, and iterations so long that rates have time to recover. Losses have a test of their own."""
CAUSES = [case for case in planted.CAUSES if case not in NOT_IN_LAB]


def slow_down(case: Planted, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the last worker of j1 compute `slowed` times as long as its profile says, and the first one by the mean."""
    factors = (2 * case.mean_slowed - case.slowed, case.slowed)
    argv = Trainer.argv

    def slowed(self: Trainer, task: Task) -> tuple[str, ...]:
        is_slow = json.loads(task.job_json)["name"] == "j1"
        return (*argv(self, task), *(("--computing", str(factors[task.rank])) if is_slow else ()))

    monkeypatch.setattr(Trainer, "argv", slowed)


def explain(case: Planted, folder: Path) -> Iterator[JobDelay]:
    """Run the experiment in a lab, and yield the delay of j1 in each repetition by itself."""
    run = CachedRun(run_experiment(case.in_lab(), testbed="lab", runs=folder, quiet=True))
    chosen = choose_trials(run)
    models = choose_models(run, [trial.spec for trial in chosen.trials.values()])
    for key, trial in chosen.trials.items():
        found = attribute_delays(run, replace(chosen, trials={key: trial}), models.open, models.name)
        yield next(job for job in found.jobs if job.job == "j1")


def report(name: str, delays: Sequence[JobDelay], cause: tuple[str, str] | None) -> int:
    """Print a row, and return in how many repetitions the cause is named first; of none, in how many one is named."""
    print(f"\n| {name.replace('_', ' ')} | ", end="")
    for of in (lambda job: job.delay_ms.value, lambda job: job.unexplained.ms.value, lambda job: own_ms(job, cause)):
        values = [of(job) for job in delays]
        print(f"{fmean(values):.1f} ({min(values):.1f} to {max(values):.1f}) | ", end="")
    first = [job.named[0] if job.named else None for job in delays]
    count = sum(each is not None and cause in {None, (each.cause, each.name)} for each in first)
    print(f"{count} of {len(delays)} |")
    print(*map(sentence, delays), sep="\n")
    return count


def own_ms(job: JobDelay, cause: tuple[str, str] | None) -> float:
    """Return the part of a cause, ms."""
    return sum(part.ms.value for part in job.parts if (part.cause, part.name) == cause)


@pytest.mark.parametrize("case", CAUSES)
def test_planted_cause_is_named_first(case, tmp_path, monkeypatch):
    found = case()
    assert found.cause
    slow_down(found, monkeypatch)
    delays = list(explain(found, tmp_path))
    assert report(case.__name__, delays, (found.cause, found.name)) == planted.IN_LAB["repetitions"]


@pytest.mark.parametrize("case", planted.HARMLESS)
def test_nothing_is_named_without_a_cause(case, tmp_path):
    delays = list(explain(case(), tmp_path))
    assert len(delays) == planted.IN_LAB["repetitions"]
    assert report(case.__name__, delays, None) == 0


def test_a_model_that_overrates_losses_names_nothing(tmp_path):
    """The kernel's TCP repairs 5 % of lost packets at a seventh of the model's cost."""
    case = planted.lossy_link(share=0.05)
    delays = list(explain(case, tmp_path))
    assert report("lossy_link", delays, (str(case.cause), case.name)) == 0
    assert all(job.is_notable(job.delay_ms) and job.computed_ms > job.delay_ms.value for job in delays)
