# SPDX-License-Identifier: Apache-2.0
"""The load at which congestion first dominates, the data per iteration there, and the unused bandwidth beyond it."""

from collections.abc import Callable

from analysis.quantities import Case, QuantityRequest, quantity
from analysis.quantities.load_sweeps.sweep_levels import average_by, each_sweep
from analysis.reading.cross_traffic.load_sweeps import JobSweep, SweepFit
from analysis.statistics.degradation.demand import required_gbps
from analysis.statistics.degradation.sweep import Level
from analysis.statistics.intervals import Measured, average, difference, transform


@quantity("load at the congestion point", unit="Gbit/s", digits=1, by="model")
def load(request: QuantityRequest) -> list[Case]:
    """Return the load at which the line through the first levels crosses the next levels' tangent (Appendix A.2)."""
    return each_sweep(request, _of_sweep(_crossing_load))


@quantity("load at the congestion point as Salamy takes it", unit="Gbit/s", digits=1, by="model")
def load_as_printed(request: QuantityRequest) -> list[Case]:
    """Return the load at the congestion point, with any slope of the first levels' line (Figures 3-2 to 3-4)."""
    return each_sweep(request, _of_sweep_as_printed(_crossing_load))


@quantity("data at the congestion point above theory", unit="%", digits=0, signed=True, by="model")
def above_theory(request: QuantityRequest) -> list[Case]:
    """Return the excess of the link's possible data per iteration, at that load, over the iteration's (eq. 3.1)."""
    return each_sweep(request, _of_sweep(excess_percent))


@quantity("data at the congestion point above theory as Salamy takes it", unit="%", digits=0, signed=True, by="model")
def above_theory_as_printed(request: QuantityRequest) -> list[Case]:
    """Return the excess over theory for a link of 25 Gbit/s, headers counted as payload (Tables 3.2, 3.4 and 3.6)."""
    return each_sweep(request, _of_sweep_as_printed(excess_percent))


@quantity("bandwidth unused at the heaviest load", unit="Gbit/s", by="model")
def unused(request: QuantityRequest) -> list[Case]:
    """Return the bandwidth that cross traffic leaves, less the need of iterations, at the heaviest measured load."""
    return each_sweep(request, _of_sweep(_unused))


@quantity("bandwidth unused at the heaviest load as Salamy takes it", unit="Gbit/s", by="model")
def unused_as_printed(request: QuantityRequest) -> list[Case]:
    """Return the unused bandwidth for a link of 25 Gbit/s, headers counted as unused (Tables 3.3, 3.5 and 3.7)."""
    return each_sweep(request, _of_sweep_as_printed(_unused))


@quantity("bandwidth unused when saturated", unit="Gbit/s", by="model")
def spare(request: QuantityRequest) -> list[Case]:
    """Return the mean unused bandwidth over the levels at and above the congestion point.

    The interval treats the congestion point as known.
    """
    return each_sweep(request, _of_sweep(_spare))


@quantity("bandwidth unused when saturated as Salamy takes it", unit="Gbit/s", by="model")
def spare_as_printed(request: QuantityRequest) -> list[Case]:
    """Return the mean unused bandwidth for a link of 25 Gbit/s, headers counted as unused (Table 3.8)."""
    return each_sweep(request, _of_sweep_as_printed(_spare))


@quantity("bandwidth unused when saturated, more than under iperf", unit="Gbit/s", signed=True, by="model")
def more_spare(request: QuantityRequest) -> list[Case]:
    """Return the mean unused bandwidth when saturated under web-search traffic, less the model's under iperf."""
    of = {(each.properties["model"], each.properties["traffic"]): each for each in spare(request)}
    return [
        Case(f"{model}, {traffic}", *difference((each.value, each.ci95), (iperf.value, iperf.ci95)), each.properties)
        for (model, traffic), each in of.items()
        if traffic != "iperf" and (iperf := of.get((model, "iperf")))
    ]


@quantity("share of the link unused when saturated", unit="%", digits=1, by="traffic")
def unused_share(request: QuantityRequest) -> list[Case]:
    """Return the unused bandwidth when saturated over the link's payload rate; by traffic, the mean of models."""
    return average_by(each_sweep(request, _of_sweep(_share)), "traffic")


@quantity("share of the link unused when saturated as Salamy takes it", unit="%", digits=1, by="traffic")
def unused_share_as_printed(request: QuantityRequest) -> list[Case]:
    """Return the unused share for a link of 25 Gbit/s, headers counted as unused (chapter 4)."""
    return average_by(each_sweep(request, _of_sweep_as_printed(_share)), "traffic")


def _of_sweep(measure: Callable[[SweepFit], Measured | None]) -> Callable[[JobSweep], Measured | None]:
    return lambda study: measure(curve) if (curve := study.curve) else None


def _of_sweep_as_printed(measure: Callable[[SweepFit], Measured | None]) -> Callable[[JobSweep], Measured | None]:
    return lambda study: measure(study.as_printed) if study.as_printed else None


def _crossing_load(curve: SweepFit) -> Measured | None:
    point = curve.congestion
    return (point.crossing_gbps, point.crossing_ci95_gbps) if point else None


def excess_percent(curve: SweepFit) -> Measured | None:
    """Return the excess of data at the congestion point over an iteration's, %; None without a congestion point."""
    point = curve.congestion
    if point is None:
        return None
    return transform(lambda demand_mb: 100 * (demand_mb / curve.data_mb - 1), (point.demand_mb, point.demand_ci95_mb))


def _share(curve: SweepFit) -> Measured | None:
    found = _spare(curve)
    return transform(lambda gbps: 100 * gbps / curve.sweep.link_gbps, found) if found else None


def _spare(curve: SweepFit) -> Measured | None:
    point = curve.congestion
    if point is None:
        return None
    return average([_delta(curve, each) for each in curve.sweep.levels if each.load_gbps >= point.load_gbps])


def _unused(curve: SweepFit) -> Measured:
    return _delta(curve, curve.sweep.levels[-1])


def _delta(curve: SweepFit, level: Level) -> Measured:
    available_gbps = curve.sweep.link_gbps - level.load_gbps
    return transform(lambda time_s: available_gbps - float(required_gbps(curve.data_mb, time_s)), level.mean_s)
