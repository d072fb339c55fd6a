# SPDX-License-Identifier: Apache-2.0
"""The part of summary.json that is about sweeps: plain numbers of every study, the thesis' beside them."""

import math
from collections.abc import Sequence
from typing import Any

from analysis.papers.salamy import LINK_GBPS, MODELS, Observed
from analysis.reading.loaded import LOAD
from analysis.statistics.bootstrap import Interval
from analysis.statistics.degradation.choice import Choice
from analysis.statistics.degradation.congestion import CongestionPoint
from analysis.statistics.degradation.demand import required_gbps
from analysis.statistics.degradation.fit import Estimate, Fit
from analysis.studies.load_sweep.study import Study


def sweeps(found: Sequence[Study], cells: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """One entry a job and kind of cross traffic; `cells` are the summary's, whose statistics the levels repeat in s."""
    return [_entry(study, cells) for study in found]


def finite(value: float) -> float | None:
    """JSON knows no infinity: None stands for it."""
    return float(value) if math.isfinite(value) else None


def _entry(study: Study, cells: Sequence[dict[str, Any]]) -> dict[str, Any]:
    loaded = study.loaded
    return {
        "name": study.name,
        "variant": loaded.variant,
        "setting": loaded.setting,
        "job": loaded.job_name,
        "profile": loaded.job.profile.name,
        "model": loaded.model,
        "workers": len(loaded.job.workers),
        "traffic": loaded.traffic,
        "transport": loaded.transport,
        "link_gbps": loaded.link_gbps,
        "data_mb": loaded.data_mb,
        "levels": _levels(study, cells),
        "fit": None if study.choice is None else {**_fit(study.choice.fit), "chosen_by": _misses(study.choice)},
        "why_no_fit": study.why_no_fit or None,
        "congestion": None if study.congestion is None else _congestion(study.congestion, loaded.data_mb),
        "why_no_congestion": study.why_no_congestion or None,
        "most_congested": _most_congested(study),
        "spare_gbps": study.spare_gbps,
        "paper": _paper(study),
    }


def _levels(study: Study, cells: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """In the order of the loads asked for."""
    loaded = study.loaded
    by_load = {
        float(cell["levels"][LOAD]): cell
        for cell in cells
        if cell["job"] == loaded.job_name and cell["levels"] == loaded.setting | {LOAD: cell["levels"][LOAD]}
    }
    alone = by_load.get(0.0)
    return [
        _level(by_load[asked], asked, [load for load, _ in repetitions], alone, study)
        for asked, repetitions in sorted(loaded.levels.items())
    ]


def _level(
    cell: dict[str, Any], asked_gbps: float, loads_gbps: Sequence[float], alone: dict[str, Any] | None, study: Study
) -> dict[str, Any]:
    wire_gbps = math.fsum(loads_gbps) / len(loads_gbps)
    return {
        "asked_gbps": asked_gbps,
        "wire_gbps": wire_gbps,
        "repetitions": cell["repetitions"],
        "iterations": cell["iterations"],
        "mean_s": cell["mean_ms"] / 1e3,
        "mean_ci95_s": _in_seconds(cell["mean_ci95_ms"]),
        "p99_s": cell["p99_ms"] / 1e3,
        "p99_ci95_s": _in_seconds(cell["p99_ci95_ms"]),
        "times_no_load": None if alone is None else cell["mean_ms"] / alone["mean_ms"],
        "fluid_s": finite(study.loaded.fluid_s(wire_gbps)),
    }


def _fit(fit: Fit) -> dict[str, Any]:
    return {
        "n": _estimate(fit.n),
        "a_s": _estimate(fit.a_s),
        "b": _estimate(fit.b),
        "capacity_gbps": _estimate(fit.capacity_gbps),
        "r_squared": {"log": fit.r_squared.log, "linear": fit.r_squared.linear},
    }


def _misses(choice: Choice) -> list[dict[str, Any]]:
    return [
        {"n": each.n, "capacity_gbps": each.capacity_gbps, "miss": finite(miss)} for each, miss in choice.misses.items()
    ]


def _congestion(point: CongestionPoint, theory_mb: float) -> dict[str, Any]:
    return {
        "load_gbps": point.load_gbps,
        "time_s": point.time_s,
        "crossing_gbps": point.crossing_gbps,
        "crossing_ci95_gbps": point.crossing_gbps_ci95,
        "demand_mb": point.demand_mb,
        "demand_ci95_mb": point.demand_mb_ci95,
        "theory_mb": theory_mb,
        "above_theory_percent": _above(point.demand_mb, theory_mb),
    }


def _most_congested(study: Study) -> dict[str, Any] | None:
    if study.sweep is None:
        return None
    available, delta = float(study.sweep.available_gbps[-1]), float(study.deltas_gbps[-1])
    return {
        "load_gbps": float(study.sweep.loads_gbps[-1]),
        "required_gbps": float(required_gbps(study.loaded.data_mb, study.sweep.means_s[-1])),
        "available_gbps": available,
        "delta_gbps": delta,
        "delta_percent": 100 * delta / available,
    }


def _paper(study: Study) -> dict[str, Any] | None:
    """What the thesis printed for the same model, traffic and transport."""
    observed, printed, again = study.observed, study.printed, study.fit_as_printed
    if observed is None and printed is None:
        return None
    return {
        "observed": None if observed is None else _observed(observed),
        "fit": None
        if printed is None
        else {"source": printed.source, "a_s": printed.a_s, "b": printed.b, "n": printed.n, "capacity_gbps": LINK_GBPS},
        "ours_with_its_n": None if again is None else _fit(again),
    }


def _observed(observed: Observed) -> dict[str, Any]:
    theory_mb = MODELS[observed.model].data_mb(observed.setting.workers)
    delta = observed.worst_available_gbps - observed.worst_required_gbps
    return {
        "figure": observed.setting.figure,
        "configuration": observed.setting.configuration,
        "congestion_gbps": observed.congestion_gbps,
        "demand_mb": observed.congestion_mb,
        "theory_mb": theory_mb,
        "above_theory_percent": _above(observed.congestion_mb, theory_mb),
        "most_congested": {
            "required_gbps": observed.worst_required_gbps,
            "available_gbps": observed.worst_available_gbps,
            "delta_gbps": delta,
            "delta_percent": 100 * delta / observed.worst_available_gbps,
        },
        "spare_gbps": observed.spare_gbps,
    }


def _estimate(estimate: Estimate) -> dict[str, Any]:
    """An end that nothing bounds is null."""
    ends = None if estimate.ci95 is None else [finite(end) for end in estimate.ci95]
    return {"value": finite(estimate.value), "ci95": ends}


def _in_seconds(interval: Interval | None) -> list[float] | None:
    return None if interval is None else [end / 1e3 for end in interval]


def _above(demand_mb: float, theory_mb: float) -> float:
    return 100 * (demand_mb / theory_mb - 1)
