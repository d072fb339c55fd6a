# SPDX-License-Identifier: Apache-2.0
"""The time until jobs that start together interleave."""

import math
from collections.abc import Callable, Sequence

import numpy as np

from analysis.quantities import Case, Curve, QuantityRequest, mean_of, quantity
from analysis.quantities._timelines import spans_by_link, spans_of_sharing_jobs
from analysis.reading.cells import CellTrials
from analysis.reading.phase_overlap import Spans, compute_offsets, compute_overlaps, first_lasting
from analysis.reading.traces import shared_share_of_spans
from analysis.statistics.cumulative_counter import Floats

MS = 1000
"""Milliseconds in a second."""
ARRIVAL_TOLERANCE = 0.99
"""Share of the optimal offset at which jobs count as apart: the theory's printed figures are for within 1 % of it."""


@quantity("end of the first iteration", unit="s", digits=3)
def first_ends(request: QuantityRequest) -> list[Case]:
    """Return the end of a job's first iteration, from the first job's start; the mean of repetitions."""
    return _each_job(request, lambda spans: float(spans[0, 1]) / MS)


@quantity("start of the second communication", unit="s", digits=3)
def second_sends(request: QuantityRequest) -> list[Case]:
    """Return when a job's second communication begins, from the first job's start; the mean of repetitions."""
    return _each_job(request, lambda spans: float(spans[1, 0]) / MS)


@quantity("end of the first iteration, first job over second", unit="times", needs=("of",))
def lead(request: QuantityRequest) -> list[Case]:
    """Return the end of the first job's first iteration over that of the second's; the mean of repetitions.

    These are the first two jobs of the first link that jobs share.
    """
    cases = []
    for cell, trials in spans_of_sharing_jobs(request):
        one, other = next(iter(cell.sharing_jobs.values()))[:2]
        ratios = [float(spans[one][0, 1] / spans[other][0, 1]) for spans in trials]
        cases.append(Case(f"{one}/{other}", *mean_of(ratios), properties={"variant": cell.variant}))
    return cases


def _describe_never(cases: Sequence[Case]) -> str:
    reported = [f"{case.value:.1f}" if math.isfinite(case.value) else case.properties["never"] for case in cases]
    if len(set(reported)) == 1:
        return reported[0] if len(reported) == 1 else f"{reported[0]} in {len(reported)} cases"
    return ", ".join(f"{case.name} {each}" for case, each in zip(cases, reported, strict=True))


@quantity("iteration from which jobs stay interleaved", digits=1, note=_describe_never)
def interleaved(request: QuantityRequest) -> list[Case]:
    """Return the first of ten iterations running with overlaps below 5 % of the shorter phase, on the worst link.

    The figure is infinite if a repetition has no such iteration.

    Iterations of the link's first job are counted, from 1. The figure is the mean of repetitions. The worst
    link is that whose jobs take longest; only jobs that share it count.
    """

    def of_link(cell: CellTrials, trials: Sequence[Spans]) -> Case:
        return _case(request, cell, [first_lasting(compute_overlaps(spans)) for spans in trials], 1)

    return [
        max((of_link(cell, own) for own in spans_by_link(cell, trials).values()), key=_figure)
        for cell, trials in spans_of_sharing_jobs(request)
    ]


@quantity("iterations until jobs are apart", digits=1, note=_describe_never)
def arrived(request: QuantityRequest) -> list[Case]:
    """Return the number of iterations until two jobs' offset reaches 99 % of the shorter communication time alone."""
    return [
        _case(
            request,
            cell,
            [int(there[0]) if len(there := np.flatnonzero(each >= ARRIVAL_TOLERANCE)) else None for each in parts],
            0,
        )
        for cell, parts in _pairs(request)
    ]


@quantity("growth of the offset in an iteration, in odds", unit="times")
def growth(request: QuantityRequest) -> list[Case]:
    """Return the factor by which the odds of two jobs' offset grow per iteration; MLTCP's theory says (S + I) / I.

    It is the median over the iterations in which jobs move apart, and the mean of repetitions.
    """
    cases = []
    for cell, parts in _pairs(request):
        grown = [_growth(each) for each in parts]
        if known := [each for each in grown if each is not None]:
            cases.append(Case(request.name_of(cell), *mean_of(known), cell.properties))
    return cases


@quantity("offset between jobs by iteration", unit="ms", digits=1, curve=True)
def offset(request: QuantityRequest) -> list[Curve]:
    """Return by iteration the distance between the first job's begin of communication and another job's nearest one.

    The mean of repetitions. The first job is that of the link that both share; with several links, names have the link.
    """
    curves = []
    for cell, trials in spans_of_sharing_jobs(request):
        links = spans_by_link(cell, trials)
        for link, own in links.items():
            found = [compute_offsets(spans) for spans in own]
            for job in found[0]:
                by_iteration = zip(*(each[job].tolist() for each in found), strict=False)
                points = [(number, mean_of(each, at_least=0)) for number, each in enumerate(by_iteration, start=1)]
                name = ", ".join([request.name_of(cell), job, *([link] if len(links) > 1 else [])])
                curves.append(Curve.from_figures(name, points, cell.properties | {"job": job}))
    return curves


@quantity("sending at once", unit="%", digits=0)
def at_once(request: QuantityRequest) -> list[Case]:
    """Return the share of a link's sending time in which several of its jobs send, in whole trials, on the worst link.

    The mean of repetitions. The worst link is that with the largest share; only jobs that share it count.
    """

    def of_link(cell: CellTrials, trials: Sequence[Spans]) -> Case:
        shares = [100 * shared_share_of_spans(spans.values(), 0, math.inf) for spans in trials]
        return Case(request.name_of(cell), *mean_of(shares, at_least=0), properties={"variant": cell.variant})

    return [
        max((of_link(cell, own) for own in spans_by_link(cell, trials).values()), key=_figure)
        for cell, trials in spans_of_sharing_jobs(request)
    ]


def _figure(case: Case) -> float:
    return case.value


def _each_job(request: QuantityRequest, of: Callable[[Floats], float]) -> list[Case]:
    return [
        request.case(cell, job, *mean_of([of(spans[job]) for spans in trials]))
        for cell, trials in spans_of_sharing_jobs(request)
        for job in request.jobs(cell)
    ]


def _case(request: QuantityRequest, cell: CellTrials, found: Sequence[int | None], at_least: int) -> Case:
    """Return the mean number of iterations, one a repetition; infinite if one is None."""
    firsts = [math.inf if each is None else float(each) for each in found]
    without = firsts.count(math.inf)
    never = "never" if without == len(firsts) else f"never in {without} of {len(firsts)} repetitions"
    return Case(request.name_of(cell), *mean_of(firsts, at_least=at_least), cell.properties | {"never": never})


def _pairs(request: QuantityRequest) -> list[tuple[CellTrials, list[Floats]]]:
    """Return cells of two jobs with their offset by iteration, over the shorter one's time of sending alone."""
    found = []
    for cell, trials in spans_of_sharing_jobs(request):
        if len(cell.jobs) == 2:
            optimum_ms = min(cell.spec.jobs[job].profile.comm_ms for job in cell.jobs)
            found.append((cell, [compute_offsets(spans)[cell.jobs[1]] / optimum_ms for spans in trials]))
    return found


def _growth(parts: Floats) -> float | None:
    """Return the growth; None if no two iterations running are between one optimum and the other."""
    on_the_way = (parts > 1 - ARRIVAL_TOLERANCE) & (parts < ARRIVAL_TOLERANCE)
    odds = np.where(on_the_way, parts, 0.5) / np.where(on_the_way, 1 - parts, 0.5)
    both = on_the_way[1:] & on_the_way[:-1]
    return float(np.median((odds[1:] / odds[:-1])[both])) if both.any() else None
