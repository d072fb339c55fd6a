# SPDX-License-Identifier: Apache-2.0
"""summary.json: what the table on screen shows, for scripts to rely on. Its schema is docs/summary.schema.json.

All iterations of all valid repetitions count; what depends on when is named (`last_half`), not trimmed by eye.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from analysis.quantities import Reading
from analysis.reading.cells import SEED, Measured, pooled, speedup
from analysis.reading.loaded import is_sweep
from analysis.reading.marks import JobMarks, of_cells
from analysis.statistics.bootstrap import Array, interval95, resample
from analysis.studies.load_sweep.summary import finite, sweeps
from analysis.verdicts import judge
from roundabout.fluid import Limits, fluid_limits
from roundabout.store import Run
from roundabout.store.files import read_json

SCHEMA = 2
"""2: every kind of expectation, the claims of papers among them, with what agreement is worth."""
BASELINE = "fair"
"""The variant that speed-ups are over."""


def summarise(run: Run) -> dict[str, Any]:
    """The run's summary; the caller stores it. The same run gives the same summary."""
    reading = Reading(run)
    cells = reading.cells
    marks = of_cells(run, cells)
    testbed = run.manifest["testbed"]
    parts = [
        _cell(cell, job, _baseline(cells, cell), own.get(job))
        for cell, own in zip(cells, marks, strict=True)
        for job in sorted(cell.times)
    ]
    return {
        "schema": SCHEMA,
        "experiment": reading.experiment.name,
        "run": run.id,
        "testbed": {key: testbed[key] for key in ("kind", "emulated", "scale", "fidelity") if key in testbed},
        "cells": parts,
        "expectations": [verdict.record() for verdict in judge(reading)],
        "invalid_trials": [
            {"key": record["trial"], "reason": record["reason"]} for record in run.trials() if not record["valid"]
        ],
        **({"sweeps": sweeps(reading.sweeps, parts)} if is_sweep(run) else {}),
    }


def stored_or_new(run: Run) -> dict[str, Any]:
    """The run's summary as it was stored; made anew where it was not, or by another schema."""
    path = run.path / "summary.json"
    stored = read_json(path) if path.exists() else None
    return summarise(run) if stored is None or stored["schema"] != SCHEMA else stored


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
    points = _describe(pooled(repetitions))[0]
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


def _baseline(cells: Sequence[Measured], cell: Measured) -> Measured | None:
    """What `cell` is compared with: the baseline at the same levels of the other factors."""
    return next((each for each in cells if each.variant == BASELINE and each.surroundings == cell.surroundings), None)


def _last_half(repetitions: list[Array]) -> list[Array]:
    return [times[len(times) // 2 :] for times in repetitions]


def _describe(samples: Array) -> Array:
    """Median, mean and 99th percentile of one series: shape (draws, iterations, 1) to (draws, 3)."""
    series = samples[..., 0]
    median, p99 = np.quantile(series, [0.5, 0.99], axis=1)
    return np.stack([median, series.mean(axis=1), p99], axis=1)
