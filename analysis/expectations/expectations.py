# SPDX-License-Identifier: Apache-2.0
"""Expectations in numbers, in which names of printed figures are replaced by the figures and their sources."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf, isfinite, nextafter
from typing import Any, cast

import numpy as np

from analysis import papers
from analysis.expectations.expectation_check import printed_names
from roundabout.core.errors import UsageError
from roundabout.spec.expectation import Bound, Bounds, Curve, Expectation, Order, Row, Sign, Value

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Limits:
    """The bounds of an expected figure; None stands for no bound."""

    at_least: float | None = None
    at_most: float | None = None

    @property
    def low(self) -> float:
        """Return the lower bound."""
        return -inf if self.at_least is None else self.at_least

    @property
    def high(self) -> float:
        """Return the upper bound."""
        return inf if self.at_most is None else self.at_most

    def contains(self, value: float) -> bool:
        """Return True if a figure is within the bounds."""
        return self.low <= value <= self.high

    def __str__(self) -> str:
        ends = (("at least", self.at_least), ("at most", self.at_most))
        if self.at_least is not None and self.at_least == self.at_most:
            return f"{self.at_least:g}"
        if self.at_least is not None and self.at_most is not None:
            return f"{self.at_least:g} to {self.at_most:g}"
        return "".join(f"{word} {end:g}" for word, end in ends if end is not None)


@dataclass(frozen=True)
class PrintedCurve:
    """Printed points, or a printed equation."""

    points: Points | Callable[[float], float]

    def compare_points(self, measured: Points) -> list[tuple[float, float, float | None]]:
        """Return points to compare: x, the paper's y, and the measured y or None.

        An equation is compared at each measured point; a printed point is compared with the line through measured
        points.
        """
        if callable(self.points):
            curve = self.points
            return [(x, curve(x), y) for x, y in measured if isfinite(curve(x))]
        xs, ys = np.array(measured).T if measured else np.empty((2, 0))
        return [
            (x, y, float(np.interp(x, xs, ys)) if len(xs) and xs[0] <= x <= xs[-1] else None) for x, y in self.points
        ]


@dataclass(frozen=True)
class ResolvedExpectation:
    """An expectation in numbers. `tolerance` applies to a single value; `source` and `rows` say where it is printed."""

    paper: float | None = None
    tolerance: float | None = None
    within: float | None = None
    limits: Limits = Limits()
    columns: Mapping[str, float | Limits] = field(default_factory=dict)
    curve: PrintedCurve | None = None
    order: tuple[str, ...] = ()
    by: str | None = None
    text: str = ""
    source: str | None = None
    rows: tuple[str, ...] = ()

    def tolerance_of(self, paper: float) -> float:
        """Return the allowed distance of a measured figure from the figure `paper`, in the quantity's unit."""
        return self.tolerance if self.tolerance is not None else abs(paper) * (self.within or 0.0)


def resolve(expectation: Expectation) -> ResolvedExpectation:
    """Return the expectation with its printed figures as numbers.

    Raises UsageError for an unknown name, or a figure of the wrong shape.
    """
    entries = [_take(name, shape) for _, name, shape in printed_names(expectation)]
    source, places = _sources(expectation, entries)
    known = _NUMBERS[expectation.kind](expectation)
    return replace(known, source=source, rows=places)


def describe_expected(expectation: Expectation, expected: ResolvedExpectation, names: Collection[str]) -> str:
    """Return the expectation as text; for a row only the columns `names`, if it has any of them."""
    columns = {name: each for name, each in expected.columns.items() if name in names}
    return _listed(columns, expectation) if columns and isinstance(expectation, Row) else expected.text


def _take(name: str, shape: str) -> papers.PrintedEntry:
    found = papers.find_printed(name)
    if found.entry.shape != shape:
        raise UsageError(f"found '{name}', a {found.entry.shape}, expected a {shape}")
    return found


def _figure(value: float | str | None) -> float | None:
    return (
        value
        if value is None or not isinstance(value, str)
        else cast("float", papers.find_printed(value).entry.figures)
    )


def _sources(expectation: Expectation, found: Sequence[papers.PrintedEntry]) -> tuple[str | None, tuple[str, ...]]:
    """Return where it is printed, and its rows of the scoreboard: the row that `source` names, or the figures' rows."""
    row = next((place for place in papers.rows() if place[1].id == expectation.source), None)
    sources = [each.source for each in found]
    if row:
        sources.append(f"{row[0].name}, {row[1].source}")
    elif expectation.source:
        sources = [expectation.source]
    rows = [row[1].id] if row else [each.row.id for each in found]
    return "; ".join(dict.fromkeys(sources)) or None, tuple(dict.fromkeys(rows))


def _value(expectation: Value) -> ResolvedExpectation:
    paper = _figure(expectation.paper) or 0.0
    tolerance = abs(paper) * expectation.within if expectation.within else expectation.tolerance
    return ResolvedExpectation(paper, tolerance, text=f"{paper:g} {_describe_tolerance(expectation)}")


def _bound(expectation: Bound) -> ResolvedExpectation:
    limits = _limits(expectation)
    return ResolvedExpectation(limits=limits, text=str(limits))


def _row(expectation: Row) -> ResolvedExpectation:
    printed = (
        papers.find_printed(expectation.row).entry.figures if isinstance(expectation.row, str) else expectation.row
    )
    row = cast("Mapping[str, float | str | Bounds]", printed)
    columns = {name: _limits(each) if isinstance(each, Bounds) else _figure(each) or 0.0 for name, each in row.items()}
    return ResolvedExpectation(
        tolerance=expectation.tolerance,
        within=expectation.within,
        columns=columns,
        by=expectation.by,
        text=_listed(columns, expectation),
    )


def _listed(columns: Mapping[str, float | Limits], expectation: Row) -> str:
    texts = [f"{name} {each if isinstance(each, Limits) else f'{each:.4g}'}" for name, each in columns.items()]
    return f"{', '.join(texts)} {_describe_tolerance(expectation)}"


def _curve(expectation: Curve) -> ResolvedExpectation:
    entry = papers.find_printed(expectation.curve).entry if isinstance(expectation.curve, str) else None
    points: Any = entry.figures if entry else expectation.curve
    return ResolvedExpectation(
        tolerance=expectation.tolerance,
        within=expectation.within,
        curve=PrintedCurve(points),
        text=f"{entry.what if entry else f'{len(points)} points'} {_describe_tolerance(expectation)}",
    )


def _order(expectation: Order) -> ResolvedExpectation:
    return ResolvedExpectation(order=expectation.order, by=expectation.by, text=" < ".join(expectation.order))


def _sign(expectation: Sign) -> ResolvedExpectation:
    sides = {"above": Limits(at_least=nextafter(1, inf)), "below": Limits(at_most=nextafter(1, -inf))}
    columns = {name: sides[side] for name, side in expectation.sign.items()}
    text = ", ".join(f"{name} {side} 1" for name, side in expectation.sign.items())
    return ResolvedExpectation(columns=columns, by=expectation.by, text=text)


_NUMBERS: Mapping[str, Callable[[Any], ResolvedExpectation]] = {
    "value": _value,
    "bound": _bound,
    "row": _row,
    "curve": _curve,
    "order": _order,
    "sign": _sign,
}


def _limits(bounds: Bounds | Bound) -> Limits:
    return Limits(_figure(bounds.at_least), _figure(bounds.at_most))


def _describe_tolerance(expectation: Value | Row | Curve) -> str:
    return f"± {expectation.tolerance:g}" if expectation.within is None else f"± {100 * expectation.within:g} %"
