# SPDX-License-Identifier: Apache-2.0
"""Quantities of what jobs send when they are alone, and of their circles.

Times are measured. Phases and their rates are those of the profile that is played, so such a figure is by construction.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

import numpy as np

from analysis.quantities import CachedReading, Case, QuantityRequest, quantity
from analysis.quantities.time_shifts import communication_times
from analysis.reading.data import Series, by_iteration
from analysis.statistics.intervals import estimate
from roundabout.models.cassini import Circle, Rotations, best_rotations, circle_of

LIGHTER = 0.75
"""Largest share of the heaviest phase's rate at which a phase counts as lighter. Rates in papers' figures differ by
half or more; a share near 1 would count phases of equal rates.
"""


@quantity("parts of an iteration alone", unit="ms", digits=1, by="part")
def parts(request: QuantityRequest) -> list[Case]:
    """Return the mean times of computing and of communicating in an iteration of a job alone."""
    return [
        replace(case, name=part, properties={**case.properties, "part": part})
        for part in ("computing", "communicating")
        for case in _means(request, part)
    ]


@quantity("arc of computing", unit="degrees", digits=1)
def arc(request: QuantityRequest) -> list[Case]:
    """Return the part of the circle on which a job computes; the circle is an iteration of 360 degrees."""
    return _means(request, "arc")


@quantity("phases of communication", digits=0)
def phases(request: QuantityRequest) -> list[Case]:
    """Return the number of arcs on the circle of the profile that a job plays."""
    return _of_circles(request, lambda circle: len(circle.arcs))


@quantity("lighter phases of communication", digits=0)
def lighter(request: QuantityRequest) -> list[Case]:
    """Return the number of arcs with at most 0.75 of the heaviest one's rate, on the circle that a job plays."""

    def count(circle: Circle) -> int:
        most_gbps = LIGHTER * max((each.gbps for each in circle.arcs), default=0.0)
        return sum(each.gbps <= most_gbps for each in circle.arcs)

    return _of_circles(request, count)


@quantity("bandwidth of communication", unit="Gbit/s", digits=1)
def bandwidth(request: QuantityRequest) -> list[Case]:
    """Return the mean rate over the arcs of the circle that a job plays, payload of one worker."""

    def mean_gbps(circle: Circle) -> float:
        lengths = [each.end_ms - each.begin_ms for each in circle.arcs]
        return float(np.average([each.gbps for each in circle.arcs], weights=lengths)) if lengths else 0.0

    return _of_circles(request, mean_gbps)


@quantity("perimeter of the unified circle", unit="ms", digits=1, by="variant")
def perimeter(request: QuantityRequest) -> list[Case]:
    """Return the perimeter of the circle on which all jobs of a link fit a whole number of times."""
    found = ((cell, request.reading.cached(_rotations).get(cell.id.name)) for cell in request.cells)
    cases = (Case(request.name_of(cell), own.unified.perimeter_ms, None, cell.properties) for cell, own in found if own)
    return [each.exactly for each in cases]


@quantity("rotation on the unified circle", unit="degrees", digits=1)
def rotation(request: QuantityRequest) -> list[Case]:
    """Return by how much a job is rotated on its link's unified circle; the first job stays where it is."""
    cases = []
    for cell in request.cells:
        own = request.reading.cached(_rotations).get(cell.id.name)
        if own:
            degrees = dict(zip((circle.job for circle in own.unified.circles), own.degrees, strict=True))
            cases += [request.case(cell, job, degrees[job]).exactly for job in request.jobs(cell) if job in degrees]
    return cases


def _of_circles(request: QuantityRequest, figure: Callable[[Circle], float]) -> list[Case]:
    """Return a figure of the circle of each job's profile; it is exact."""
    return [
        request.case(cell, job, float(figure(circle_of(cell.spec.jobs[job].profile, job)))).exactly
        for cell in request.cells
        for job in request.jobs(cell)
    ]


def _means(request: QuantityRequest, part: str) -> list[Case]:
    """Return the mean of an expression over iterations, by job, with an interval over repetitions."""
    series = request.reading.cached(_PARTS[part])
    return request.each_repetition(series, partial(estimate, statistic=np.mean))


def _rotations(reading: CachedReading) -> Mapping[str, Rotations]:
    """Return the best rotations on the only link that a cell's jobs share, by the cell's name."""
    found = {cell.id.name: best_rotations(cell.spec) for cell in reading.cells if cell.spec.has_concurrent_jobs}
    return {name: next(iter(links.values())) for name, links in found.items() if len(links) == 1}


def _computing(reading: CachedReading) -> Series:
    return by_iteration(reading.run, "max(iteration_ms) - max(communication_ms)")


def _arcs(reading: CachedReading) -> Series:
    return by_iteration(reading.run, "360 * (1 - max(communication_ms) / max(iteration_ms))")


_PARTS: Mapping[str, Callable[[CachedReading], Series]] = {
    "computing": _computing,
    "communicating": communication_times,
    "arc": _arcs,
}
