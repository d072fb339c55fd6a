# SPDX-License-Identifier: Apache-2.0
"""Predictions of an experiment's figures over the accepted set of an identification, packet by packet.

A figure has one value for each accepted candidate, the representative's first. Their spread says how much of the
figure the measurements decide that were looked at.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median
from threading import Event
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from analysis.calibration.identification import Observation
from analysis.calibration.parallel_plays import play_all
from analysis.calibration.predictions import fair_version
from analysis.papers import find_printed
from analysis.reading.cells import CellId
from analysis.reading.phase_overlap import compute_overlaps
from analysis.render.tables import Cell as Shown, Column, Table, group_by_title
from roundabout.models.packets import PS_PER_MS, Fabric, PlayedTrial, play_trial
from roundabout.models.packets.first_iteration import first_bandwidths
from roundabout.spec import TrialSpec
from roundabout.spec.expectation import AnyExpectation, Row, Value
from roundabout.spec.experiment import Cell, Experiment
from roundabout.spec.transports.identification import SHARE

MEDIAN, MEAN = "speedup of median iteration time", "speedup of mean iteration time"
FAIR_MEAN = "mean iteration time"
ENDS, SENDS = "end of the first iteration", "start of the second communication"
OVERLAP = "phase overlap in the fourth iteration"
"""Quantities by their names in analysis/quantities; the last one is of this module alone."""

SEED = 1
"""Of all trials: candidates differ by more than seeds do."""

MANY_ITERATIONS = 10_000
"""More than jobs complete before they depart."""

Spans = Mapping[str, npt.NDArray[np.float64]]
"""Start, begin of sending and end of each iteration of a job's first worker, in ms: shape (iterations, 3)."""


class Played(NamedTuple):
    """The iterations of a trial, and the jobs' rates while all first send, in Gbit/s."""

    spans: Spans
    first_gbps: Mapping[str, float]


@dataclass(frozen=True)
class PredictedFigure:
    """A figure of a cell: its values over the accepted candidates, the representative's first, and the printed one."""

    cell: Cell
    what: str
    case: str
    values: tuple[float, ...]
    printed: float | None

    @property
    def holds(self) -> bool | None:
        """Return True if the printed figure lies within the spread; None if nothing is printed."""
        return None if self.printed is None else min(self.values) <= self.printed <= max(self.values)

    def record(self) -> dict[str, Any]:
        """Return the figure as JSON-compatible values."""
        return {
            "levels": self.cell.levels,
            "what": self.what,
            "case": self.case,
            "printed": self.printed,
            "representative": self.values[0],
            "median": median(self.values),
            "least": min(self.values),
            "most": max(self.values),
            "values": list(self.values),
        }


def split_by_support(cells: Sequence[Cell]) -> tuple[list[Cell], list[Cell]]:
    """Return the cells in which jobs meet over DCQCN without inputs or cross traffic, and the others."""
    known = [each for each in cells if _is_known(each.spec)]
    return known, [each for each in cells if each not in known]


def _is_known(spec: TrialSpec) -> bool:
    jobs = [*spec.jobs.values()]
    over_dcqcn = all(job.transport.declaration and "T_us" in job.transport.requested for job in jobs)
    return bool(jobs) and spec.has_concurrent_jobs and over_dcqcn and not (spec.cross_traffic or spec.cassini)


def shorten(spec: TrialSpec, iterations: int) -> TrialSpec:
    """Return a trial whose jobs all depart after as long as the longest takes for so many iterations alone."""
    until_ms = iterations * max(job.profile.alone_ms for job in spec.jobs.values())
    jobs = {
        name: job.model_copy(
            update={"departs_ms": min(job.departs_ms or until_ms, until_ms), "iterations": MANY_ITERATIONS}
        )
        for name, job in spec.jobs.items()
    }
    return spec.model_copy(update={"jobs": jobs, "iterations": MANY_ITERATIONS})


def without_jitter(spec: TrialSpec) -> TrialSpec:
    """Return a trial whose jobs compute as long as their profiles say, so that equal ones begin to send at once."""
    jobs = {name: job.model_copy(update={"jitter": 0.0}) for name, job in spec.jobs.items()}
    return spec.model_copy(update={"jobs": jobs})


def predict_figures(  # noqa: PLR0913, PLR0917 - what is played, with what, how long, and how it is watched
    experiment: Experiment,
    cells: Sequence[Cell],
    accepted: Sequence[Observation],
    iterations: int,
    processors: int | None,
    progress: Callable[[float], None],
) -> list[PredictedFigure]:
    """Return the figures of cells over the accepted candidates. `progress` receives the finished share, from 0 to 1.

    Raises UnsupportedError if the packet-level model cannot play a cell.
    """
    specs = {_key(each): each for cell in cells for each in (cell.spec, fair_version(cell.spec))}
    requested = [(place, key) for place in range(len(accepted)) for key in specs]

    def play(place: int, key: str, stopped: Event) -> Played:
        candidate = accepted[place].candidate
        spec = candidate.applied_to(shorten(specs[key], iterations))
        first = first_bandwidths(without_jitter(spec), SEED, Fabric(), stopped.is_set)
        return Played(_spans(play_trial(spec, SEED, Fabric(), is_stopped=stopped.is_set)), first)

    plays = [partial(play, *each) for each in requested]
    played = dict(
        zip(requested, play_all(plays, processors, lambda _, left: progress(1 - left / len(requested))), strict=True)
    )
    found = []
    for cell in cells:
        fair, own = _key(fair_version(cell.spec)), _key(cell.spec)
        figures = [
            _figures(played[place, fair], played[place, own], is_fair=fair == own) for place in range(len(accepted))
        ]
        for what, case in figures[0]:
            if not all((what, case) in each for each in figures):
                continue  # with some candidates jobs did not play long enough
            values = tuple(each[what, case] for each in figures)
            found.append(PredictedFigure(cell, what, case, values, _printed(experiment, cell, what, case)))
    return found


def _key(spec: TrialSpec) -> str:
    return spec.model_dump_json()


def _spans(played: PlayedTrial) -> Spans:
    return {
        name: np.stack([workers[0][column] / PS_PER_MS for column in ("start_ps", "compute_end_ps", "end_ps")], axis=1)
        for name, workers in played.iterations.items()
    }


def _figures(alike: Played, played: Played, *, is_fair: bool) -> dict[tuple[str, str], float]:
    """Return the figures of a cell by quantity and case. Long runs count by the second half of their iterations."""
    found: dict[tuple[str, str], float] = {}
    fair, own = alike.spans, played.spans
    if is_fair:
        return {(FAIR_MEAN, job): _late(spans, np.mean) for job, spans in own.items()}
    one, other = list(played.first_gbps.values())[:2]
    if math.isfinite(one / other):
        found[SHARE, "j1/j2"] = one / other
    gains = {job: _late(fair[job], np.median) / _late(own[job], np.median) for job in own}
    found[MEDIAN, "least"] = min(gains.values())
    for job, spans in own.items():
        found[MEAN, job] = _late(fair[job], np.mean) / _late(spans, np.mean)
    for job, spans in own.items():
        found[ENDS, job] = float(spans[0, 2]) / 1e3
        found[SENDS, job] = float(spans[1, 1]) / 1e3
    overlaps = compute_overlaps({job: spans[:, 1:] for job, spans in own.items()})
    if len(overlaps) > 3:
        found[OVERLAP, "largest"] = float(overlaps[3])
    return found


def _late(spans: npt.NDArray[np.float64], of: Callable[[npt.NDArray[np.float64]], Any]) -> float:
    times = spans[:, 2] - spans[:, 0]
    return float(of(times[len(times) // 2 :]))


def _printed(experiment: Experiment, cell: Cell, what: str, case: str) -> float | None:
    """Return the figure that an expectation of the experiment has for the same quantity of the cell."""
    for each in experiment.expect:
        levels = (each.at or {}).items()
        if each.what != what or each.of not in (None, cell.variant) or not levels <= cell.levels.items():
            continue
        figure = _figure(each, case)
        if figure is not None:
            return figure
    return None


def _figure(expectation: AnyExpectation, case: str) -> float | None:
    if isinstance(expectation, Value):
        figures: Any = expectation.paper
    elif isinstance(expectation, Row):
        figures = expectation.row
    else:
        return None
    if isinstance(figures, str):
        figures = find_printed(figures).entry.figures
    if isinstance(figures, Mapping):
        figures = figures.get(case)
    return float(figures) if isinstance(figures, int | float) else None


def table(experiment: Experiment, found: Sequence[PredictedFigure]) -> Table:
    """Return a row for each figure, by cell; the spread is below the median."""
    columns = (
        Column("", kind="words", wraps=True),
        Column("case", kind="words"),
        Column("paper", ".3g"),
        Column("represen-\ntative", ".3g"),
        Column("median", ".3g"),
    )

    def row(each: PredictedFigure) -> tuple[Shown, ...]:
        spread = Shown(median(each.values), (min(each.values), max(each.values)))
        return Shown(each.what), Shown(each.case), Shown(each.printed), Shown(each.values[0]), spread

    held = [each.holds for each in found if each.holds is not None]
    caption = f"{sum(held)} of {len(held)} printed figures lie within the spread" if held else ""
    sections = group_by_title(found, lambda each: CellId(each.cell.levels).name, row)
    title = f"{experiment.name}, packet by packet, over what was identified"
    return Table(columns, sections, title, caption)
