# SPDX-License-Identifier: Apache-2.0
"""Burst against consistent cross traffic, and TCP against RDMA: the same model, beside each other."""

from collections.abc import Callable, Sequence

from analysis.papers.salamy import HEAVY_GBPS, LIGHT_GBPS
from analysis.quantities import Asked, Case, quantity
from analysis.quantities._sweeps import Level, near


@quantity("burst over consistent traffic, mean at 30 % load", unit="times", by="model")
def means(asked: Asked) -> list[Case]:
    """Mean iteration time near 8 Gbit/s of burst traffic over that of consistent traffic, by model and transport."""
    return _burst_over_consistent(asked, LIGHT_GBPS, lambda level: level.mean_s)


@quantity("burst over consistent traffic, 99 % tail at 80 % load", unit="times", by="model")
def tails(asked: Asked) -> list[Case]:
    """99 % tail near 20 Gbit/s of burst traffic over that of consistent traffic, by model and transport."""
    return _burst_over_consistent(asked, HEAVY_GBPS, lambda level: level.p99_s)


def _loads(cases: Sequence[Case]) -> str:
    return "TCP takes " + ", ".join(f"{each.value:.2f} times as long {each.properties['load']}" for each in cases)


@quantity("TCP over RDMA", unit="times", by="load", note=_loads)
def transports(asked: Asked) -> list[Case]:
    """Mean iteration time under consistent traffic over TCP, over that over RDMA; without load, and near 20 Gbit/s."""
    own = [study for study in asked.sweeps if study.loaded.traffic == "consistent"]
    of = {(study.loaded.model, study.loaded.transport): study for study in own}
    cases = []
    for model in dict.fromkeys(model for model, _ in of):
        pair = [of[model, transport] for transport in ("TCP", "RDMA") if (model, transport) in of]
        for name, load_gbps in (("without load", 0.0), ("at 80 % load", HEAVY_GBPS)):
            found = [near(study, load_gbps) for study in pair]
            if len(found) == 2 and found[0] and found[1]:
                ratio = found[0].mean_s / found[1].mean_s
                cases.append(Case(f"{model} {name}", ratio, properties={"model": model, "load": name}))
    return cases


def _burst_over_consistent(asked: Asked, load_gbps: float, figure: Callable[[Level], float | None]) -> list[Case]:
    of = {
        (study.loaded.model, study.loaded.transport, study.loaded.traffic): near(study, load_gbps)
        for study in asked.sweeps
    }
    cases = []
    for (model, transport, traffic), burst in of.items():
        consistent = of.get((model, transport, "consistent"))
        if traffic == "burst" and burst and consistent:
            ours, theirs = figure(burst), figure(consistent)
            if ours is not None and theirs is not None:
                own = {"model": model, "transport": transport}
                cases.append(Case(f"{model}, {transport}", ours / theirs, properties=own))
    return cases
