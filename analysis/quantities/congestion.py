# SPDX-License-Identifier: Apache-2.0
"""Where congestion first dominates, what the link carries there, and what it leaves unused beyond."""

import numpy as np

from analysis.quantities import Asked, Case, quantity
from analysis.quantities._sweeps import case, each_sweep
from analysis.studies.load_sweep.sweeps import JobSweep


@quantity("load at the congestion point", unit="Gbit/s", digits=1, by="model")
def load(asked: Asked) -> list[Case]:
    """Load where the line through the first levels and the tangent to the next ones cross (Salamy, Appendix A.2)."""
    return [
        case(study, study.congestion.crossing_gbps, study.congestion.crossing_gbps_ci95)
        for study in asked.sweeps
        if study.congestion
    ]


@quantity("data at the congestion point above theory", unit="%", digits=0, signed=True, by="model")
def above_theory(asked: Asked) -> list[Case]:
    """By how much more the link could carry in an iteration there than an iteration sends (equation 3.1)."""
    return each_sweep(asked, _above)


@quantity("bandwidth unused at the heaviest load", unit="Gbit/s", by="model")
def unused(asked: Asked) -> list[Case]:
    """What cross traffic leaves less what iterations need, at the heaviest load measured."""
    return each_sweep(asked, lambda study: float(study.deltas_gbps[-1]) if len(study.deltas_gbps) else None)


@quantity("bandwidth unused when saturated", unit="Gbit/s", by="model")
def spare(asked: Asked) -> list[Case]:
    """The same, the mean of the levels from the congestion point on."""
    return each_sweep(asked, lambda study: study.spare_gbps)


@quantity("bandwidth unused when saturated, more than under iperf", unit="Gbit/s", signed=True, by="model")
def more_spare(asked: Asked) -> list[Case]:
    """The same under web-search traffic, less that of the model under iperf."""
    of = {(each.properties["model"], each.properties["traffic"]): each for each in spare(asked)}
    return [
        Case(f"{model}, {traffic}", each.value - of[model, "iperf"].value, properties=each.properties)
        for (model, traffic), each in of.items()
        if traffic != "iperf" and (model, "iperf") in of
    ]


@quantity("share of the link unused when saturated", unit="%", digits=1, by="traffic")
def unused_share(asked: Asked) -> list[Case]:
    """Bandwidth unused when saturated over what the link carries; by traffic, the mean of models."""
    found: dict[str, list[float]] = {}
    for study in asked.sweeps:
        if study.spare_gbps is not None:
            found.setdefault(study.loaded.traffic, []).append(100 * study.spare_gbps / study.loaded.link_gbps)
    return [Case(traffic, float(np.mean(each)), properties={"traffic": traffic}) for traffic, each in found.items()]


def _above(study: JobSweep) -> float | None:
    point = study.congestion
    return 100 * (point.demand_mb / study.loaded.data_mb - 1) if point else None
