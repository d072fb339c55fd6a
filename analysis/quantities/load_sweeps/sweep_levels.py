# SPDX-License-Identifier: Apache-2.0
"""Functions that quantities of load sweeps share: the level near a load, ratios at a load, and cases of sweeps."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from analysis.quantities._request import Case, QuantityRequest
from analysis.reading.cross_traffic.load_sweep_data import NEAR_GBPS
from analysis.reading.cross_traffic.load_sweeps import JobSweep
from analysis.statistics.intervals import Array, Measured, average, estimate, ratio, tail_estimate


@dataclass(frozen=True)
class Level:
    """Iteration times of one job at one load (payload, Gbit/s), s; one array for each repetition.

    `is_exact` says that further repetitions would give equal times.
    """

    load_gbps: float
    repetitions_s: tuple[Array, ...]
    is_exact: bool = False

    @property
    def times_s(self) -> Array:
        """Return the iteration times of all repetitions, s, as one array."""
        return np.concatenate(self.repetitions_s)

    @property
    def mean_s(self) -> Measured:
        """Return the mean of all iterations, with an interval of width 0 for exact times."""
        mean, interval = estimate(self.repetitions_s, np.mean)
        return mean, (mean, mean) if self.is_exact else interval

    @property
    def p99_s(self) -> Measured | None:
        """Return the 99th percentile of all iterations, s; None with too few iterations."""
        return tail_estimate(self.repetitions_s)


def levels(study: JobSweep) -> list[Level]:
    """Return all levels of a sweep in the order of their loads."""
    found = (_level(study, repetitions) for repetitions in study.loaded.levels.values())
    return sorted(found, key=lambda level: level.load_gbps)


def level_near(study: JobSweep, load_gbps: float) -> Level | None:
    """Return the level nearest to a load; None if it is more than `NEAR_GBPS` away."""
    level = min(levels(study), key=lambda each: abs(each.load_gbps - load_gbps), default=None)
    return level if level and abs(level.load_gbps - load_gbps) <= NEAR_GBPS else None


def ratio_at_equal_load(
    one: JobSweep, other: JobSweep, load_gbps: float, figure: Callable[[Level], Measured | None]
) -> tuple[float, Measured] | None:
    """Return a load of cross traffic (payload, Gbit/s), and `one`'s figure over `other`'s at that load.

    Each kind of cross traffic misses its requested loads differently, and times rise steeply with loads, so figures are
    interpolated. The load is the one nearest to `load_gbps` that both sweeps cover; None if it is not near.
    """
    ours, theirs = _by_load(one, figure), _by_load(other, figure)
    if not ours or not theirs:
        return None
    lowest, highest = max(ours[0][0], theirs[0][0]), min(ours[-1][0], theirs[-1][0])
    equal_gbps = float(np.clip(load_gbps, lowest, highest))
    if lowest > highest or abs(equal_gbps - load_gbps) > NEAR_GBPS:
        return None
    return equal_gbps, ratio(interpolate(equal_gbps, ours), interpolate(equal_gbps, theirs))


def _by_load(study: JobSweep, figure: Callable[[Level], Measured | None]) -> list[tuple[float, Measured]]:
    found = ((level.load_gbps, figure(level)) for level in levels(study))
    return [(load_gbps, measured) for load_gbps, measured in found if measured is not None]


def interpolate(load_gbps: float, figures: Sequence[tuple[float, Measured]]) -> Measured:
    """Return a figure at a load (payload, Gbit/s), interpolated between figures in the order of their loads.

    Logarithms of figures and of intervals' ends are interpolated linearly. The interval is too wide rather than too
    narrow, because levels were measured independently. It is None if any interval is missing or reaches 0.
    """
    loads_gbps, measured = zip(*figures, strict=True)
    values, intervals = zip(*measured, strict=True)

    def at(known: Sequence[float]) -> float:
        return float(np.exp(np.interp(load_gbps, loads_gbps, np.log(known))))

    if None in intervals or min(low for low, _ in intervals) <= 0:
        return at(values), None
    lows, highs = zip(*intervals, strict=True)
    return at(values), (at(lows), at(highs))


def unloaded_level(study: JobSweep) -> Level | None:
    """Return the level without cross traffic; None if the sweep has no such level."""
    repetitions = study.loaded.levels.get(0.0)
    return _level(study, repetitions) if repetitions else None


def slowdown_near(study: JobSweep, load_gbps: float) -> Measured | None:
    """Return the mean iteration time near a load over that without load; None without either level."""
    level, without = level_near(study, load_gbps), unloaded_level(study)
    return ratio(level.mean_s, without.mean_s) if level and without else None


def _level(study: JobSweep, repetitions: Sequence[tuple[float, Array]]) -> Level:
    loads_gbps, times_s = zip(*repetitions, strict=True)
    load_gbps = float(np.mean(loads_gbps))
    return Level(load_gbps, times_s, is_exact=study.loaded.is_repeatable and load_gbps == 0)


def sweep_properties(study: JobSweep) -> dict[str, str]:
    """Return the properties by which expectations select a sweep: variant, job, model, traffic, transport, levels."""
    loaded = study.loaded
    own = {
        "variant": loaded.variant,
        "job": loaded.job_name,
        "profile": loaded.job.profile.name,
        "model": loaded.model,
        "traffic": loaded.traffic,
        "transport": loaded.transport,
    }
    return {name: str(level) for name, level in loaded.setting.levels.items()} | own


def case(study: JobSweep, measured: Measured) -> Case:
    """Return a sweep's figure as a case, with the sweep's name and properties."""
    return Case(study.name, *measured, sweep_properties(study))


def each_sweep(request: QuantityRequest, measure: Callable[[JobSweep], Measured | None]) -> list[Case]:
    """Return a case for each requested sweep for which `measure` returns a figure."""
    found = ((study, measure(study)) for study in request.sweeps)
    return [case(study, measured) for study, measured in found if measured is not None]


def average_by(cases: Sequence[Case], name: str) -> list[Case]:
    """Return a case for each value of the property `name`: the average of the cases that have the value."""
    groups: dict[str, list[Measured]] = {}
    for each in cases:
        groups.setdefault(each.properties[name], []).append((each.value, each.ci95))
    return [Case(kind, *average(each), {name: kind}) for kind, each in groups.items()]
