# SPDX-License-Identifier: Apache-2.0
"""Verdicts on a run's expectations.

The interval of a figure decides. The verdict is `pass` if the whole interval is as expected, `fail` if none of it is,
else `inconclusive`. Expected is a tolerance around the paper's figure, a bound, or a place above the previous name's
interval. Without an interval the verdict is `inconclusive`, unless the run was computed without random parts, so that
its figures are exact. With several cases all must be as expected. Without a figure the verdict is `not measured`, and
so it is for results of papers that depend on what the testbed does not model.
A verdict is at most `inconclusive` if a cell of its variants and levels has only disturbed trials.
Nothing is judged if `--set` altered the experiment.
"""

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import repeat
from math import isfinite
from typing import Any

from analysis import papers
from analysis.expectations.expectations import Limits, ResolvedExpectation, describe_expected, resolve
from analysis.quantities import CachedReading, Case, Curve, Quantity, QuantityRequest, find_quantity
from analysis.reading.disturbance import list_cells
from analysis.statistics.intervals import Interval
from roundabout.core.errors import RoundaboutError
from roundabout.core.verdict_words import NOT_MEASURED, Word
from roundabout.spec.assembly.library import CATALOG, Library
from roundabout.spec.expectation import Expectation, Order
from roundabout.spec.experiment import Experiment
from roundabout.spec.loader import load_experiment


@dataclass(frozen=True)
class Part:
    """One figure of several: of a job, a column, or a point of a curve (at `x`).

    A field that does not apply is None, and so is an infinite figure, because JSON has no infinity. `tolerance` is the
    allowed distance from the paper's figure, in the unit.
    """

    name: str
    measured: float | None
    ci95: Interval | None
    verdict: Word
    paper: float | None = None
    tolerance: float | None = None
    at_least: float | None = None
    at_most: float | None = None
    x: float | None = None


@dataclass(frozen=True)
class Verdict:
    """An expectation, what was measured, and the verdict. Fields that do not apply to the kind of expectation are None.

    With several cases, `measured` is the case that deviates most, and `parts` holds all cases. `expected` and `found`
    are texts for people. `rows` are the scoreboard's rows that the verdict belongs to, and `disturbed` the cells with
    only disturbed trials on which it rests. `undecided` is the reason of an inconclusive verdict (`repetition_needs`).
    """

    kind: str
    what: str
    unit: str
    of: str | None
    over: str | None
    job: str | None
    at: Mapping[str, Any] | None
    only: Mapping[str, str | tuple[str, ...]] | None
    paper: float | None
    tolerance: float | None
    at_least: float | None
    at_most: float | None
    measured: float | None
    ci95: Interval | None
    verdict: Word
    basis: str | None
    source: str | None
    claim: str | None
    expected: str
    found: str
    rows: tuple[str, ...]
    parts: tuple[Part, ...]
    disturbed: tuple[str, ...] = ()
    undecided: str = ""

    @property
    def lacks_intervals(self) -> bool:
        """Return True if the verdict is inconclusive only because figures have no interval: repetitions are too few."""
        open_ = [part for part in self.parts if part.verdict == "inconclusive"]
        return self.verdict == "inconclusive" and all(part.ci95 is None for part in open_)

    @property
    def subject(self) -> str:
        """Return the figure that the expectation is about, as text."""
        of = f": {self.of}" if self.of else ""
        over = f" over {self.over}" if self.over else ""
        job = f", {self.job}" if self.job else ""
        at = "".join(f", {factor} {level}" for factor, level in (self.at or {}).items())
        only = "".join(f", {_list_names(names)}" for names in (self.only or {}).values())
        return f"{self.what}{of}{over}{job}{at}{only}"

    def record(self) -> dict[str, Any]:
        """Return the verdict as summary.json has it."""
        return asdict(self)


def _list_names(names: str | Sequence[str]) -> str:
    if isinstance(names, str):
        return names
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def judge(reading: CachedReading, study: str) -> tuple[Verdict, ...]:
    """Return the verdict on each expectation of the run's experiment and on each claim about its kind of `study`.

    Nothing is judged if `--set` altered the experiment, and no result that depends on what the testbed does not model.
    """
    return tuple(judge_expectation(reading, each) for each in expectations(reading.experiment, study))


def _why_not_judged(reading: CachedReading, rows: Collection[str]) -> str:
    """Return the reason why nothing is measured of an expectation about these rows; empty if it is judged."""
    changes = ", ".join(f"{path}={json.dumps(value)}" for path, value in reading.experiment.altered_fields.items())
    if changes:
        return f"not judged: changed by --set {changes}"
    return why_not_shown(reading.experiment.name, reading.testbed, rows)


def why_not_shown(experiment: str, testbed: str, rows: Collection[str]) -> str:
    """Return the reason why a testbed can show none of these rows; empty if it can show one, or without any row."""
    reasons = [papers.row_of(row).why_not_shown(experiment, testbed) for row in rows]
    return f"not shown: {reasons[0]}" if reasons and all(reasons) else ""


def expectations(experiment: Experiment, study: str) -> list[papers.Claim]:
    """Return the expectations of an experiment, and the papers' claims about every run of its kind of `study`."""
    return [*(papers.Claim(each) for each in _complete(experiment)), *papers.claims(study)]


def judge_expectation(reading: CachedReading, claim: papers.Claim) -> Verdict:
    """Return the verdict on the expectation of a claim, for the claim's rows with the measured cross traffic."""
    expectation = claim.expectation
    try:
        quantity, expected = find_quantity(expectation.what), resolve(expectation)
        unjudged = _why_not_judged(reading, (*expected.rows, *claim.rows))
        cases = [] if unjudged else _measure(reading, expectation, quantity)
        expected = replace(expected, by=expected.by or quantity.by)
        parts = tuple(_PARTS[expectation.kind](expected, cases))
        found = unjudged or _describe_findings(expectation, quantity, parts, cases)
        disturbed = _disturbed_cells(reading, expectation) if parts else ()
    except RoundaboutError as error:
        quantity, expected, cases, parts, found = None, ResolvedExpectation(), [], (), error.message
        disturbed = ()
    if disturbed:
        parts = tuple(replace(each, verdict=_at_most_inconclusive(each.verdict)) for each in parts)
        found += f"; inconclusive because disturbed: {list_cells(disturbed)}"
    kinds = {each.properties.get("traffic", "") for each in cases}
    word = combine([each.verdict for each in parts])
    worst = _finite(_worst_part(parts)) if parts and expectation.kind in ("value", "bound") else None
    return Verdict(
        kind="claim" if expectation.claim else expectation.kind,
        what=expectation.what,
        unit=quantity.unit if quantity else "",
        of=expectation.of,
        over=expectation.over,
        job=expectation.job,
        at=expectation.at,
        only=expectation.only,
        paper=expected.paper,
        tolerance=expected.tolerance,
        at_least=expected.limits.at_least,
        at_most=expected.limits.at_most,
        measured=worst.measured if worst else None,
        ci95=worst.ci95 if worst else None,
        verdict=word,
        basis=expectation.basis,
        source=expected.source,
        claim=expectation.claim,
        expected=describe_expected(expectation, expected, [part.name for part in parts if part.measured is not None]),
        found=found,
        rows=tuple(dict.fromkeys([*expected.rows, *claim.shows(kinds)])),
        parts=tuple(map(_finite, parts)),
        disturbed=disturbed,
    )


def _disturbed_cells(reading: CachedReading, expectation: Expectation) -> tuple[str, ...]:
    """Return the names of the cells with only disturbed trials on which a verdict may rest.

    These are the cells of the variants that the expectation names, or of all if it names none, at its levels.
    """
    by_variant = isinstance(expectation, Order) and expectation.by == "variant"
    named = {*(expectation.order if isinstance(expectation, Order) and by_variant else (expectation.of,))}
    named.add(expectation.over)
    everything = not by_variant and expectation.of is None
    return tuple(
        cell.name
        for cell in reading.disturbed
        if (everything or cell.variant in named) and cell.matches(expectation.at)
    )


def _at_most_inconclusive(word: Word) -> Word:
    return "inconclusive" if word in ("pass", "fail") else word


def _complete(experiment: Experiment) -> list[Expectation]:
    """Return the experiment's expectations; those without a basis, from older runs, as in the present catalog."""
    if all(each.basis for each in experiment.expect) or experiment.name not in Library().names(CATALOG):
        return list(experiment.expect)
    try:
        today = load_experiment(experiment.name).expect
    except RoundaboutError:
        return list(experiment.expect)

    def complete(old: Expectation) -> Expectation:
        found = next((each for each in today if _same(old, each, experiment)), old)
        return found.model_copy(update={"at": old.at})

    return [complete(old) for old in experiment.expect]


def _same(old: Expectation, new: Expectation, experiment: Experiment) -> bool:
    """Return True if both expect the same of cells. `experiment` is the old one, which may lack a factor of today."""
    place = ("kind", "what", "of", "over", "job")
    at = {factor: level for factor, level in (new.at or {}).items() if factor in experiment.factors}
    return (
        all(getattr(old, name) == getattr(new, name) for name in place)
        and (old.at or {}) == at
        and resolve(old).text == resolve(new).text
    )


def _measure(reading: CachedReading, expectation: Expectation, quantity: Quantity) -> list[Case] | list[Curve]:
    """Return the requested cases."""
    ordered = isinstance(expectation, Order) and expectation.by == "variant"
    variants = expectation.order if isinstance(expectation, Order) and ordered else (expectation.of,)
    answers: list[Any] = []
    for variant in variants:
        requested = QuantityRequest(reading, variant, expectation.over, expectation.job, expectation.at)
        answers += quantity.measure(requested)
    meant = [each for each in answers if _has(each.properties, expectation.only or {})]
    return [each.exactly for each in meant] if reading.is_exact else meant


def _has(properties: Mapping[str, str], only: Mapping[str, str | tuple[str, ...]]) -> bool:
    return all(
        properties.get(name) in ((wanted,) if isinstance(wanted, str) else wanted) for name, wanted in only.items()
    )


def _value_parts(expected: ResolvedExpectation, cases: Sequence[Case]) -> Iterator[Part]:
    assert expected.paper is not None
    for case in cases:
        yield _judge_near(case, expected.paper, expected)


def _bound_parts(expected: ResolvedExpectation, cases: Sequence[Case]) -> Iterator[Part]:
    for case in cases:
        yield judge_bounds(case, expected.limits)


def _row_parts(expected: ResolvedExpectation, cases: Sequence[Case]) -> Iterator[Part]:
    for name, column in expected.columns.items():
        own = _cases_named(name, expected, cases)
        if isinstance(column, Limits):
            ends = {"at_least": column.at_least, "at_most": column.at_most}
            yield from [judge_bounds(case, column, name) for case in own] or [
                Part(name, None, None, NOT_MEASURED, **ends)
            ]
        else:
            yield from [_judge_near(case, column, expected, name) for case in own] or [
                Part(name, None, None, NOT_MEASURED, column)
            ]


def _order_parts(expected: ResolvedExpectation, cases: Sequence[Case]) -> Iterator[Part]:
    """Yield the parts; none if a name is missing."""
    places = [_cases_named(name, expected, cases) for name in expected.order]
    if all(places):
        for name, before, own in zip(expected.order, [[], *places], places, strict=False):
            for case in own:
                yield Part(name, case.value, case.ci95, _compare_with_previous(case, before))


def _curve_parts(expected: ResolvedExpectation, curves: Sequence[Curve]) -> Iterator[Part]:
    assert expected.curve is not None
    for curve in curves:
        ends = zip(*map(expected.curve.compare_points, curve.ends), strict=True) if curve.ends else repeat(None)
        for (x, paper, measured), sides in zip(expected.curve.compare_points(curve.points), ends, strict=False):
            part = Part(curve.name, None, None, NOT_MEASURED, paper)
            if measured is not None:
                ci95 = (sides[0][2], sides[1][2]) if sides else None
                part = _judge_near(Case(curve.name, measured, ci95), paper, expected)
            yield replace(part, x=x)


_PARTS: dict[str, Callable[[ResolvedExpectation, Any], Iterator[Part]]] = {
    "value": _value_parts,
    "bound": _bound_parts,
    "row": _row_parts,
    "order": _order_parts,
    "sign": _row_parts,
    "curve": _curve_parts,
}


def _cases_named(name: str, expected: ResolvedExpectation, cases: Sequence[Case]) -> list[Case]:
    """Return the cases of that name."""
    return [case for case in cases if case.properties.get(expected.by or "", case.name) == name]


def _judge_near(case: Case, paper: float, expected: ResolvedExpectation, name: str | None = None) -> Part:
    off = expected.tolerance_of(paper)
    word = judge_interval(case.ci95, Limits(paper - off, paper + off))
    return Part(name or case.name, case.value, case.ci95, word, paper, off)


def judge_bounds(case: Case, limits: Limits, name: str | None = None) -> Part:
    """Return a case's verdict by limits: `inconclusive` if a limit lies inside its interval, or without an interval."""
    word = judge_interval(case.ci95, limits)
    return Part(name or case.name, case.value, case.ci95, word, at_least=limits.at_least, at_most=limits.at_most)


def _compare_with_previous(case: Case, before: Sequence[Case]) -> Word:
    """Judge whether a case lies above those of the name before it; open if intervals overlap."""
    others = [other.ci95 for other in before]
    if not others:
        return "pass"
    if case.ci95 is None or None in others:
        return "inconclusive"
    low, high = case.ci95
    if any(high < other[0] for other in others if other):
        return "fail"
    return "pass" if all(other[1] < low for other in others if other) else "inconclusive"


def judge_interval(interval: Interval | None, limits: Limits) -> Word:
    """Return `pass` if the whole interval is within limits, `fail` if none of it is, else `inconclusive`."""
    if interval is None:
        return "inconclusive"
    low, high = interval
    if limits.contains(low) and limits.contains(high):
        return "pass"
    return "fail" if limits.low > high or limits.high < low else "inconclusive"


def combine(words: Sequence[Word]) -> Word:
    """Return `fail` if any verdict is, else `inconclusive` if any is, else `pass` if any is, else `not measured`."""
    if "fail" in words:
        return "fail"
    if "inconclusive" in words:
        return "inconclusive"
    return "pass" if "pass" in words else "not measured"


def _finite(part: Part) -> Part:
    """Return the part without an infinite figure, which `found` describes in words."""
    return part if part.measured is None or isfinite(part.measured) else replace(part, measured=None, ci95=None)


def _worst_part(parts: Sequence[Part]) -> Part:
    """Return the part that is off most."""

    def off(part: Part) -> float:
        assert part.measured is not None
        if part.paper is not None:
            return abs(part.measured - part.paper)
        limits = Limits(part.at_least, part.at_most)
        return max(limits.low - part.measured, part.measured - limits.high)

    return max(parts, key=off)


def _describe_findings(
    expectation: Expectation, quantity: Quantity, parts: Sequence[Part], cases: Sequence[Any]
) -> str:
    """Describe the measurements in words."""
    known = [(each.name, each.measured) for each in parts if each.measured is not None]
    if not known:
        return ""
    if quantity.note:
        return quantity.note(cases)
    if expectation.kind == "curve":
        off = sorted(100 * abs(each.measured / each.paper - 1) for each in parts if each.measured and each.paper)
        return f"off by {off[0]:.0f} to {off[-1]:.0f} % at {_count(len(off), 'point')}" if off else ""
    if expectation.kind in ("row", "order", "sign"):
        return ", ".join(f"{name} {quantity.format(value)}" for name, value in known)
    if len(known) == 1:
        name, value = known[0]
        return f"{name} {quantity.format(value)}" if expectation.claim else quantity.format(value)
    values = [value for _, value in known]
    ends = sorted({quantity.format_number(value) for value in (min(values), max(values))}, key=float)
    against = [
        f"{each.name} {quantity.format(each.measured)}"
        for each in parts
        if each.measured is not None and each.verdict == "fail"
    ]
    where = f"; not so: {', '.join(against)}" if against else ""
    return f"{' to '.join(ends)} {quantity.unit}".rstrip() + f" in {len(values)} cases{where}"


def _count(number: int, what: str) -> str:
    return f"one {what}" if number == 1 else f"{number} {what}s"
