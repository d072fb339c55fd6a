# SPDX-License-Identifier: Apache-2.0
"""Sweeps over loads of cross traffic, and models fitted to them."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from analysis.dataframes.frames import frame_of_rows
from analysis.dataframes.sources import Results, summary_of
from analysis.reading.cross_traffic.load_sweep_data import jobs_under_load
from analysis.reading.cross_traffic.load_sweeps import affordable_candidates, sweep_names
from analysis.statistics.degradation.fit import Estimate, Fit, band_s, fit_model, predict
from analysis.statistics.degradation.model_choice import Choice, choose
from analysis.statistics.degradation.sweep import DegradationError, Level, Sweep
from analysis.statistics.intervals import Array, mean_of, quantile_of_t, repeated_looks
from analysis.studies.load_sweep.study import LevelResult, Results as LoadSweepResults
from roundabout.core.errors import UsageError
from roundabout.store import Run

if TYPE_CHECKING:
    import pandas as pd

COEFFICIENTS = ("A", "B", "n", "C")
COLUMNS = {
    **dict.fromkeys(("sweep", "variant", "job"), pa.string()),
    **dict.fromkeys(("link_gbps", "load_gbps"), pa.float64()),
    "repetitions": pa.int64(),
    **dict.fromkeys(("mean_s", "mean_s_low", "mean_s_high", "scatter_s"), pa.float64()),
}


@dataclass(frozen=True, eq=False)
class Degradation:
    """The model t = A exp(B / (C - BW)^n) of iteration time t against load BW, fitted to one sweep."""

    fit: Fit
    choice: Choice | None

    @property
    def coefficients(self) -> "pd.DataFrame":
        """Return A, B, n and C, one row each, with the columns value, low, high and unit.

        `low` and `high` are the ends of the 95 % interval; an unbounded end is 0 or infinite. Both are nan for a
        coefficient that is held in every fit.
        """
        estimates = (self.fit.a_s, self.fit.b, self.fit.n, self.fit.capacity_gbps)
        units = ("s", "(Gbit/s)^n", "", "Gbit/s")
        rows = [
            {"coefficient": name, **_ends(each), "unit": unit}
            for name, each, unit in zip(COEFFICIENTS, estimates, units, strict=True)
        ]
        floats = dict.fromkeys(("value", "low", "high"), pa.float64())
        return frame_of_rows(rows, {"coefficient": pa.string(), **floats, "unit": pa.string()}).set_index("coefficient")

    @property
    def candidates(self) -> "pd.DataFrame":
        """Return the models among which this one was chosen, best first; without rows if coefficients were held.

        Columns: n and capacity_gbps (nan where fitted); miss, the typical error of a level that was left out of the
        fit, as a share; chosen, the share of redrawn sweeps that choose the model (nan with fewer than four
        repetitions).
        """
        misses = self.choice.misses if self.choice else {}
        shares = (self.choice.shares if self.choice else None) or {}
        rows = ({**vars(each), "miss": miss, "chosen": shares.get(each)} for each, miss in misses.items())
        return frame_of_rows(rows, dict.fromkeys(("n", "capacity_gbps", "miss", "chosen"), pa.float64()))

    @property
    def capacity_gbps(self) -> float:
        """Return C, Gbit/s: the model has no times at loads from there on."""
        return self.fit.capacity_gbps.value

    @property
    def r_squared(self) -> float:
        """Return the share of the variation of log t over the levels that the model explains."""
        return self.fit.r_squared.log

    def forecast(self, loads_gbps: Sequence[float]) -> "pd.DataFrame":
        """Return the iteration times that the model predicts at loads, one row each.

        Columns: load_gbps, time_s, time_s_low and time_s_high (between which 95 % of measured means lie), and
        extrapolates (True outside the measured loads, where the model's form determines the forecast). Raises
        DegradationError for a load below 0 or from C on.
        """
        found = [predict(self.fit, float(load)) for load in loads_gbps]
        rows = [
            {
                "load_gbps": each.load_gbps,
                "time_s": each.time_s,
                "time_s_low": each.ci95[0],
                "time_s_high": each.ci95[1],
                "extrapolates": each.extrapolates,
            }
            for each in found
        ]
        floats = dict.fromkeys(("load_gbps", "time_s", "time_s_low", "time_s_high"), pa.float64())
        return frame_of_rows(rows, {**floats, "extrapolates": pa.bool_()})

    def times_s(self, loads_gbps: Array) -> Array:
        """Return the curve's iteration times, s, at loads below C, Gbit/s; shape (loads,)."""
        return self.fit.times_s(loads_gbps)

    def band_s(self, loads_gbps: Array) -> tuple[Array, Array]:
        """Return the lower and upper ends, s, of the curve's 95 % band at loads below C, Gbit/s; shapes (loads,)."""
        return band_s(self.fit, loads_gbps)


def sweeps(results: Results) -> "pd.DataFrame":
    """Return the load sweeps of a run or of a published run, one row for each level of load.

    Columns: sweep (name: model, kind of cross traffic, transport), variant, job, link_gbps (payload that the bottleneck
    carries), load_gbps (payload of cross traffic that was sent), repetitions; mean_s (iteration time, s), mean_s_low
    and mean_s_high (its 95 % interval, nan with fewer than four repetitions) and scatter_s (standard deviation of the
    repetitions' means, s; nan with one repetition, or if a published level has no interval). Published figures have six
    digits. Raises UsageError if the run varies no load.
    """
    rows = list(_measured(results) if isinstance(results, Run) else _published(summary_of(results)))
    if not rows:
        raise UsageError(
            "the run has no load sweep", "take one of an experiment that varies `load_gbps`, such as websearch-bert"
        )
    return frame_of_rows(rows, COLUMNS).sort_values(["sweep", "load_gbps"], kind="stable", ignore_index=True)


def fit_degradation(sweep: "pd.DataFrame", held: Mapping[str, float] | None = None) -> Degradation:
    """Fit t = A exp(B / (C - BW)^n) to one sweep: rows of `sweeps`, or a DataFrame of one's own with its columns.

    Required columns: link_gbps, load_gbps, repetitions, mean_s and scatter_s. Without `held`, the model is chosen that
    best predicts a level left out, among those with Salamy's n or a fitted n at C = link_gbps, and with Salamy's n at a
    fitted C; intervals cover that choice. `held` gives `n` and `capacity_gbps` values that are not fitted; with an
    empty one all four coefficients are fitted (Salamy 2022, equation 3.7). Raises UsageError for other names in `held`
    and for rows of several sweeps, and DegradationError for too few levels.
    """
    if held is not None and (unknown := held.keys() - {"n", "capacity_gbps"}):
        raise UsageError(f"coefficient {min(unknown)} cannot be held", "hold n, capacity_gbps, both, or none")
    measured = _sweep(sweep)
    if held is None:
        choice = choose(measured, affordable_candidates(measured))
        return Degradation(choice.fit, choice)
    return Degradation(fit_model(measured, n=held.get("n"), capacity_gbps=held.get("capacity_gbps")), None)


def _measured(run: Run) -> Iterator[dict[str, Any]]:
    loaded = jobs_under_load(run)
    for each, name in zip(loaded, sweep_names(loaded), strict=True):
        for repetitions in each.levels.values():
            load_gbps = float(np.mean([load for load, _ in repetitions]))
            figures = [float(times_s.mean()) for _, times_s in repetitions]
            mean_s, ends = mean_of(figures)
            yield {
                "sweep": name,
                "variant": each.variant,
                "job": each.job_name,
                "link_gbps": each.link_gbps,
                **_level(load_gbps, len(figures), mean_s, ends),
                "scatter_s": float(np.std(figures, ddof=1)) if len(figures) > 1 else None,
            }


def _published(summary: Any) -> Iterator[dict[str, Any]]:
    if not isinstance(summary, LoadSweepResults):
        return
    with repeated_looks(summary.looks):
        for sweep in summary.sweeps:
            for level in sweep.levels:
                yield {
                    "sweep": sweep.name,
                    "variant": sweep.variant,
                    "job": sweep.job,
                    "link_gbps": sweep.link_gbps,
                    **_level(level.payload_gbps, level.repetitions, level.mean_s, level.mean_ci95_s),
                    "scatter_s": _scatter_s(level),
                }


def _level(load_gbps: float, repetitions: int, mean_s: float, ends: tuple[float, float] | None) -> dict[str, Any]:
    low, high = ends or (None, None)
    return {
        "load_gbps": load_gbps,
        "repetitions": repetitions,
        "mean_s": mean_s,
        "mean_s_low": low,
        "mean_s_high": high,
    }


def _scatter_s(level: LevelResult) -> float | None:
    """Return the standard deviation of the repetitions' means, from the width of their mean's interval."""
    if level.mean_ci95_s is None:
        return None
    high_s = level.mean_ci95_s[1] / (1 + (level.disturbance or 0.0))  # as before `widen`
    return (high_s - level.mean_s) * math.sqrt(level.repetitions) / quantile_of_t(level.repetitions)


def _sweep(sweep: "pd.DataFrame") -> Sweep:
    """Return the sweep of these rows. Fits depend on the mean, the scatter and the number of each level's means."""
    missing = {"link_gbps", "load_gbps", "repetitions", "mean_s", "scatter_s"} - {*sweep.columns}
    if missing:
        raise DegradationError(f"the sweep has no column {min(missing)}", "take rows of `sweeps(run)`")
    if "sweep" in sweep and sweep["sweep"].nunique() != 1:
        raise UsageError(
            f"found rows of {sweep['sweep'].nunique()} sweeps, expected those of one",
            "select one by the column `sweep`",
        )
    ordered = sweep.sort_values("load_gbps")
    levels = tuple(
        Level(float(row.load_gbps), tuple(np.array([mean]) for mean in _means_s(row))) for row in ordered.itertuples()
    )
    return Sweep(levels, float(ordered["link_gbps"].iloc[0]))


def _means_s(row: Any) -> Array:
    """Return as many means as there were repetitions, with the level's mean and scatter."""
    count = int(row.repetitions)
    if count == 1 or math.isnan(row.scatter_s):
        return np.array([row.mean_s])
    apart = np.linspace(-1, 1, count)
    return np.asarray(row.mean_s + row.scatter_s * apart / np.std(apart, ddof=1))


def _ends(estimate: Estimate) -> dict[str, float | None]:
    low, high = estimate.ci95 or (None, None)
    return {"value": estimate.value, "low": low, "high": high}
