# SPDX-License-Identifier: Apache-2.0
"""The results of the study of loads: each job's iteration time against load, its fit and its congestion point."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from analysis.expectations.results import Finite, JobCell, Result, Summary, common_fields
from analysis.papers.salamy import LINK_GBPS, MODELS, Observed
from analysis.reading.attempts import count_attempts
from analysis.reading.cells import CellId
from analysis.reading.cross_traffic import intra_iteration_rates as workers
from analysis.reading.cross_traffic.load_sweep_data import CrossTrafficOutcome, cross_traffic_outcomes, varies_load
from analysis.reading.cross_traffic.load_sweeps import JobSweep, SweepFit, job_sweeps
from analysis.statistics.degradation.congestion_point import CongestionPoint, Line
from analysis.statistics.degradation.demand import bandwidth_delta_gbps, required_gbps
from analysis.statistics.degradation.fit import band_s, predict
from analysis.statistics.degradation.model_choice import Choice
from analysis.statistics.degradation.sweep import DegradationError, Sweep
from analysis.statistics.intervals import Array, Interval
from roundabout.spec import Experiment, StudyChoice
from roundabout.spec.base import Level
from roundabout.store import Run

PREDICTED_GBPS = (10.0, 15.0, 19.0, 22.0)
BAND_POINTS = 160
MORE_THAN_THE_LINK = "more than the link carries"


class LevelResult(Result):
    """The iteration times at one load (payload, Gbit/s).

    `p99_s` is None if `count`, over all repetitions, is below 1,000.

    `times_no_load` is the iteration time over that without load. `disturbance` is the estimated effect on disturbed
    trials, as a share; None for valid ones.
    """

    asked_gbps: float
    payload_gbps: float
    repetitions: int
    iterations: int
    count: int
    mean_s: float
    mean_ci95_s: Interval | None
    p99_s: float | None
    p99_ci95_s: Interval | None
    max_s: float
    times_no_load: float | None
    fluid_s: Finite
    disturbance: float | None = None


class EstimateResult(Result):
    """A coefficient of a fit; `ci95` is None if it was fixed, and an end of `ci95` is None if it is unbounded."""

    value: Finite
    ci95: tuple[Finite, Finite] | None


class RSquaredResult(Result):
    """Coefficients of determination over the levels, of log t and of t."""

    log: float
    linear: float


class BandResult(Result):
    """The 95 % band of a fitted curve by load; an unbounded end is None."""

    loads_gbps: tuple[float, ...]
    low_s: tuple[Finite, ...]
    high_s: tuple[Finite, ...]


class MissResult(Result):
    """A tried model, with its typical miss of a level left out, as a share; a fitted coefficient is None.

    `chosen` is the share of redrawn sweeps that choose the model; None with too few repetitions.
    """

    n: float | None
    capacity_gbps: float | None
    miss: Finite
    chosen: float | None


class PrintedFitResult(Result):
    """A fit to our levels with the coefficients that Salamy fixed."""

    n: EstimateResult
    a_s: EstimateResult
    b: EstimateResult
    capacity_gbps: EstimateResult
    r_squared: RSquaredResult


class FitResult(PrintedFitResult):
    """The chosen fit, and all tried models."""

    chosen_by: tuple[MissResult, ...]
    band: BandResult

    def times_s(self, loads_gbps: Array) -> Array:
        """Return the curve's iteration times, s, at these loads."""
        values = (self.a_s.value, self.b.value, self.n.value, self.capacity_gbps.value)
        a_s, b, n, capacity = (math.inf if value is None else value for value in values)
        return np.asarray(a_s * np.exp(b / (capacity - loads_gbps) ** n))


class LineResult(Result):
    """A line log t = intercept + slope x load, with t in s and load in Gbit/s."""

    slope: float
    intercept: float

    def times_s(self, loads_gbps: Array) -> Array:
        """Return the iteration times, s, along the line at these loads."""
        return Line(self.slope, self.intercept).times_s(loads_gbps)


class CongestionResult(Result):
    """A congestion point, and the two lines by which it was found.

    `linear_slope` is the slope of the linear portion over the slope of a saturated link; 0 is flat.
    """

    load_gbps: float
    time_s: float
    crossing_gbps: float
    crossing_ci95_gbps: Interval | None
    demand_mb: float
    demand_ci95_mb: Interval | None
    theory_mb: float
    above_theory_percent: float
    linear: LineResult
    linear_slope: float
    tangent: LineResult


class NeedResult(Result):
    """The bandwidth that iterations need, and the bandwidth that cross traffic left, Gbit/s."""

    required_gbps: float
    available_gbps: float
    delta_gbps: float
    delta_percent: float


class MostCongestedResult(NeedResult):
    """The needed and the available bandwidth at the heaviest load."""

    load_gbps: float


class ObservedResult(Result):
    """The figures of Salamy's tables for the same setting."""

    figure: str
    configuration: str
    congestion_gbps: float | None
    demand_mb: float
    theory_mb: float
    above_theory_percent: float
    most_congested: NeedResult
    spare_gbps: float


class EquationResult(Result):
    """A fit that Salamy prints."""

    source: str
    a_s: float
    b: float
    n: float
    capacity_gbps: float


class AsPrintedResult(Result):
    """Our figures by Salamy's own choices: a link of 25 Gbit/s, and a linear portion of any slope."""

    congestion: CongestionResult | None
    most_congested: MostCongestedResult
    spare_gbps: float | None


class PaperResult(Result):
    """Salamy's printed figures for the same model, traffic and transport."""

    observed: ObservedResult | None
    fit: EquationResult | None
    ours_with_its_n: PrintedFitResult | None
    ours_as_printed: AsPrintedResult | None


class PredictionResult(Result):
    """The predicted mean iteration time at a load; without a prediction `why_not` gives the reason."""

    load_gbps: float
    time_s: Finite = None
    ci95: tuple[Finite, Finite] | None = None
    extrapolates: bool = False
    why_not: str | None = None


class FluidLineResult(Result):
    """The flow-level model's iteration times by load."""

    loads_gbps: tuple[float, ...]
    times_s: tuple[Finite, ...]


class RatesResult(Result):
    """Mean rates of a flow while iterations communicate, Gbit/s, over time and over packets."""

    over_time: float
    over_packets: float


class InsideResult(Result):
    """The rates of flows 1 and 2 inside iterations at a load; `paper_gbps` holds Salamy's means of both."""

    load_percent: int
    asked_gbps: float
    flow_1: RatesResult
    flow_2: RatesResult
    paper_gbps: tuple[float, float] | None


class SweepResult(Result):
    """One job under one kind of cross traffic. A missing part is None, and its `why_no_...` gives the reason."""

    name: str
    variant: str
    setting: dict[str, Any]
    job: str
    profile: str
    model: str
    workers: int
    traffic: str
    transport: str
    link_gbps: float
    data_mb: float
    levels: tuple[LevelResult, ...]
    why_no_sweep: str | None
    fit: FitResult | None
    why_no_fit: str | None
    congestion: CongestionResult | None
    why_no_congestion: str | None
    most_congested: MostCongestedResult | None
    spare_gbps: float | None
    fluid_line: FluidLineResult
    predictions: tuple[PredictionResult, ...]
    inside: tuple[InsideResult, ...]
    paper: PaperResult | None

    @property
    def disturbed_levels(self) -> tuple[LevelResult, ...]:
        """Return the levels with only disturbed trials, on which the fit and the congestion point rest too."""
        return tuple(level for level in self.levels if level.disturbance is not None)

    @property
    def disturbance(self) -> float | None:
        """Return the largest estimated effect on a level, as a share; None without disturbed levels."""
        return max((level.disturbance or 0.0 for level in self.disturbed_levels), default=None)

    @property
    def kind(self) -> str:
        """Return the kind of cross traffic and the transport, as text."""
        return f"{self.traffic}, {self.transport}"

    @property
    def observed(self) -> ObservedResult | None:
        """Return Salamy's figures for the same model, traffic and transport; None without any."""
        return self.paper.observed if self.paper else None

    @property
    def as_printed(self) -> AsPrintedResult | None:
        """Return our figures by Salamy's own choices; None if Salamy printed none to compare."""
        return self.paper.ours_as_printed if self.paper else None


class LoadResult(Result):
    """A requested load of one kind of traffic, and what was sent: means over trials, None if unknown."""

    kind: str
    asked_gbps: float
    planned_gbps: float | None
    offered_gbps: float | None
    achieved_gbps: float | None
    payload_gbps: float | None
    trials: int
    schedules_told: int
    schedules_held: int
    lateness_p99_us: float | None
    lagging_share: float | None


class AttemptsResult(Result):
    """The number of attempts at the trials of a cell, of those that are not valid, and some reasons.

    `disturbed` attempts lacked CPU time only. `resent` attempts had retransmitted segments; leaving these out removes a
    part of the tail.
    """

    levels: dict[str, Level]
    made: int
    invalid: int
    resent: int
    disturbed: int = 0

    @property
    def name(self) -> str:
        """Return the cell's name in tables."""
        return CellId(self.levels).name


class Results(Summary):
    """The study's own results."""

    sweeps: tuple[SweepResult, ...]
    loads: tuple[LoadResult, ...]
    attempts: tuple[AttemptsResult, ...]


def suits(experiment: Experiment) -> bool:
    """Return True for experiments that vary the load of cross traffic."""
    return varies_load(experiment)


def study(run: Run, choice: StudyChoice) -> Results:
    """Compute everything that the report of a run over loads shows."""
    found = job_sweeps(run)
    of_all = common_fields(run, choice)
    flows = workers.intra_iteration_rates(run)
    return Results(
        **of_all,
        sweeps=tuple(
            _sweep(sweep, of_all["cells"], [each for each in flows if each.loaded.id == sweep.loaded.id])
            for sweep in found
        ),
        loads=tuple(_loads(cross_traffic_outcomes(run))),
        attempts=tuple(AttemptsResult(**vars(each), levels=dict(each.cell.levels)) for each in count_attempts(run)),
    )


def _sweep(sweep: JobSweep, cells: Sequence[JobCell], flows: Sequence[workers.IntraIterationRates]) -> SweepResult:
    loaded = sweep.loaded
    return SweepResult(
        name=sweep.name,
        variant=loaded.variant,
        setting=dict(loaded.setting.levels),
        job=loaded.job_name,
        profile=loaded.job.profile.name,
        model=loaded.model,
        workers=len(loaded.job.workers),
        traffic=loaded.traffic,
        transport=loaded.transport,
        link_gbps=loaded.link_gbps,
        data_mb=loaded.data_mb,
        levels=tuple(_levels(sweep, cells)),
        why_no_sweep=sweep.why_no_sweep or None,
        fit=None if sweep.choice is None else make_fit_result(sweep.choice),
        why_no_fit=sweep.why_no_fit or None,
        congestion=None if sweep.congestion is None else make_congestion_result(sweep.congestion, loaded.data_mb),
        why_no_congestion=sweep.why_no_congestion or None,
        most_congested=sweep.sweep and _most_congested(sweep.sweep, loaded.data_mb),
        spare_gbps=sweep.curve and sweep.curve.spare_gbps,
        fluid_line=_fluid_line(sweep),
        predictions=tuple(_prediction(sweep, load) for load in PREDICTED_GBPS) if sweep.fit else (),
        inside=tuple(_inside(each) for each in flows),
        paper=_paper(sweep),
    )


def _levels(sweep: JobSweep, cells: Sequence[JobCell]) -> Iterable[LevelResult]:
    """Yield levels in the order of the requested loads."""
    loaded = sweep.loaded
    of_cell = {cell.id: cell for cell in cells if cell.job == loaded.job_name}
    alone = of_cell.get(loaded.cells.get(0.0, CellId({})))
    for requested, repetitions in sorted(loaded.levels.items()):
        cell = of_cell[loaded.cells[requested]]
        payload_gbps = math.fsum(load for load, _ in repetitions) / len(repetitions)
        yield LevelResult(
            asked_gbps=requested,
            payload_gbps=payload_gbps,
            repetitions=cell.repetitions,
            iterations=cell.iterations,
            count=cell.count,
            mean_s=cell.mean_ms / 1e3,
            mean_ci95_s=_in_seconds(cell.mean_ci95_ms),
            p99_s=None if cell.p99_ms is None else cell.p99_ms / 1e3,
            p99_ci95_s=_in_seconds(cell.p99_ci95_ms),
            max_s=cell.max_ms / 1e3,
            times_no_load=None if alone is None else cell.mean_ms / alone.mean_ms,
            fluid_s=loaded.fluid_s(payload_gbps),
            disturbance=cell.disturbance,
        )


def make_fit_result(choice: Choice) -> FitResult:
    """Return the stored form of a chosen fit, with the band of its curve."""
    loads_gbps = choice.fit.sweep.loads_gbps
    along = np.linspace(loads_gbps[0], loads_gbps[-1], BAND_POINTS)
    low_s, high_s = band_s(choice.fit, along)
    return FitResult(
        **vars(choice.fit),
        chosen_by=tuple(
            MissResult(
                n=each.n,
                capacity_gbps=each.capacity_gbps,
                miss=miss,
                chosen=choice.shares and choice.shares[each],
            )
            for each, miss in choice.misses.items()
        ),
        band=BandResult(loads_gbps=tuple(along.tolist()), low_s=tuple(low_s.tolist()), high_s=tuple(high_s.tolist())),
    )


def make_congestion_result(point: CongestionPoint, theory_mb: float) -> CongestionResult:
    """Return the stored form of a congestion point, with its excess over an iteration's data, `theory_mb`."""
    return CongestionResult(**vars(point), theory_mb=theory_mb, above_theory_percent=_above(point.demand_mb, theory_mb))


def _most_congested(sweep: Sweep, data_mb: float) -> MostCongestedResult:
    available, delta = float(sweep.available_gbps[-1]), float(bandwidth_delta_gbps(sweep, data_mb)[-1])
    return MostCongestedResult(
        load_gbps=float(sweep.loads_gbps[-1]),
        required_gbps=float(required_gbps(data_mb, sweep.means_s[-1])),
        available_gbps=available,
        delta_gbps=delta,
        delta_percent=100 * delta / available,
    )


def _fluid_line(sweep: JobSweep) -> FluidLineResult:
    loads_gbps, times_s = sweep.fluid_line
    return FluidLineResult(loads_gbps=tuple(loads_gbps.tolist()), times_s=tuple(times_s.tolist()))


def _prediction(sweep: JobSweep, load_gbps: float) -> PredictionResult:
    assert sweep.fit is not None
    if load_gbps >= sweep.loaded.link_gbps:
        return PredictionResult(load_gbps=load_gbps, why_not=MORE_THAN_THE_LINK)
    try:
        return PredictionResult.model_validate(predict(sweep.fit, load_gbps))
    except DegradationError as error:
        return PredictionResult(load_gbps=load_gbps, why_not=str(error))


def _inside(found: workers.IntraIterationRates) -> InsideResult:
    return InsideResult(
        load_percent=found.percent,
        asked_gbps=found.asked_gbps,
        flow_1=RatesResult.model_validate(found.flow_1),
        flow_2=RatesResult.model_validate(found.flow_2),
        paper_gbps=found.printed,
    )


def _paper(sweep: JobSweep) -> PaperResult | None:
    observed, printed, own = sweep.observed, sweep.printed, sweep.as_printed
    if observed is None and printed is None:
        return None
    equation = printed and EquationResult(**vars(printed), capacity_gbps=LINK_GBPS)
    return PaperResult(
        observed=observed and _observed(observed),
        fit=equation,
        ours_with_its_n=PrintedFitResult.model_validate(own.fit) if own and own.fit else None,
        ours_as_printed=own and _as_printed(own),
    )


def _as_printed(own: SweepFit) -> AsPrintedResult:
    return AsPrintedResult(
        congestion=own.congestion and make_congestion_result(own.congestion, own.data_mb),
        most_congested=_most_congested(own.sweep, own.data_mb),
        spare_gbps=own.spare_gbps,
    )


def _observed(observed: Observed) -> ObservedResult:
    theory_mb = MODELS[observed.model].data_mb(observed.setting.workers)
    delta = observed.worst_available_gbps - observed.worst_required_gbps
    return ObservedResult(
        figure=observed.setting.figure,
        configuration=observed.setting.configuration,
        congestion_gbps=observed.congestion_gbps,
        demand_mb=observed.congestion_mb,
        theory_mb=theory_mb,
        above_theory_percent=_above(observed.congestion_mb, theory_mb),
        most_congested=NeedResult(
            required_gbps=observed.worst_required_gbps,
            available_gbps=observed.worst_available_gbps,
            delta_gbps=delta,
            delta_percent=100 * delta / observed.worst_available_gbps,
        ),
        spare_gbps=observed.spare_gbps,
    )


def _loads(found: Sequence[CrossTrafficOutcome]) -> Iterable[LoadResult]:
    """Yield loads by kind and requested load."""
    groups: dict[tuple[str, float], list[CrossTrafficOutcome]] = {}
    for each in found:
        groups.setdefault((each.kind, each.asked_gbps), []).append(each)
    for (kind, asked_gbps), trials in sorted(groups.items()):
        reported = [each.schedule_held for each in trials if each.schedule_held is not None]
        late_us = (each.lateness_p99_us for each in trials if each.lateness_p99_us is not None)
        yield LoadResult(
            kind=kind,
            asked_gbps=asked_gbps,
            planned_gbps=_mean(each.planned_gbps for each in trials),
            offered_gbps=_mean(each.offered_gbps for each in trials),
            achieved_gbps=_mean(each.achieved_gbps for each in trials),
            payload_gbps=_mean(each.payload_gbps for each in trials),
            trials=len(trials),
            schedules_told=len(reported),
            schedules_held=sum(reported),
            lateness_p99_us=max(late_us, default=None),
            lagging_share=_mean(each.lagging_share for each in trials),
        )


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _in_seconds(interval: Interval | None) -> Interval | None:
    return None if interval is None else (interval[0] / 1e3, interval[1] / 1e3)


def _above(demand_mb: float, theory_mb: float) -> float:
    return 100 * (demand_mb / theory_mb - 1)
