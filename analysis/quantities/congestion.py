# SPDX-License-Identifier: Apache-2.0
"""Where congestion first dominates, what the link carries there, and what it leaves unused beyond."""

from collections.abc import Callable

from analysis.quantities import Asked, Case, quantity
from analysis.quantities._sweeps import by_property, each_sweep
from analysis.statistics.degradation.congestion import CongestionPoint
from analysis.statistics.degradation.demand import required_gbps
from analysis.statistics.degradation.sweep import Level, Sweep
from analysis.statistics.intervals import Measured, average, difference, through
from analysis.studies.load_sweep.sweeps import AsPrinted, JobSweep


@quantity("load at the congestion point", unit="Gbit/s", digits=1, by="model")
def load(asked: Asked) -> list[Case]:
    """Load where the line through the first levels and the tangent to the next ones cross (Salamy, Appendix A.2)."""
    return each_sweep(asked, lambda study: _crossing(study.congestion))


@quantity("load at the congestion point as Salamy takes it", unit="Gbit/s", digits=1, by="model")
def load_as_printed(asked: Asked) -> list[Case]:
    """The same, the line through the first levels as steep as it comes (Figures 3-2 to 3-4)."""
    return each_sweep(asked, _printed(lambda own: _crossing(own.congestion)))


@quantity("data at the congestion point above theory", unit="%", digits=0, signed=True, by="model")
def above_theory(asked: Asked) -> list[Case]:
    """By how much more the link could carry in an iteration there than an iteration sends (equation 3.1)."""
    return each_sweep(asked, lambda study: _above(study.congestion, study.loaded.data_mb))


@quantity("data at the congestion point above theory as Salamy takes it", unit="%", digits=0, signed=True, by="model")
def above_theory_as_printed(asked: Asked) -> list[Case]:
    """The same of a link of 25 Gbit/s, headers counted as payload (Tables 3.2, 3.4 and 3.6)."""
    return each_sweep(asked, _printed(lambda own: _above(own.congestion, own.data_mb)))


@quantity("bandwidth unused at the heaviest load", unit="Gbit/s", by="model")
def unused(asked: Asked) -> list[Case]:
    """What cross traffic leaves less what iterations need, at the heaviest load measured."""
    return each_sweep(asked, lambda study: _unused(study.sweep, study.loaded.data_mb))


@quantity("bandwidth unused at the heaviest load as Salamy takes it", unit="Gbit/s", by="model")
def unused_as_printed(asked: Asked) -> list[Case]:
    """The same of a link of 25 Gbit/s, headers counted as unused (Tables 3.3, 3.5 and 3.7)."""
    return each_sweep(asked, _printed(lambda own: _unused(own.sweep, own.data_mb)))


@quantity("bandwidth unused when saturated", unit="Gbit/s", by="model")
def spare(asked: Asked) -> list[Case]:
    """The same, the mean of the levels from the congestion point on; its interval takes that for known."""
    return each_sweep(asked, lambda study: _spare(study.sweep, study.congestion, study.loaded.data_mb))


@quantity("bandwidth unused when saturated as Salamy takes it", unit="Gbit/s", by="model")
def spare_as_printed(asked: Asked) -> list[Case]:
    """The same of a link of 25 Gbit/s, headers counted as unused (Table 3.8)."""
    return each_sweep(asked, _printed(lambda own: _spare(own.sweep, own.congestion, own.data_mb)))


@quantity("bandwidth unused when saturated, more than under iperf", unit="Gbit/s", signed=True, by="model")
def more_spare(asked: Asked) -> list[Case]:
    """The same under web-search traffic, less that of the model under iperf."""
    of = {(each.properties["model"], each.properties["traffic"]): each for each in spare(asked)}
    return [
        Case(f"{model}, {traffic}", *difference((each.value, each.ci95), (iperf.value, iperf.ci95)), each.properties)
        for (model, traffic), each in of.items()
        if traffic != "iperf" and (iperf := of.get((model, "iperf")))
    ]


@quantity("share of the link unused when saturated", unit="%", digits=1, by="traffic")
def unused_share(asked: Asked) -> list[Case]:
    """Bandwidth unused when saturated over what the link carries; by traffic, the mean of models."""

    def of(study: JobSweep) -> Measured | None:
        return _share(study.sweep, study.congestion, study.loaded.data_mb)

    return by_property(each_sweep(asked, of), "traffic")


@quantity("share of the link unused when saturated as Salamy takes it", unit="%", digits=1, by="traffic")
def unused_share_as_printed(asked: Asked) -> list[Case]:
    """The same of a link of 25 Gbit/s, headers counted as unused (chapter 4)."""
    shares = each_sweep(asked, _printed(lambda own: _share(own.sweep, own.congestion, own.data_mb)))
    return by_property(shares, "traffic")


def _printed(measure: Callable[[AsPrinted], Measured | None]) -> Callable[[JobSweep], Measured | None]:
    return lambda study: measure(study.as_printed) if study.as_printed else None


def _crossing(point: CongestionPoint | None) -> Measured | None:
    return (point.crossing_gbps, point.crossing_gbps_ci95) if point else None


def _above(point: CongestionPoint | None, data_mb: float) -> Measured | None:
    if point is None:
        return None
    return through(lambda demand_mb: 100 * (demand_mb / data_mb - 1), (point.demand_mb, point.demand_mb_ci95))


def _share(sweep: Sweep | None, point: CongestionPoint | None, data_mb: float) -> Measured | None:
    found = _spare(sweep, point, data_mb)
    return through(lambda gbps: 100 * gbps / sweep.link_gbps, found) if sweep and found else None


def _spare(sweep: Sweep | None, point: CongestionPoint | None, data_mb: float) -> Measured | None:
    if sweep is None or point is None:
        return None
    saturated = [each for each in sweep.levels if each.load_gbps >= point.load_gbps]
    return average([_delta(sweep, each, data_mb) for each in saturated])


def _unused(sweep: Sweep | None, data_mb: float) -> Measured | None:
    return _delta(sweep, sweep.levels[-1], data_mb) if sweep else None


def _delta(sweep: Sweep, level: Level, data_mb: float) -> Measured:
    available_gbps = sweep.link_gbps - level.load_gbps
    return through(lambda time_s: available_gbps - float(required_gbps(data_mb, time_s)), level.mean_s)
