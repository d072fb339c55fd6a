# SPDX-License-Identifier: Apache-2.0
"""Each job's sweep over loads, with its fit and its congestion point, or the reason why there is none."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

import numpy as np

from analysis.papers.salamy import FITS, LINK_GBPS, MODELS, OBSERVED, SETTINGS, Observed, Printed
from analysis.reading.cached_run import cached_per_run
from analysis.reading.cross_traffic.load_sweep_data import JobUnderLoad, jobs_under_load
from analysis.statistics.degradation.congestion_point import CongestionPoint, congestion_point
from analysis.statistics.degradation.demand import spare_capacity_gbps
from analysis.statistics.degradation.fit import EXTRA_LEVELS, Fit, fit_model
from analysis.statistics.degradation.model_choice import Candidate, Choice, candidates, choose
from analysis.statistics.degradation.sweep import DegradationError, Sweep
from analysis.statistics.intervals import Array
from roundabout.store import Run

Found = TypeVar("Found")

POINTS = 48
"""Number of points of the flow-level model's line in figures."""


@dataclass(frozen=True, eq=False)
class SweepFit:
    """A sweep with its congestion point and fit, which are None if they could not be computed."""

    sweep: Sweep
    data_mb: float
    congestion: CongestionPoint | None
    fit: Fit | None

    @property
    def spare_gbps(self) -> float | None:
        """Return the mean of available less needed bandwidth at loads that saturate the link, Gbit/s (Table 3.8)."""
        if self.congestion is None:
            return None
        return spare_capacity_gbps(self.sweep, self.data_mb, self.congestion.load_gbps)


@dataclass(frozen=True, eq=False)
class JobSweep:
    """One job under one kind of cross traffic. A missing part is None, and its `why_no_...` gives the reason."""

    loaded: JobUnderLoad
    name: str
    sweep: Sweep | None
    why_no_sweep: str
    choice: Choice | None
    why_no_fit: str
    congestion: CongestionPoint | None
    why_no_congestion: str

    @property
    def fit(self) -> Fit | None:
        """Return the chosen fit."""
        return self.choice.fit if self.choice else None

    @property
    def observed(self) -> Observed | None:
        """Return Salamy's figures for the same model, traffic, transport and number of workers; None without any."""
        own = (self.loaded.model, self.loaded.traffic, self.loaded.transport, len(self.loaded.job.workers))
        settings = ((each, each.setting) for each in OBSERVED)
        return next(
            (each for each, at in settings if own == (each.model, at.traffic, at.transport, at.workers)),
            None,
        )

    @property
    def printed(self) -> Printed | None:
        """Return the fit that Salamy prints for the same model, traffic and transport; None if there is none."""
        own = (self.loaded.model, self.loaded.traffic, self.loaded.transport)
        return next((each for each in FITS if own == (each.model, each.traffic, each.transport)), None)

    @property
    def curve(self) -> SweepFit | None:
        """Return the sweep with its congestion point and its chosen fit; None without a sweep."""
        return SweepFit(self.sweep, self.loaded.data_mb, self.congestion, self.fit) if self.sweep else None

    @cached_property
    def as_printed(self) -> SweepFit | None:
        """Return the sweep evaluated by Salamy's own choices, only for comparison with Salamy's figures.

        The link's capacity is `LINK_GBPS`, its rate with headers. The linear portion before the congestion point may
        have any slope, and the fit has the printed fit's n and C. None if Salamy printed nothing about this sweep.
        """
        if self.sweep is None or (self.observed is None and self.printed is None):
            return None
        try:
            sweep = replace(self.sweep, link_gbps=LINK_GBPS)
        except DegradationError:
            return None
        congestion, _ = _or_reason(lambda: congestion_point(sweep, nearly_flat=np.inf))
        printed = self.printed
        again = _or_reason(lambda: fit_model(sweep, n=printed.n, capacity_gbps=LINK_GBPS))[0] if printed else None
        return SweepFit(sweep, self.loaded.data_mb, congestion, again)

    @property
    def fluid_line(self) -> tuple[Array, Array]:
        """Return evenly spaced loads up to the heaviest measured one, Gbit/s, and the flow-level model's times, s."""
        if self.sweep is None:
            return np.empty(0), np.empty(0)
        loads_gbps = np.linspace(0, self.sweep.loads_gbps[-1], POINTS)
        return loads_gbps, self.loaded.fluid_line(loads_gbps)


@cached_per_run
def job_sweeps(run: Run) -> list[JobSweep]:
    """Return every sweep of the run, in Salamy's order; sweeps that Salamy does not have come last."""
    loaded = sorted(jobs_under_load(run), key=_rank)
    return [_job_sweep(each, name) for each, name in zip(loaded, sweep_names(loaded), strict=True)]


def affordable_candidates(sweep: Sweep) -> list[Candidate]:
    """Return the models that so many levels can distinguish; all of them if there are too few levels for any."""
    free = len(sweep.levels) - 2 - EXTRA_LEVELS
    among = candidates(sweep.link_gbps)
    return [each for each in among if (each.n is None) + (each.capacity_gbps is None) <= free] or among


def _rank(loaded: JobUnderLoad) -> tuple[int, ...]:
    places = (
        ([each.traffic for each in SETTINGS], loaded.traffic),
        (["RDMA", "TCP"], loaded.transport),
        (list(MODELS), loaded.model),
    )
    return tuple(known.index(name) if name in known else len(known) for known, name in places)


def sweep_names(loaded: Sequence[JobUnderLoad]) -> list[str]:
    """Return each sweep's name in reports.

    A name has model, traffic and transport, and, if several are equal, the first other property that distinguishes
    them.
    """
    by_name = defaultdict[str, list[JobUnderLoad]](list)
    for each in loaded:
        by_name[each.name].append(each)
    return [f"{each.name}{_distinguish(by_name[each.name])(each)}" for each in loaded]


def _distinguish(alike: Sequence[JobUnderLoad]) -> Callable[[JobUnderLoad], str]:
    """Return the addition to names that occur twice: one of these levels, or cell and job."""
    ways: tuple[Callable[[JobUnderLoad], str], ...] = (
        lambda _: "",
        lambda each: f", {each.variant}",
        lambda each: f", {each.job_name}",
        lambda each: f", {each.setting.other_levels}",
        lambda each: f", {each.place}",
    )
    return next(
        (way for way in ways if len({*map(way, alike)}) == len(alike)), lambda each: f", {each.place}, {each.job_name}"
    )


def _job_sweep(loaded: JobUnderLoad, name: str) -> JobSweep:
    try:
        sweep = loaded.sweep
    except DegradationError as error:
        return JobSweep(loaded, name, None, str(error), None, str(error), None, str(error))
    choice, why_no_fit = _or_reason(lambda: choose(sweep, affordable_candidates(sweep)))
    congestion, why_no_congestion = _or_reason(lambda: congestion_point(sweep))
    return JobSweep(loaded, name, sweep, "", choice, why_no_fit, congestion, why_no_congestion)


def _or_reason(find: Callable[[], Found]) -> tuple[Found | None, str]:
    try:
        return find(), ""
    except DegradationError as error:
        return None, str(error)
