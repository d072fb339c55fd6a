# SPDX-License-Identifier: Apache-2.0
"""The number of repetitions that would decide an inconclusive verdict.

An interval of n repetitions is proportional to t / √n, with Student's t. A verdict is decided when each interval is
narrower than the distance of its figure from the nearest edge of what is expected. Figures are assumed to stay.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from analysis.expectations.expectations import Limits
from analysis.expectations.verdicts import Part, Verdict
from analysis.statistics.intervals import MIN_REPETITIONS, Interval, quantile_of_t
from roundabout.spec.experiment import MAX_REPETITIONS

Estimate = tuple[float, Interval]
Gaps = list[tuple[float, float]]
"""Distances of a figure from edges, each with the width of the interval towards the edge."""


def with_needs(verdicts: Iterable[Verdict], repetitions: int) -> tuple[Verdict, ...]:
    """Return the verdicts of a run, with the reason of each inconclusive one that rests on no disturbed trial."""
    return tuple(
        replace(each, undecided=describe_need(repetitions_needed(each.parts, repetitions)))
        if each.verdict == "inconclusive" and not each.disturbed
        else each
        for each in verdicts
    )


def can_be_decided(verdict: Verdict, repetitions: int) -> bool:
    """Return True if a verdict is inconclusive, and more repetitions than those done could decide it.

    A claim that is in no row of the scoreboard is left out, because it is no reason to extend a run.
    """
    is_counted = verdict.kind != "claim" or bool(verdict.rows)
    is_open = verdict.verdict == "inconclusive" and not verdict.disturbed
    return is_counted and is_open and repetitions_needed(verdict.parts, repetitions) < math.inf


def repetitions_needed(parts: Sequence[Part], repetitions: int) -> float:
    """Return the estimated number of repetitions that would decide an inconclusive verdict on `parts`.

    One part that fails is enough. Infinity means that repetitions cannot decide, because a figure has no interval
    despite enough of those done, one of width 0, or one of draws within fewer repetitions. `MAX_REPETITIONS` + 1 stands
    for more than an experiment can have.
    """
    passing, failing = [0.0], list[float]()
    for part, lower in _with_lower(parts):
        if part.verdict == "inconclusive":
            needed, fails = _need(part, lower, repetitions)
            (failing if fails else passing).append(needed)
    return min(failing, default=max(passing))


def describe_need(needed: float) -> str:
    """Return the reason of an inconclusive verdict, by the number of repetitions that would decide it."""
    if needed == math.inf:
        return "undecidable by repetitions"
    if needed == MIN_REPETITIONS:
        return f"too few repetitions: a 95 % interval takes {MIN_REPETITIONS}"
    number = f"more than {MAX_REPETITIONS}" if needed > MAX_REPETITIONS else f"about {needed:.0f}"
    return f"too few repetitions: {number} would decide"


def _need(part: Part, lower: Sequence[Part], repetitions: int) -> tuple[float, bool]:
    """Return the number of repetitions that would decide a part, and True if the part would fail then."""
    known = [
        (each.measured, each.ci95) for each in (part, *lower) if each.measured is not None and each.ci95 is not None
    ]
    if len(known) <= len(lower):
        return (MIN_REPETITIONS if repetitions < MIN_REPETITIONS else math.inf), False
    own, *others = known
    gaps = _gaps_to_lower(own, others) if others else _gaps_to_edges(own, _limits_of(part))
    fails = any(gap < 0 for gap, _ in gaps)
    # An interval of fewer repetitions is the scatter of draws, which repetitions leave as it is.
    if repetitions < MIN_REPETITIONS or any(width == 0 for _, width in gaps):
        return math.inf, fails
    allowed = min(abs(gap) / width for gap, width in gaps) * _width(repetitions)
    numbers = range(repetitions + 1, MAX_REPETITIONS + 1)
    return next((each for each in numbers if _width(each) < allowed), MAX_REPETITIONS + 1), fails


def _limits_of(part: Part) -> Limits:
    if part.paper is not None and part.tolerance is not None:
        return Limits(part.paper - part.tolerance, part.paper + part.tolerance)
    return Limits(part.at_least, part.at_most)


def _gaps_to_edges(own: Estimate, limits: Limits) -> Gaps:
    """Return the gaps to the edges inside the interval; they are negative for a figure outside."""
    value, (low, high) = own
    gaps = []
    if low <= limits.low <= high:
        gaps.append((value - limits.low, value - low if value >= limits.low else high - value))
    if low <= limits.high <= high:
        gaps.append((limits.high - value, high - value if value <= limits.high else value - low))
    return gaps


def _gaps_to_lower(own: Estimate, others: Sequence[Estimate]) -> Gaps:
    """Return the gaps to figures that must be lower and whose intervals overlap; the widths of both count."""
    value, (low, high) = own
    gaps = []
    for other, (other_low, other_high) in others:
        if other_low <= high and low <= other_high:
            widths = (value - low, other_high - other) if value >= other else (high - value, other - other_low)
            gaps.append((value - other, sum(widths)))
    return gaps


def _with_lower(parts: Sequence[Part]) -> Iterator[tuple[Part, list[Part]]]:
    """Yield each part with those that must be lower: those of the previous name, if the parts are an order."""
    names = list(dict.fromkeys(part.name for part in parts))
    for part in parts:
        is_order = part.paper is None and part.at_least is None and part.at_most is None
        place = names.index(part.name)
        yield part, [each for each in parts if is_order and place and each.name == names[place - 1]]


def _width(repetitions: int) -> float:
    """Return the half width of an interval, in standard deviations of the repetitions."""
    return quantile_of_t(repetitions) / math.sqrt(repetitions)
