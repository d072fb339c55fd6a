# SPDX-License-Identifier: Apache-2.0
"""Fits of iteration time against load: t = A exp(B / (C - BW)^n)."""

from collections.abc import Sequence

from analysis.quantities import Case, QuantityRequest, quantity
from analysis.quantities.load_sweeps.sweep_levels import each_sweep, sweep_properties
from analysis.reading.cross_traffic.load_sweeps import JobSweep
from analysis.statistics.degradation.model import EXPONENTS
from analysis.statistics.degradation.model_choice import n_of_best
from analysis.statistics.intervals import Measured, exact, transform


@quantity("R² of the fit", digits=3, by="model")
def r_squared(request: QuantityRequest) -> list[Case]:
    """Return R^2 of log t over the levels, for the fit that best predicts levels left out."""
    return each_sweep(request, lambda study: exact(study.fit.r_squared.log) if study.fit else None)


@quantity("fit with Salamy's n and C", by="coefficient", digits=3)
def as_printed(request: QuantityRequest) -> list[Case]:
    """Return A (s) and B of a fit with Salamy's n and C for the same model, traffic and transport."""
    cases = []
    for study in request.sweeps:
        if study.as_printed and (fit := study.as_printed.fit):
            for name, found in (("A", fit.a_s), ("B", fit.b)):
                own = sweep_properties(study) | {"coefficient": name}
                cases.append(Case(f"{study.name}, {name}", found.value, found.ci95, own))
    return cases


def _kinds(cases: Sequence[Case]) -> str:
    found: dict[str, list[bool]] = {}
    for each in cases:
        found.setdefault(each.properties["traffic"], []).append(each.value == 1)
    counts = "; ".join(f"{kind} in {sum(each)} of {len(each)}" for kind, each in found.items())
    return f"predicts left-out levels best of the three under {counts}"


@quantity("n of the best fit over Salamy's", by="model", note=_kinds)
def exponent(request: QuantityRequest) -> list[Case]:
    """Return n of the fit that best predicts levels left out (n = 1/2, 1 or 2, C fixed), over Salamy's n."""

    def of(study: JobSweep) -> Measured | None:
        best = study.choice and n_of_best(study.choice)
        theirs = EXPONENTS.get(study.loaded.traffic)
        return transform(lambda n: n / theirs, best) if best and theirs else None

    return each_sweep(request, of)
