# SPDX-License-Identifier: Apache-2.0
"""Burst against consistent cross traffic, and TCP against RDMA, for the same model."""

from collections.abc import Callable, Sequence

from analysis.papers.salamy import HEAVY_GBPS, LIGHT_GBPS
from analysis.quantities import Case, QuantityRequest, quantity
from analysis.quantities.load_sweeps.sweep_levels import Level, level_near, ratio_at_equal_load, sweep_properties
from analysis.reading.cells import CellId
from analysis.reading.cross_traffic.load_sweeps import JobSweep
from analysis.statistics.intervals import Measured, ratio

CARRIED = 0.8
"""Salamy's heavy load, 20 of 25 Gbit/s, as a share of the link's payload rate."""


@quantity("burst over consistent traffic, mean at 30 % load", unit="times", by="model")
def means(request: QuantityRequest) -> list[Case]:
    """Return the mean iteration time under burst traffic over that under consistent traffic, at 8 Gbit/s of payload."""
    return _burst_over_consistent(request, lambda _: LIGHT_GBPS, _mean)


@quantity("burst over consistent traffic, 99 % tail at 80 % load", unit="times", by="model")
def tails(request: QuantityRequest) -> list[Case]:
    """Return the 99 % tail under burst traffic over that under consistent traffic, at 20 Gbit/s of payload."""
    return _burst_over_consistent(request, lambda _: HEAVY_GBPS, _tail)


@quantity("burst over consistent traffic, 99 % tail at 80 % of what the link carries", unit="times", by="model")
def tails_of_link(request: QuantityRequest) -> list[Case]:
    """Return the 99 % tail under burst over that under consistent traffic, at 80 % of the link's payload rate."""
    return _burst_over_consistent(request, lambda study: CARRIED * study.loaded.link_gbps, _tail)


def _loads(cases: Sequence[Case]) -> str:
    return "TCP takes " + ", ".join(f"{each.value:.2f} times as long {each.properties['load']}" for each in cases)


@quantity("TCP over RDMA", unit="times", by="load", note=_loads)
def transports(request: QuantityRequest) -> list[Case]:
    """Return the ratio of mean iteration times with TCP and with RDMA, without load and near 20 Gbit/s."""
    own = [study for study in request.sweeps if study.loaded.traffic == "consistent"]
    of = {(study.loaded.model, study.loaded.transport): study for study in own}
    cases = []
    for model in dict.fromkeys(model for model, _ in of):
        pair = [of[model, transport] for transport in ("TCP", "RDMA") if (model, transport) in of]
        for name, load_gbps in (("without load", 0.0), ("at 80 % load", HEAVY_GBPS)):
            found = [level_near(study, load_gbps) for study in pair]
            if len(found) == 2 and found[0] and found[1]:
                times = ratio(found[0].mean_s, found[1].mean_s)
                cases.append(Case(f"{model} {name}", *times, properties={"model": model, "load": name}))
    return cases


def _mean(level: Level) -> Measured:
    return level.mean_s


def _tail(level: Level) -> Measured | None:
    return level.p99_s


def _burst_over_consistent(
    request: QuantityRequest, load_gbps: Callable[[JobSweep], float], figure: Callable[[Level], Measured | None]
) -> list[Case]:
    """Return the ratios at equal measured load of sweeps that differ in the kind of traffic only."""
    bursts = [study for study in request.sweeps if study.loaded.traffic == "burst"]
    partners = {_partner_key(study): study for study in request.sweeps if study.loaded.traffic == "consistent"}
    cases = []
    for burst in bursts:
        partner = partners.get(_partner_key(burst))
        if partner and (found := ratio_at_equal_load(burst, partner, load_gbps(burst), figure)):
            equal_gbps, measured = found
            own = sweep_properties(burst) | {"load": f"{equal_gbps:.1f} Gbit/s"}
            cases.append(Case(f"{burst.loaded.model}, {burst.loaded.transport}", *measured, own))
    return cases


def _partner_key(study: JobSweep) -> tuple[CellId, str, str, str]:
    loaded = study.loaded
    return loaded.setting.without_factor("variant"), loaded.job_name, loaded.model, loaded.transport
