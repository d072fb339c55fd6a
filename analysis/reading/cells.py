# SPDX-License-Identifier: Apache-2.0
"""The measurements of a run, cell by cell (one combination of levels): the input of studies, tables and figures."""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import starmap
from operator import itemgetter
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from pydantic import ValidationError

from analysis.reading.cached_run import cached_per_run
from analysis.reading.data import HostPlace, counters, filter_rows, iterations
from analysis.reading.disturbance import mark_name, widen
from analysis.statistics.cumulative_counter import EMPTY, CumulativeCounter, Integers
from analysis.statistics.intervals import Array, Measured, estimate, tail_estimate
from roundabout.spec import Experiment, Transport, TrialSpec
from roundabout.spec.base import Level
from roundabout.spec.experiment import ONLY_VARIANT
from roundabout.store import Run, StoreError
from roundabout.store.files import LOST_MESSAGE
from roundabout.store.trial_states import counted_trials, largest_disturbance

T = TypeVar("T")
UNITS = {"us": "µs", "mbps": "Mbit/s", "bytes": "bytes"}


@dataclass(frozen=True)
class CellId:
    """A combination of levels, one for each factor. Equal levels make equal ids, in any order."""

    levels: Mapping[str, Level]

    def __hash__(self) -> int:
        return hash(frozenset(self.levels.items()))

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> "CellId":
        """Return the id of a trial's record, whose levels are a JSON object."""
        return cls(json.loads(record["levels"]))

    @property
    def variant(self) -> str:
        """Return the level of the factor `variant`."""
        return str(self.levels.get("variant", ONLY_VARIANT))

    @property
    def name(self) -> str:
        """Return the name in tables and figures: the variant, if there are several, and the other factors' levels."""
        variant = self.variant if "variant" in self.levels or not self.other_levels else ""
        return " · ".join(each for each in (variant, self.other_levels) if each)

    @property
    def other_levels(self) -> str:
        """Return the levels of all factors but the variant, as text.

        A factor is named by the last part of its path if that is unique.
        """
        levels = self.without_factor("variant").levels
        ends = Counter(name.rpartition(".")[2] for name in levels)
        short = {name: end if ends[end := name.rpartition(".")[2]] == 1 else name for name in levels}
        return " · ".join(f"{short[name]} {level}" for name, level in levels.items())

    @property
    def group(self) -> str:
        """Return the levels that cells compared by variant have in common, as text; empty without variants."""
        return self.other_levels if "variant" in self.levels else ""

    @property
    def name_in_group(self) -> str:
        """Return the name beside the cells that differ only in the variant."""
        return self.variant if "variant" in self.levels else self.name

    def without_factor(self, factor: str) -> "CellId":
        """Return the id without `factor`; cells that differ only in `factor` have equal ids then."""
        return CellId({name: level for name, level in self.levels.items() if name != factor})

    def matches(self, at: Mapping[str, Any] | None) -> bool:
        """Return True if each factor in `at` has the level that `at` gives; always True for None."""
        return (at or {}).items() <= self.levels.items()


@dataclass
class CellTrials:
    """The trials of a cell whose figures count: the valid ones, or the disturbed ones if none is valid.

    `disturbance` is the largest estimated effect of disturbed trials, as a share, and None for valid trials.

    `trials` holds the trials' keys in the order of repetitions, and `times` the iteration times in ms by job and
    repetition. A job's iteration lasts as long as its slowest worker's, from the worker's own start to its own end of
    communication, so no two clocks are compared.
    """

    id: CellId
    spec: TrialSpec
    trials: list[str] = field(default_factory=list)
    times: dict[str, dict[int, Array]] = field(default_factory=dict)
    disturbance: float | None = None

    @property
    def variant(self) -> str:
        """Return the level of the factor `variant`."""
        return self.id.variant

    @property
    def levels(self) -> Mapping[str, Level]:
        """Return the level of each factor."""
        return self.id.levels

    @property
    def name(self) -> str:
        """Return the name in tables and figures, with a mark if the trials were disturbed."""
        return mark_name(self.id.name, self.disturbance)

    @property
    def name_in_group(self) -> str:
        """Return the name beside the cells that differ only in the variant, with a mark for disturbed trials."""
        return mark_name(self.id.name_in_group, self.disturbance)

    @property
    def properties(self) -> dict[str, str]:
        """Return the properties by which expectations select the cell's figures: each level, and the variant."""
        return {name: str(level) for name, level in self.levels.items()} | {"variant": self.variant}

    @property
    def jobs(self) -> list[str]:
        """Return the measured jobs, in the experiment's order."""
        return [job for job in self.spec.jobs if job in self.times]

    @cached_property
    def sharing_jobs(self) -> dict[str, tuple[str, ...]]:
        """Return, by the link's name, the measured jobs that share a link (`TrialSpec.shared_bottlenecks`)."""
        return self.spec.shared_bottlenecks(self.jobs)

    @property
    def transports(self) -> str:
        """Return the settings of each job's congestion control as text; what all have in common is named once."""
        requested = {
            name: (_name_of(job.transport), _parameters_of(job.transport)) for name, job in self.spec.jobs.items()
        }
        names = {name for name, _ in requested.values()}
        if len(set(requested.values())) == 1:
            return " ".join(filter(None, next(iter(requested.values()))))
        if len(names) == 1 and all(parameters for _, parameters in requested.values()):
            return f"{names.pop()}: " + ", ".join(f"{job} {parameters}" for job, (_, parameters) in requested.items())
        return ", ".join(" ".join(filter(None, (job, *each))) for job, each in requested.items())

    def repetitions(self, job: str) -> list[Array]:
        """Return the iteration times of a job, ms, one array for each repetition."""
        return [self.times[job][number] for number in sorted(self.times[job])]

    def estimate(self, job: str, statistic: Callable[[Array], float]) -> Measured:
        """Return a statistic of a job's iteration times, ms, with an interval that is wider for disturbed trials."""
        return widen(estimate(self.repetitions(job), statistic), self.disturbance)

    def estimate_tail(self, job: str) -> Measured | None:
        """Return the 99th percentile of a job's iteration times like `estimate`; None with too few iterations."""
        found = tail_estimate(self.repetitions(job))
        return widen(found, self.disturbance) if found else None


def by_group(items: Iterable[T], id_of: Callable[[T], CellId]) -> dict[str, list[T]]:
    """Return items by their cell's group, in the experiment's order; cells of a group differ only in the variant."""
    found: dict[str, list[T]] = {}
    for item in items:
        found.setdefault(id_of(item).group, []).append(item)
    return found


def jobs_of(cells: Iterable[CellTrials]) -> list[str]:
    """Return every job that was measured in any of the cells, in the experiment's order."""
    return list(dict.fromkeys(job for cell in cells for job in cell.jobs))


@cached_per_run
def experiment_of(run: Run) -> Experiment:
    """Return the experiment as it was resolved when the run began. Raises StoreError if it cannot be read."""
    try:
        return Experiment.model_validate(run.manifest["experiment"])
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise StoreError(
            f"{run.path / 'manifest.json'}: experiment.{where}: {first['msg']}",
            "read this run with the version of roundabout that wrote it",
        ) from error


@cached_per_run
def cell_of_trial(run: Run) -> dict[str, CellId]:
    """Return the cell of each committed trial. Raises StoreError for a trial of another experiment."""
    cells = {CellId(cell.levels) for cell in experiment_of(run).cells}
    found = {record["trial"]: CellId.of(record) for record in run.trials()}
    for trial, cell in found.items():
        if cell not in cells:
            path = run.path / "trials" / trial / "trial.json"
            raise StoreError(
                f"{path}: levels: found {dict(cell.levels)}, expected those of a cell in the manifest", LOST_MESSAGE
            )
    return found


@cached_per_run
def disturbed_cells(run: Run) -> dict[CellId, float]:
    """Return the cells whose figures come from disturbed trials, in the experiment's order.

    The values are the largest estimated effects, as shares.
    """
    records, of_trial = run.trials(), cell_of_trial(run)
    counted = counted_trials(records)
    found: dict[CellId, list[dict[str, Any]]] = defaultdict(list)
    for record in records:
        if record["trial"] in counted:
            found[of_trial[record["trial"]]].append(record)
    cells = (CellId(cell.levels) for cell in experiment_of(run).cells)
    effects = {cell: largest_disturbance(found[cell]) for cell in cells if cell in found}
    return {cell: effect for cell, effect in effects.items() if effect is not None}


@cached_per_run
def cells_of(run: Run) -> list[CellTrials]:
    """Return all measurements of the run's trials that count, in the order of the experiment's levels."""
    disturbed, counted = disturbed_cells(run), counted_trials(run.trials())
    cells = [
        CellTrials(CellId(cell.levels), cell.spec, disturbance=disturbed.get(CellId(cell.levels)))
        for cell in experiment_of(run).cells
    ]
    at, of_trial = {cell.id: cell for cell in cells}, cell_of_trial(run)
    for record in sorted(run.trials(), key=itemgetter("repetition")):
        if record["trial"] in counted:
            at[of_trial[record["trial"]]].trials.append(record["trial"])
    series = iterations(run).group_by(["trial", "job", "repetition"], use_threads=False)
    rows = series.aggregate([("iteration_ms", "list")])
    for row in rows.sort_by([("job", "ascending"), ("repetition", "ascending")]).to_pylist():
        cell = at[of_trial[row["trial"]]]
        if row["job"] in cell.spec.jobs:  # a cluster's are not: no two of its trials have the same (timelines.py)
            cell.times.setdefault(row["job"], {})[row["repetition"]] = np.array(row["iteration_ms_list"])
    for cell in cells:
        for times in cell.times.values():
            # Only of a job that departs do repetitions differ: as many iterations count as all of them have.
            times.update(zip(times, _cut_to_shortest(list(times.values())), strict=True))
    return [cell for cell in cells if cell.times]


def _cut_to_shortest(series: Sequence[Array]) -> list[Array]:
    """Return all series cut to the length of the shortest."""
    return [each[: min(map(len, series))] for each in series]


def first_shares(run: Run, cell: CellTrials, one: str, other: str) -> list[float]:
    """Return for each trial the bytes of job `one` over those of job `other` while both send for the first time."""
    return [ours / theirs for _, (ours, theirs) in first_overlaps(run, cell, (one, other)) if theirs]


def first_overlaps(run: Run, cell: CellTrials, pair: tuple[str, str]) -> list[tuple[float, tuple[float, float]]]:
    """Return for each trial how long two jobs first send together, s, and the bytes that each job's hosts send then.

    The time runs from the later end of compute to the earlier end of communication in the first two iterations that
    overlap. Bytes are read from the hosts' interface counters (every 10 ms, linear between samples; headers included).
    Trials whose counters do not cover the time are left out, and all trials if the jobs share a host.
    """
    if {*cell.spec.jobs[pair[0]].hosts} & {*cell.spec.jobs[pair[1]].hosts}:
        return []
    of_jobs, sent = iterations(run), counters(run, "tx_bytes")
    found = []
    for trial in cell.trials:
        window = _first_overlap(*(communication(of_jobs, trial, job) for job in pair))
        if window is not None:
            places = ([HostPlace(trial, host) for host in cell.spec.jobs[job].hosts] for job in pair)
            ours, theirs = (_sent_bytes(sent, each, window) for each in places)
            found.append(((window[1] - window[0]) / 1e9, (ours, theirs)))
    return [each for each in found if np.isfinite(each[1]).all()]


def communication(iterations: pa.Table, trial: str, job: str) -> Integers:
    """Return begin and end of a job's communication in each iteration, ns, as an array of shape (iterations, 2)."""
    rows = filter_rows(iterations, trial=trial, job=job)
    return np.column_stack([rows["compute_end_ns"].to_numpy(), rows["comm_end_ns"].to_numpy()])


def _name_of(transport: Transport) -> str:
    """Return the name of the transport and that of its set."""
    return f"{transport.name} {transport.published.name}" if transport.published else transport.name


def _parameters_of(transport: Transport) -> str:
    """Return the parameters that are requested beside the set's."""
    requested = {**transport.parameters, **(dict(transport.ecn) if transport.ecn else {})}
    return " ".join(starmap(_describe_value, requested.items()))


def _describe_value(parameter: str, value: float | str) -> str:
    if isinstance(value, str):
        return f"{parameter} {value}"
    name, _, unit = parameter.rpartition("_")
    return f"{name} {value:g} {UNITS[unit]}" if unit in UNITS and name else f"{parameter} {value:g}"


def _first_overlap(one: Integers, other: Integers) -> Integers | None:
    overlaps = ((max(a[0], b[0]), min(a[1], b[1])) for a in one for b in other)
    first = min(((begin, end) for begin, end in overlaps if begin < end), default=None)
    return None if first is None else np.array(first)


def _sent_bytes(sent: Mapping[HostPlace, CumulativeCounter], places: Iterable[HostPlace], window: Integers) -> float:
    """Return the bytes that these hosts sent in the window; nan if one host's are not known."""
    gains = [sent.get(place, EMPTY).gains_between(window) for place in places]
    return float(sum(int(each.counts[0]) for each in gains)) if all(each.known[0] for each in gains) else np.nan
