# SPDX-License-Identifier: Apache-2.0
"""What a run measured, per variant, levels, job and repetition: what summaries, tables and plots begin from."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa

from analysis.reading.counted import NEVER, Counted, Integers
from analysis.reading.data import HostPlace, counters, iterations, rows_of
from analysis.statistics.bootstrap import Array, Interval, interval95, resample
from roundabout.spec import Experiment, Transport, TrialSpec
from roundabout.store import Run

SEED = 1
UNITS = {"us": "µs", "mbps": "Mbit/s", "bytes": "bytes"}


@dataclass
class Measured:
    """The valid trials of one variant at one combination of levels.

    `trials` holds their keys in the order of repetitions, and `times` per job and repetition the iteration times in ms.
    A job's iteration lasts as long as its slowest worker's, from that worker's own start to its own end of
    communication: no two clocks are compared.
    """

    variant: str
    levels: dict[str, Any]
    spec: TrialSpec
    trials: list[str] = field(default_factory=list)
    times: dict[str, dict[int, Array]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """What tables and plots call it."""
        return label(self.variant, self.levels)

    @property
    def surroundings(self) -> dict[str, Any]:
        """The levels of all factors but the variant; what shares them may be compared."""
        return {factor: level for factor, level in self.levels.items() if factor != "variant"}

    @property
    def transports(self) -> str:
        """What each job's congestion control is told by the experiment; once where all are told the same."""
        texts = {name: _described(job.transport) for name, job in self.spec.jobs.items()}
        if len(set(texts.values())) == 1:
            return next(iter(texts.values()))
        return ", ".join(f"{job} {text}" for job, text in texts.items())

    def repetitions(self, job: str) -> list[Array]:
        """Iteration times of one job, one array a repetition."""
        return [self.times[job][number] for number in sorted(self.times[job])]

    def together(self, jobs: list[str]) -> list[Array]:
        """Iteration times of `jobs` side by side, shape (iterations, jobs), of the repetitions that they all have."""
        common = set.intersection(*(set(self.times[job]) for job in jobs))
        return [np.column_stack([self.times[job][number] for job in jobs]) for number in sorted(common)]


def label(variant: str, levels: Mapping[str, Any]) -> str:
    """A variant, with the levels of other factors where there are any."""
    return " · ".join([variant, *(f"{factor} {level}" for factor, level in levels.items() if factor != "variant")])


def experiment_of(run: Run) -> Experiment:
    """The experiment as it was resolved when the run began."""
    return Experiment.model_validate(run.manifest["experiment"])


def measured(run: Run) -> list[Measured]:
    """Everything that the run's valid trials measured, in the order of the experiment's levels."""
    cells = [Measured(cell.variant, dict(cell.levels), cell.spec) for cell in experiment_of(run).cells]
    at = {frozenset(cell.levels.items()): cell for cell in cells}
    for record in sorted(run.trials(), key=itemgetter("repetition")):
        if record["valid"]:
            at[_levels(record["levels"])].trials.append(record["trial"])
    keys = ["levels", "job", "repetition"]
    series = iterations(run).group_by(keys, use_threads=False).aggregate([("iteration_ms", "list")])
    for row in series.sort_by([("job", "ascending"), ("repetition", "ascending")]).to_pylist():
        times = at[_levels(row["levels"])].times.setdefault(row["job"], {})
        times[row["repetition"]] = np.array(row["iteration_ms_list"])
    return [cell for cell in cells if cell.times]


def first_shares(run: Run, cell: Measured, one: str, other: str) -> list[float]:
    """Bytes sent by the hosts of job `one` over those of job `other`, per trial, while both send for the first time."""
    return [ours / theirs for _, (ours, theirs) in first_meetings(run, cell, (one, other)) if theirs]


def first_meetings(run: Run, cell: Measured, pair: tuple[str, str]) -> list[tuple[float, tuple[float, float]]]:
    """Per trial: how long two jobs both send for the first time, in s, and the bytes that the hosts of each send then.

    That is from the later end of compute to the earlier end of communication in the first two iterations that overlap,
    by the counters of the hosts' interfaces (every 10 ms, taken as linear between samples; headers included). Trials
    whose counters do not cover that time are left out.
    """
    of_jobs, sent = iterations(run), counters(run, "tx_bytes")
    found = []
    for trial in cell.trials:
        window = _first_overlap(*(communication(of_jobs, trial, job) for job in pair))
        if window is not None:
            places = ([HostPlace(trial, host) for host in cell.spec.jobs[job].workers] for job in pair)
            ours, theirs = (_sent_bytes(sent, each, window) for each in places)
            found.append(((window[1] - window[0]) / 1e9, (ours, theirs)))
    return [each for each in found if np.isfinite(each[1]).all()]


def speedup(slow: Measured, fast: Measured, job: str | None) -> tuple[float, Interval | None] | None:
    """Median iteration time of `slow` over that of `fast`: of one job, or of the job that gains least.

    Medians are over all iterations of all repetitions. None where there is nothing to compare.
    """
    shared = sorted(slow.times.keys() & fast.times.keys())
    jobs = [each for each in shared if job in (None, each)]
    if not jobs:
        return None
    sides = slow.together(jobs), fast.together(jobs)
    if not all(sides):
        return None
    point = (_medians(pooled(sides[0])) / _medians(pooled(sides[1]))).min()
    medians = [resample(side, _medians, seed=SEED + place) for place, side in enumerate(sides)]
    replicates = (medians[0] / medians[1]).min(axis=1)
    return float(point), interval95(replicates, min(map(len, sides)))


def matches(levels: Mapping[str, Any], at: Mapping[str, Any] | None) -> bool:
    """Whether the factors named in `at` have these levels."""
    return (at or {}).items() <= levels.items()


def pooled(repetitions: list[Array]) -> Array:
    """All repetitions as one, shape (1, iterations, series): what a resample looks like."""
    return np.concatenate(repetitions)[None]


def communication(iterations: pa.Table, trial: str, job: str) -> Integers:
    """When a job communicates, shape (iterations, 2): its first worker's end of compute, its last one's end, in ns."""
    rows = rows_of(iterations, trial=trial, job=job)
    return np.column_stack([rows["compute_end_ns"].to_numpy(), rows["comm_end_ns"].to_numpy()])


def _medians(samples: Array) -> Array:
    return np.asarray(np.median(samples, axis=1))


def _described(transport: Transport) -> str:
    words: list[str] = [transport.name]
    for parameter, value in transport.parameters.items():
        name, _, unit = parameter.rpartition("_")
        words.append(f"{name} {value:g} {UNITS[unit]}" if unit in UNITS and name else f"{parameter} {value:g}")
    return " ".join(words)


def _levels(text: str) -> frozenset[tuple[str, Any]]:
    return frozenset(json.loads(text).items())


def _first_overlap(one: Integers, other: Integers) -> Integers | None:
    overlaps = ((max(a[0], b[0]), min(a[1], b[1])) for a in one for b in other)
    first = min(((begin, end) for begin, end in overlaps if begin < end), default=None)
    return None if first is None else np.array(first)


def _sent_bytes(sent: Mapping[HostPlace, Counted], places: Iterable[HostPlace], window: Integers) -> float:
    """What these hosts sent in the window; nan where it is not known of one of them."""
    gains = [sent.get(place, NEVER).between(window) for place in places]
    return float(sum(int(each.counts[0]) for each in gains)) if all(each.known[0] for each in gains) else np.nan
