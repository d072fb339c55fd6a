# SPDX-License-Identifier: Apache-2.0
"""Iteration time against load, and without load."""

from analysis.papers.salamy import HEAVY_GBPS, LIGHT_GBPS
from analysis.quantities import Case, Curve, QuantityRequest, quantity
from analysis.quantities.load_sweeps.sweep_levels import (
    each_sweep,
    level_near,
    levels,
    sweep_properties,
    unloaded_level,
)
from analysis.reading.cross_traffic.load_sweeps import JobSweep
from analysis.statistics.degradation.demand import required_gbps
from analysis.statistics.intervals import Measured, transform


@quantity("iteration time under load", unit="s", digits=3, curve=True)
def curve(request: QuantityRequest) -> list[Curve]:
    """Return the mean iteration time (s) by load of cross traffic (payload, Gbit/s), one curve for each sweep."""
    curves = []
    for study in request.sweeps:
        points = [(level.load_gbps, level.mean_s) for level in levels(study)]
        curves.append(Curve.from_figures(study.name, points, sweep_properties(study)))
    return curves


@quantity("iteration time without load", unit="s", digits=3, by="model")
def without(request: QuantityRequest) -> list[Case]:
    """Return the mean iteration time without cross traffic."""
    return each_sweep(request, _alone_s)


@quantity("iteration time at 30 % load", unit="s", digits=3, by="model")
def light(request: QuantityRequest) -> list[Case]:
    """Return the mean iteration time near a load of 8 Gbit/s."""
    return each_sweep(request, lambda study: _at(study, LIGHT_GBPS))


@quantity("iteration time at 80 % load", unit="s", digits=3, by="model")
def heavy(request: QuantityRequest) -> list[Case]:
    """Return the mean iteration time near a load of 20 Gbit/s."""
    return each_sweep(request, lambda study: _at(study, HEAVY_GBPS))


@quantity("bandwidth needed without load", unit="Gbit/s", by="model")
def needed(request: QuantityRequest) -> list[Case]:
    """Return the data of an iteration over the iteration time without cross traffic."""

    def of(study: JobSweep) -> Measured | None:
        time_s = _alone_s(study)
        if time_s is None:
            return None
        return transform(lambda each_s: float(required_gbps(study.loaded.data_mb, each_s)), time_s)

    return each_sweep(request, of)


def _alone_s(study: JobSweep) -> Measured | None:
    level = unloaded_level(study)
    return level.mean_s if level else None


def _at(study: JobSweep, load_gbps: float) -> Measured | None:
    level = level_near(study, load_gbps)
    return level.mean_s if level else None
