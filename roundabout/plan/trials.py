# SPDX-License-Identifier: Apache-2.0
"""The trials of an experiment: their order, and the keys by which finished ones are recognized."""

import hashlib
import json
import random
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from roundabout.plan.clusters import least_duration_s
from roundabout.plan.duration import OVERHEAD_S, REPORT_S, REPORT_TRIAL_S, expected_iterations_s
from roundabout.spec.experiment import Cell, Experiment
from roundabout.spec.topology import Topology
from roundabout.spec.trial_spec import TrialSpec

# Texts for people, which do not change what is measured: a trial's key leaves them out.
_PROSE: Any = {
    "topology": {"about", "source"},
    "jobs": {"__all__": {"profile": {"source": True, "phases": {"__all__": {"source", "guess"}}}}},
}


@dataclass(frozen=True)
class PlannedTrial:
    """One trial of a plan: a combination of levels in one repetition.

    `repetition` counts from 1. `job` names the only job that runs, or is None if all jobs run.
    """

    key: str
    variant: str
    levels: dict[str, str | int | float]
    repetition: int
    job: str | None
    spec: TrialSpec
    seed: int
    depends_on: tuple[str, ...]
    expected_s: float


@dataclass(frozen=True)
class Plan:
    """All trials of an experiment in the order of execution. Dependencies come first."""

    experiment: Experiment
    trials: tuple[PlannedTrial, ...]
    artefacts: Mapping[str, str] = field(default_factory=dict)

    @property
    def expected_s(self) -> float:
        """Return the expected duration of all trials, in seconds."""
        return sum(trial.expected_s for trial in self.trials)

    @property
    def report_s(self) -> float:
        """Return the expected duration of the summary and the report after the trials, in seconds."""
        return REPORT_S + REPORT_TRIAL_S * len(self.trials)


def expected_duration_s(spec: TrialSpec, dilation: float = 1.0, seed: int = 1) -> float:
    """Return the longest expected duration of a trial at this time dilation, in seconds.

    For a trial of a cluster, return the shortest expected duration.
    """
    return OVERHEAD_S + dilation * (least_duration_s(spec, seed) if spec.cluster else expected_iterations_s(spec))


def make_plan(
    experiment: Experiment,
    testbed_identity: Mapping[str, Any],
    artefacts: Mapping[str, str],
    dilation: float = 1.0,
) -> Plan:
    """Return the plan of `experiment` on a testbed with its deployed artifacts (`artefacts`: name -> hash).

    `dilation` multiplies the expected times. Each repetition is a block, whose trials are shuffled by the experiment's
    seed. Within a block, dependencies come first, and trials with the same topology follow each other.
    """
    where = {"testbed": dict(testbed_identity), "artefacts": dict(artefacts)}
    trials: list[PlannedTrial] = []
    for repetition in range(1, experiment.repetitions + 1):
        seed = int(content_hash([experiment.seed, repetition]), 16) >> 1
        trials.extend(_shuffle_in_waves(_Block(repetition, seed, where, dilation), experiment.cells))
    return Plan(experiment, tuple(trials), artefacts)


@dataclass(frozen=True)
class _Block:
    """One repetition. Its trials share a seed, so that variants are compared under the same jitter."""

    repetition: int
    seed: int
    where: Mapping[str, Any]
    dilation: float

    def trials(self, cell: Cell, depends_on: tuple[str, ...]) -> list[PlannedTrial]:
        jobs = list(cell.spec.jobs) if cell.spec.one_job_at_a_time else [None]
        return [self.trial(cell, job, depends_on) for job in jobs]

    def trial(self, cell: Cell, job: str | None, depends_on: tuple[str, ...]) -> PlannedTrial:
        spec = cell.spec if job is None else cell.spec.with_one_job(job)
        content = {
            "spec": spec.model_dump(mode="json", exclude=_PROSE),
            "levels": cell.levels,
            "job": job,
            "seed": self.seed,
            "repetition": self.repetition,
            "depends_on": depends_on,
            **self.where,
        }
        return PlannedTrial(
            key=content_hash(content),
            variant=cell.variant,
            levels=cell.levels,
            repetition=self.repetition,
            job=job,
            spec=spec,
            seed=self.seed,
            depends_on=depends_on,
            expected_s=expected_duration_s(spec, self.dilation, self.seed),
        )


def _shuffle_in_waves(block: _Block, cells: tuple[Cell, ...]) -> Iterator[PlannedTrial]:
    """Yield the trials of a block.

    A shuffled wave of those without dependencies, then of those that depend on these, and so on.

    Those of one topology follow each other, because creating another takes longer than many a trial.
    """
    shuffle = random.Random(block.seed).shuffle
    done: dict[int, tuple[str, ...]] = {}
    while len(done) < len(cells):
        wave: list[PlannedTrial] = []
        for index, needed in _ready(cells, done).items():
            depends_on = tuple(sorted(key for other in needed for key in done[other]))
            trials = block.trials(cells[index], depends_on)
            done[index] = tuple(trial.key for trial in trials)
            wave.extend(trials)
        shuffle(wave)
        topologies: list[Topology] = []
        for trial in wave:
            if trial.spec.topology not in topologies:
                topologies.append(trial.spec.topology)
        yield from sorted(wave, key=lambda trial: topologies.index(trial.spec.topology))


def _ready(cells: tuple[Cell, ...], done: Container[int]) -> dict[int, set[int]]:
    """Return the cells whose dependencies are done, with these. Checked cells have no cycles."""
    dependencies = {index: _dependencies(cell, cells) for index, cell in enumerate(cells) if index not in done}
    return {index: needed for index, needed in dependencies.items() if needed.isdisjoint(dependencies)}


def _dependencies(cell: Cell, cells: tuple[Cell, ...]) -> set[int]:
    """Return the cells on which `cell` depends: those of the variants it names, at its own other levels."""
    levels = [{**cell.levels, "variant": variant} for variant in cell.dependencies.values()]
    return {index for index, other in enumerate(cells) if other.levels in levels}


def content_hash(content: Any) -> str:
    """Return the first 16 hex digits of the SHA-256 of `content` as canonical JSON."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
