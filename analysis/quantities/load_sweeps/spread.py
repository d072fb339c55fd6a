# SPDX-License-Identifier: Apache-2.0
"""The variation of iteration times at light and heavy loads."""

from collections.abc import Sequence

from analysis.papers.salamy import HEAVY_GBPS, LIGHT_GBPS
from analysis.quantities import Case, QuantityRequest, quantity
from analysis.quantities.load_sweeps.sweep_levels import average_by, each_sweep, level_near
from analysis.reading.cross_traffic.load_sweeps import JobSweep
from analysis.statistics.intervals import Array, Measured, average, estimate, ratio, transform


def _describe_average(cases: Sequence[Case]) -> str:
    number = int(cases[0].properties["cases"])
    return f"{cases[0].value:.0f} % in {'one case' if number == 1 else f'{number} cases'}"


@quantity("99 % tail above the mean at 80 % load", unit="%", digits=0, note=_describe_average)
def tail(request: QuantityRequest) -> list[Case]:
    """Return the excess of the 99 % tail over the mean near 20 Gbit/s, averaged over sweeps with enough iterations."""
    found = [level_near(study, HEAVY_GBPS) for study in request.sweeps]
    ratios = [ratio(level.p99_s, level.mean_s) for level in found if level and level.p99_s]
    if not ratios:
        return []
    above = transform(lambda times: 100 * (times - 1), average(ratios))
    return [Case("average", *above, properties={"cases": str(len(ratios))})]


@quantity("spread of iteration times at 30 % load", unit="%", by="traffic")
def light(request: QuantityRequest) -> list[Case]:
    """Return iteration times' standard deviation over their mean near 8 Gbit/s, averaged over a traffic's sweeps."""
    return _spread(request, LIGHT_GBPS)


@quantity("spread of iteration times at 80 % load", unit="%", digits=1, by="traffic")
def heavy(request: QuantityRequest) -> list[Case]:
    """Return iteration times' standard deviation over their mean near 20 Gbit/s, averaged over a traffic's sweeps."""
    return _spread(request, HEAVY_GBPS)


def _spread(request: QuantityRequest, load_gbps: float) -> list[Case]:
    def of(study: JobSweep) -> Measured | None:
        level = level_near(study, load_gbps)
        return estimate(level.repetitions_s, _relative_deviation) if level else None

    return average_by(each_sweep(request, of), "traffic")


def _relative_deviation(times_s: Array) -> float:
    return 100 * float(times_s.std() / times_s.mean())
