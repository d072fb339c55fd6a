# SPDX-License-Identifier: Apache-2.0
"""Choice of n, and whether to fit C: the model that best predicts a level left out."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from analysis.statistics.degradation.fit import Fit, fit_model, search_ranges
from analysis.statistics.degradation.model import EXPONENTS, safe_exp
from analysis.statistics.degradation.resampling import redraw_fits
from analysis.statistics.degradation.shapes import Ranges, search_shapes
from analysis.statistics.degradation.sweep import Sweep
from analysis.statistics.intervals import Array, Measured, percentiles95


@dataclass(frozen=True)
class Candidate:
    """A model's fixed n and C; a coefficient of None is fitted."""

    n: float | None
    capacity_gbps: float | None


@dataclass(frozen=True, eq=False)
class Choice:
    """The chosen model, and the candidates with their typical misses of a level left out, best first.

    A miss of 0.1 means that predictions are off by a tenth. `shares` are the shares of redrawn sweeps that choose each
    candidate; None without redrawn sweeps.
    """

    fit: Fit
    misses: dict[Candidate, float]
    shares: dict[Candidate, float] | None = None


def candidates(link_gbps: float) -> list[Candidate]:
    """Return models with Salamy's three n and a fitted n at C = the link's rate, and with Salamy's n at a fitted C.

    n and C trade off so closely that a sweep of a dozen levels cannot distinguish them.
    """
    return [
        *(Candidate(n, link_gbps) for n in sorted(EXPONENTS.values())),
        Candidate(None, link_gbps),
        *(Candidate(n, None) for n in sorted(EXPONENTS.values())),
    ]


def choose(sweep: Sweep, among: Sequence[Candidate] | None = None, *, seed: int = 1) -> Choice:
    """Choose the candidate with the least leave-one-level-out error.

    Intervals cover the choices and fits of sweeps redrawn with `seed` (resampling.py). The first and the last level are
    left out in turn too, so a model that extrapolates badly is penalized. Raises DegradationError with too few levels
    for a candidate.
    """
    among = candidates(sweep.link_gbps) if among is None else among
    misses = {each: left_out_miss(sweep, each) for each in among}
    ranked = dict(sorted(misses.items(), key=lambda item: item[1]))
    best = next(iter(ranked))
    fitted = fit_model(sweep, n=best.n, capacity_gbps=best.capacity_gbps)
    again = redraw_fits(sweep, [search_ranges(sweep, each.n, each.capacity_gbps) for each in among], seed)
    if again is None:
        return Choice(fitted, ranked)
    shares = {each: again.share(place) for place, each in enumerate(among)}
    return Choice(fitted.with_choice_uncertainty(again), ranked, shares)


def n_of_best(choice: Choice) -> Measured | None:
    """Return n, with its interval, of the best candidate among those with fixed n and C; None without such."""
    held = {each: each.n for each in choice.misses if each.n is not None and each.capacity_gbps is not None}
    if not held:
        return None
    best = next(iter(held.values()))
    again = choice.fit.redrawn
    if again is None or choice.shares is None:
        return best, None
    places = {place: held[each] for place, each in enumerate(choice.shares) if each in held}
    chosen = again.best_of(list(places))
    return best, percentiles95(np.array([places[place] for place in chosen.tolist()]))


def left_out_miss(sweep: Sweep, candidate: Candidate) -> float:
    """Return the typical miss of a level's mean by fits without the level: exp of the rms error of log t, less 1.

    Raises DegradationError with too few levels for the candidate.
    """
    ranges = search_ranges(sweep, candidate.n, candidate.capacity_gbps)
    loads_gbps, log_t = sweep.loads_gbps, np.log(sweep.means_s)
    errors = [log_t[left] - _predict_left_out(loads_gbps, log_t, ranges, left) for left in range(len(loads_gbps))]
    return float(safe_exp(np.sqrt(np.mean(np.square(errors)))) - 1)


def _predict_left_out(loads_gbps: Array, log_t: Array, ranges: Ranges, left: int) -> float:
    others = np.arange(len(loads_gbps)) != left
    best = search_shapes(loads_gbps[others], log_t[others], ranges).best
    return float(best.log_t((best.gap_gbps + ranges.top_gbps - loads_gbps[left]) ** -best.n))
