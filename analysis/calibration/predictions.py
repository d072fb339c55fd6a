# SPDX-License-Identifier: Apache-2.0
"""Predictions of DCQCN's mean field for an experiment's cells, relative to the same cells with equal transports."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from analysis.papers import find_printed
from analysis.reading.cells import CellId
from analysis.reading.phase_overlap import LASTING_ITERATIONS, compute_overlaps, first_lasting
from analysis.render import style
from analysis.render.tables import Cell as Shown, Column, Table, one_section
from roundabout.models.fluid.mean_field_dcqcn import (
    ProgressCallback,
    ScenarioError,
    SharedLinkScenario,
    compute_scenarios,
    find_refusal,
    ignore_progress,
)
from roundabout.models.fluid.mltcp import base_of
from roundabout.spec import TrialSpec
from roundabout.spec.experiment import Cell, Experiment

EQUAL_PERIOD_SHARE = 1.2
"""Jobs settle if the ratio of their last iteration times is at most this; others, such as 1:2, keep changing."""


@dataclass(frozen=True)
class Prediction:
    """The predicted figures of one cell.

    `share` is the first job's bandwidth over the second's in the first iteration. `speedup` belongs to the job that
    gains least: of its settled iteration, or of the median of its last half if jobs do not settle. `interleaved` is the
    iteration, counted from 1, from which jobs stay interleaved.
    """

    cell: Cell
    fair: SharedLinkScenario
    found: SharedLinkScenario

    @property
    def share(self) -> float | None:
        """Return the predicted `first-iteration bandwidth share j1/j2`."""
        return self.found.share

    @property
    def speedup(self) -> float:
        """Return the predicted `speedup of median iteration time` of a long run."""
        return min(typical_ms(self.fair, job) / typical_ms(self.found, job) for job in self.found.spans)

    @property
    def interleaved(self) -> int | None:
        """Return the predicted `iteration from which jobs stay interleaved`; None if the computed time shows none."""
        overlap = compute_overlaps({job: each[:, 1:] for job, each in self.found.spans.items()})
        more = overlap[-1:].repeat(LASTING_ITERATIONS if self.found.settled else 0)
        return first_lasting(np.concatenate([overlap, more]))


def typical_ms(scenario: SharedLinkScenario, job: str) -> float:
    """Return the iteration time of a job, ms, that the median of a long run approaches."""
    last = [scenario.settled_ms(each) for each in scenario.spans]
    if max(last) <= EQUAL_PERIOD_SHARE * min(last):
        return scenario.settled_ms(job)
    times = scenario.iteration_ms(job)
    return float(np.median(times[len(times) // 2 :]))


def split_by_support(cells: Iterable[Cell]) -> tuple[list[Cell], dict[str, list[Cell]]]:
    """Return the cells that the model covers, and the other cells by the reason for which they are not covered.

    Raises ScenarioError if it covers none.
    """
    known: list[Cell] = []
    left_out: dict[str, list[Cell]] = {}
    for cell in cells:
        refused = find_refusal(cell.spec) or find_refusal(fair_version(cell.spec))
        if refused:
            left_out.setdefault(refused.message, []).append(cell)
        else:
            known.append(cell)
    if not known:
        raise ScenarioError("; ".join(left_out))
    return known, left_out


def predict_cells(
    cells: Sequence[Cell], iterations: int, progress: ProgressCallback = ignore_progress
) -> list[Prediction]:
    """Return a prediction of each cell; `progress` is called meanwhile with the finished share, from 0 to 1.

    Raises ScenarioError if the model does not cover one.
    """
    specs = {_key(spec): spec for cell in cells for spec in (cell.spec, fair_version(cell.spec))}
    numbers = sorted({len(spec.jobs) for spec in specs.values()})
    found: dict[str, SharedLinkScenario] = {}
    for place, jobs in enumerate(numbers):  # those of one number of jobs at once
        alike = {key: spec for key, spec in specs.items() if len(spec.jobs) == jobs}

        def report_part(part: float, place: int = place) -> None:
            progress((place + part) / len(numbers))

        found |= zip(alike, compute_scenarios(list(alike.values()), iterations, progress=report_part), strict=True)
    return [Prediction(cell, found[_key(fair_version(cell.spec))], found[_key(cell.spec)]) for cell in cells]


def fair_version(spec: TrialSpec) -> TrialSpec:
    """Return the trial in which all jobs use the last job's transport; MLTCP is replaced by its base transport."""
    last = list(spec.jobs.values())[-1].transport
    last = last.model_copy(update={"name": base_of(last)})
    jobs = {name: job.model_copy(update={"transport": last}) for name, job in spec.jobs.items()}
    return spec.model_copy(update={"jobs": jobs})


def _key(spec: TrialSpec) -> str:
    return spec.model_dump_json()


def table(experiment: Experiment, found: Sequence[Prediction]) -> Table:
    """Return a row for each cell."""
    columns = (
        *(Column(factor.rpartition(".")[2], kind="words") for factor in experiment.factors),
        Column("share", ".2f"),
        Column("speed-up", ".2f"),
        Column("interleaved\nfrom", kind="words"),
        Column("fair, ms", ".0f"),
        Column("settled, ms", ".0f"),
        Column("queue, kB", ".0f"),
    )
    rows = (
        (
            *(Shown(str(each.cell.levels[factor])) for factor in experiment.factors),
            Shown(each.share),
            Shown(each.speedup),
            Shown(str(each.interleaved or ("never" if each.found.settled else "not yet"))),
            Shown(max(typical_ms(each.fair, job) for job in each.fair.spans)),
            Shown(max(typical_ms(each.found, job) for job in each.found.spans)),
            Shown(each.found.queue_bytes / 1e3),
        )
        for each in found
    )
    return Table(columns, one_section(rows), "Prediction of the mean field of DCQCN")


def figure(found: Sequence[Prediction]) -> Figure:
    """Draw share and speed-up over the first job's T.

    Each set of parameters is a line, and each choice of thresholds a column of panels.
    """
    ways = list(dict.fromkeys(_way(each) for each in found))
    sets = style.job_colours(list(dict.fromkeys(_set(each) for each in found)))
    drawn, axes = style.new_figure(2, len(ways), 6.2, sharex=True, sharey="row")
    for row, (what, name) in enumerate((("share", "hotnets/fig-1c/share"), ("speedup", "hotnets/fig-1d"))):
        value = float(find_printed(name).entry.figures)  # type: ignore[arg-type]  # both are figures
        for column, way in enumerate(ways):
            panel = axes[row * len(ways) + column]
            for set_, colour in sets.items():
                here = [each for each in found if (_way(each), _set(each)) == (way, set_)]
                points = sorted((_T(each), getattr(each, what)) for each in here)
                panel.plot(*np.array(points, float).T, color=colour, marker="o", markersize=3, label=set_)
            style.draw_level(panel, value, f"HotNets'22: {value:g}")
            if row == 0:
                panel.set_title(way)
            else:
                panel.set_xlabel("T of j1, us")
        axes[row * len(ways)].set_ylabel("j1's bandwidth over j2's" if row == 0 else "speed-up of the median")
    axes[0].legend(fontsize=8)
    return drawn


def _T(each: Prediction) -> float:  # noqa: N802 - the papers' name
    return float(next(iter(each.cell.spec.jobs.values())).transport.requested["T_us"])


def _set(each: Prediction) -> str:
    published = next(iter(each.cell.spec.jobs.values())).transport.published
    return published.name if published else "no set"


def _way(each: Prediction) -> str:
    ecn = next(iter(each.cell.spec.jobs.values())).transport.ecn
    if ecn is None:
        return "each set's own thresholds"
    return f"marks from {ecn.Kmin_bytes / 1e3:g} to {ecn.Kmax_bytes / 1e3:g} kB, Pmax {ecn.Pmax:g}"


def refusal_lines(left_out: Mapping[str, Sequence[Cell]]) -> list[str]:
    """Return a line of text for each reason, with the cells that could not be predicted for it."""
    return [f"left out {', '.join(CellId(each.levels).name for each in some)}: {why}" for why, some in left_out.items()]


def prediction_records(found: Sequence[Prediction], left_out: Mapping[str, Sequence[Cell]]) -> list[dict[str, Any]]:
    """Return the predictions, then the cells without one and the reasons, as JSON-compatible values."""
    others = ({"levels": cell.levels, "left_out": why} for why, cells in left_out.items() for cell in cells)
    return [*map(prediction_record, found), *others]


def prediction_record(found: Prediction) -> dict[str, Any]:
    """Return a prediction as JSON-compatible values: times in ms, rates in Gbit/s."""
    return {
        "levels": found.cell.levels,
        "share": found.share,
        "speedup": found.speedup,
        "interleaved": found.interleaved,
        "first_gbps": found.found.first_gbps,
        "iterations_ms": {job: found.found.iteration_ms(job).tolist() for job in found.found.spans},
        "fair_ms": {job: found.fair.iteration_ms(job).tolist() for job in found.fair.spans},
        "queue_bytes": found.found.queue_bytes,
        "marked_packets": dict(found.found.marks),
    }
