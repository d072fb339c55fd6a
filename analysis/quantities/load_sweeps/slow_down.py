# SPDX-License-Identifier: Apache-2.0
"""The slowdown of training under cross traffic, at the loads that Salamy calls 30 % and 80 %."""

from analysis.papers.salamy import HEAVY_GBPS, LIGHT_GBPS
from analysis.quantities import Case, QuantityRequest, quantity
from analysis.quantities.load_sweeps.sweep_levels import each_sweep, slowdown_near


@quantity("slow-down at 30 % load", unit="times", by="model")
def light(request: QuantityRequest) -> list[Case]:
    """Return the mean iteration time near a load of 8 Gbit/s over that without load."""
    return each_sweep(request, lambda study: slowdown_near(study, LIGHT_GBPS))


@quantity("slow-down at 80 % load", unit="times", by="model")
def heavy(request: QuantityRequest) -> list[Case]:
    """Return the mean iteration time near a load of 20 Gbit/s over that without load."""
    return each_sweep(request, lambda study: slowdown_near(study, HEAVY_GBPS))


@quantity("slow-down at 80 % load, at worst", unit="times", digits=1, by="model")
def worst(request: QuantityRequest) -> list[Case]:
    """Return, by model, the largest slowdown at 80 % load under any web-search traffic, over any transport."""
    found: dict[str, Case] = {}
    for each in heavy(request):
        model = each.properties["model"]
        if each.properties["traffic"] in ("consistent", "burst") and (
            model not in found or each.value > found[model].value
        ):
            found[model] = each
    return [Case(model, each.value, each.ci95, {"model": model}) for model, each in found.items()]
