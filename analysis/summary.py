# SPDX-License-Identifier: Apache-2.0
"""summary.json: what the table on screen shows, for scripts to rely on. Its schema is docs/summary.schema.json.

All iterations of all valid repetitions count; what depends on when is named (`last_half`), not trimmed by eye.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from analysis.reading.cells import Measured, experiment_of, first_shares, matches, measured
from analysis.reading.loaded import is_sweep
from analysis.reading.marks import JobMarks, of_cells
from analysis.statistics.bootstrap import Array, Interval, interval95, resample
from analysis.studies.load_sweep.study import studies
from analysis.studies.load_sweep.summary import finite, sweeps
from roundabout.fluid import Limits, fluid_limits
from roundabout.spec import Expectation, What
from roundabout.store import Run
from roundabout.store.files import read_json

SCHEMA = 1
BASELINE = "fair"
"""The variant that speed-ups are over."""
SEED = 1

Figure = tuple[float, Interval | None]
"""A measured figure and its 95 % interval."""


def summarise(run: Run) -> dict[str, Any]:
    """The run's summary; the caller stores it. The same run gives the same summary."""
    cells = measured(run)
    marks = of_cells(run, cells)
    testbed = run.manifest["testbed"]
    experiment = experiment_of(run)
    parts = [
        _cell(cell, job, _baseline(cells, cell), own.get(job))
        for cell, own in zip(cells, marks, strict=True)
        for job in sorted(cell.times)
    ]
    return {
        "schema": SCHEMA,
        "experiment": experiment.name,
        "run": run.id,
        "testbed": {key: testbed[key] for key in ("kind", "emulated", "scale")},
        "cells": parts,
        "expectations": [_expectation(run, cells, expected) for expected in experiment.expect],
        "invalid_trials": [
            {"key": record["trial"], "reason": record["reason"]} for record in run.trials() if not record["valid"]
        ],
        **({"sweeps": sweeps(studies(run), parts)} if is_sweep(run) else {}),
    }


def stored_or_new(run: Run) -> dict[str, Any]:
    """The run's summary as it was stored; made anew where it was not, or before there were sweeps in it."""
    path = run.path / "summary.json"
    stored = read_json(path) if path.exists() else None
    return summarise(run) if stored is None or (is_sweep(run) and "sweeps" not in stored) else stored


def speedup(slow: Measured, fast: Measured, job: str | None) -> Figure | None:
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
    point = (_medians(_pooled(sides[0])) / _medians(_pooled(sides[1]))).min()
    medians = [resample(side, _medians, seed=SEED + place) for place, side in enumerate(sides)]
    replicates = (medians[0] / medians[1]).min(axis=1)
    return float(point), interval95(replicates, min(map(len, sides)))


def _cell(cell: Measured, job: str, baseline: Measured | None, marks: JobMarks | None) -> dict[str, Any]:
    repetitions = [times[:, None] for times in cell.repetitions(job)]
    limits = fluid_limits(cell.spec)[job]
    faster = speedup(baseline, cell, job) if baseline is not None and baseline is not cell else None
    return {
        "variant": cell.variant,
        "levels": cell.levels,
        "job": job,
        "repetitions": len(repetitions),
        "iterations": len(repetitions[0]),
        **_statistics(repetitions, "_ms"),
        f"speedup_over_{BASELINE}": None if faster is None else faster[0],
        f"speedup_over_{BASELINE}_ci95": None if faster is None else faster[1],
        "fluid": {name: finite(getattr(limits, name)) for name in ("alone_ms", "fair_ms", "interleaved_ms")},
        "last_half": {
            **_statistics(_last_half(repetitions), "_ms"),
            "gain_of_possible": gain_of_possible(cell, baseline, job, limits),
        },
        "marks_per_iteration": None if marks is None else _marks(marks),
    }


def _marks(marks: JobMarks) -> dict[str, Any]:
    return {
        **_statistics([each[:, None] for each in marks.known]),
        "bound": marks.bound,
        "unattributed_share": marks.unattributed_share,
        "counted_by": marks.counted_by,
    }


def _statistics(repetitions: list[Array], unit: str = "") -> dict[str, Any]:
    """Median, mean and 99th percentile of a job's iterations, with intervals; `unit` ends the names."""
    points = _describe(_pooled(repetitions))[0]
    replicates = resample(repetitions, _describe, seed=SEED)
    names = ("median", "mean", "p99")
    intervals = [interval95(replicates[:, place], len(repetitions)) for place in range(len(names))]
    return {
        **{f"{name}{unit}": float(point) for name, point in zip(names, points, strict=True)},
        **{f"{name}_ci95{unit}": interval for name, interval in zip(names, intervals, strict=True)},
    }


def gain_of_possible(cell: Measured, baseline: Measured | None, job: str, limits: Limits) -> float | None:
    """Which part of what interleaving could gain over the baseline was gained, by medians over the last half."""
    if baseline is None or baseline is cell or job not in baseline.times:
        return None
    fair, own = (float(np.median(np.concatenate(_last_half(each.repetitions(job))))) for each in (baseline, cell))
    possible = fair - limits.interleaved_ms
    return (fair - own) / possible if possible > 0 else None


def _baseline(cells: list[Measured], cell: Measured) -> Measured | None:
    """What `cell` is compared with: the baseline at the same levels of the other factors."""
    return next((each for each in cells if each.variant == BASELINE and each.surroundings == cell.surroundings), None)


def _expectation(run: Run, cells: list[Measured], expected: Expectation) -> dict[str, Any]:
    figure = MEASURES[expected.what](run, cells, expected)
    return {
        "what": expected.what.value,
        "of": expected.of,
        "over": expected.over,
        "job": expected.job,
        "at": expected.at,
        "paper": expected.paper,
        "tolerance": expected.tolerance,
        "measured": None if figure is None else figure[0],
        "ci95": None if figure is None else figure[1],
        "verdict": verdict(expected, figure),
    }


def verdict(expected: Expectation, figure: Figure | None) -> str:
    """Whether the figure itself lies within the paper's plus or minus the tolerance; its interval is only shown."""
    if figure is None:
        return "not measured"
    return "inside" if abs(figure[0] - expected.paper) <= expected.tolerance else "outside"


def _expected_speedup(_run: Run, cells: list[Measured], expected: Expectation) -> Figure | None:
    fast = _find(cells, expected.of, expected)
    slow = _find(cells, expected.over, expected)
    return None if fast is None or slow is None else speedup(slow, fast, expected.job)


def _expected_share(run: Run, cells: list[Measured], expected: Expectation) -> Figure | None:
    cell = _find(cells, expected.of, expected)
    shares = first_shares(run, cell, "j1", "j2") if cell is not None else []
    if not shares:
        return None
    replicates = resample([np.array([[share]]) for share in shares], _means, seed=SEED)
    return float(np.mean(shares)), interval95(replicates, len(shares))


MEASURES: dict[What, Callable[[Run, list[Measured], Expectation], Figure | None]] = {
    What.SPEEDUP: _expected_speedup,
    What.SHARE: _expected_share,
}


def _find(cells: list[Measured], variant: str | None, expected: Expectation) -> Measured | None:
    return next((cell for cell in cells if cell.variant == variant and matches(cell.levels, expected.at)), None)


def _pooled(repetitions: list[Array]) -> Array:
    """All repetitions as one, shape (1, iterations, series): what a resample looks like."""
    return np.concatenate(repetitions)[None]


def _last_half(repetitions: list[Array]) -> list[Array]:
    return [times[len(times) // 2 :] for times in repetitions]


def _medians(samples: Array) -> Array:
    return np.asarray(np.median(samples, axis=1))


def _means(samples: Array) -> Array:
    return np.asarray(samples.mean(axis=(1, 2)))


def _describe(samples: Array) -> Array:
    """Median, mean and 99th percentile of one series: shape (draws, iterations, 1) to (draws, 3)."""
    series = samples[..., 0]
    median, p99 = np.quantile(series, [0.5, 0.99], axis=1)
    return np.stack([median, series.mean(axis=1), p99], axis=1)
