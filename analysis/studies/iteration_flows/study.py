# SPDX-License-Identifier: Apache-2.0
"""The results of the study of iterations' flows: the rates of flows in Salamy's Figure 3-9, and their kept shares."""

from collections.abc import Sequence

from analysis.expectations.results import Result, Summary, common_fields
from analysis.reading.cross_traffic.iteration_flows import (
    WIDTHS,
    WORKERS,
    RingFlows,
    iteration_flows,
    kept_share,
    light_and_heavy_pairs,
)
from analysis.statistics.intervals import Interval
from roundabout.spec import StudyChoice
from roundabout.spec.base import Level
from roundabout.store import Run


class FlowResult(Result):
    """The rates of a flow in a cell, Gbit/s: the mean of readings, and all bytes over the iterations' time.

    `sufficient_gbps` is all bytes over the time in which the worker communicated, and `beyond` the mean of readings
    over `sufficient_gbps`; both are None for cross traffic. Workers send flows 1 and 2; flow 3 is the cross traffic.
    `paper_gbps` is Salamy's mean of readings.
    """

    flow: int
    host: str
    over_packets_gbps: float
    over_packets_ci95_gbps: Interval | None
    over_iterations_gbps: float
    over_iterations_ci95_gbps: Interval | None
    sufficient_gbps: float | None
    sufficient_ci95_gbps: Interval | None
    beyond: float | None
    beyond_ci95: Interval | None
    paper_gbps: float | None


class CellFlowsResult(Result):
    """The flows of a cell. A reading covers `width` packets, or, if `width` is None, 10 ms of counters.

    `above_gbps` is the mean of flow 1's readings less that of flow 2's, averaged over repetitions.
    """

    levels: dict[str, Level]
    job: str
    model: str
    asked_gbps: float
    load_percent: int
    repetitions: int
    width: int | None
    flows: tuple[FlowResult, ...]
    above_gbps: float
    above_ci95_gbps: Interval | None
    paper_above_gbps: float | None


class KeptResult(Result):
    """A flow's mean of readings at 80 % load over that at 30 % load, with Salamy's figure."""

    model: str
    flow: int
    kept: float
    ci95: Interval | None
    paper: float | None


class Results(Summary):
    """The study's own results."""

    flows: tuple[CellFlowsResult, ...]
    kept: tuple[KeptResult, ...]


def study(run: Run, choice: StudyChoice) -> Results:
    """Compute everything that the report of a run with ring flows shows."""
    found = iteration_flows(run)
    return Results(**common_fields(run, choice), flows=tuple(map(_cell, found)), kept=_kept(found))


def _cell(found: RingFlows) -> CellFlowsResult:
    above_gbps, ends_gbps = found.difference
    printed = found.printed
    return CellFlowsResult(
        levels=dict(found.cell.levels),
        job=found.job,
        model=found.model,
        asked_gbps=found.asked_gbps,
        load_percent=found.percent,
        repetitions=len(found.flows),
        width=WIDTHS[found.percent] if found.captured else None,
        flows=tuple(_flow(found, number) for number in (*WORKERS, 3)),
        above_gbps=above_gbps,
        above_ci95_gbps=ends_gbps,
        paper_above_gbps=printed and printed[0] - printed[1],
    )


def _flow(found: RingFlows, number: int) -> FlowResult:
    (packets_gbps, packets_ends), (exact_gbps, exact_ends) = found.over_packets(number), found.over_iterations(number)
    printed = found.printed if number in WORKERS else None
    sufficient_gbps, sufficient_ends = found.sufficient(number) if number in WORKERS else (None, None)
    beyond, beyond_ends = found.over_sufficient(number) if number in WORKERS else (None, None)
    return FlowResult(
        flow=number,
        host=found.repetitions_of(number)[0].host,
        over_packets_gbps=packets_gbps,
        over_packets_ci95_gbps=packets_ends,
        over_iterations_gbps=exact_gbps,
        over_iterations_ci95_gbps=exact_ends,
        sufficient_gbps=sufficient_gbps,
        sufficient_ci95_gbps=sufficient_ends,
        beyond=beyond,
        beyond_ci95=beyond_ends,
        paper_gbps=printed and printed[number - 1],
    )


def _kept(found: Sequence[RingFlows]) -> tuple[KeptResult, ...]:
    return tuple(
        KeptResult(model=light.model, flow=flow, kept=value, ci95=ends, paper=_printed_kept(light, heavy, flow))
        for light, heavy in light_and_heavy_pairs(found)
        for flow in WORKERS
        for value, ends in [kept_share(light, heavy, flow)]
    )


def _printed_kept(light: RingFlows, heavy: RingFlows, flow: int) -> float | None:
    if light.printed is None or heavy.printed is None:
        return None
    return heavy.printed[flow - 1] / light.printed[flow - 1]
