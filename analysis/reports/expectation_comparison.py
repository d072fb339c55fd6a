# SPDX-License-Identifier: Apache-2.0
"""Expectations of one experiment on several testbeds, matched by their content, and their figures line by line."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from analysis.expectations.expectations import Limits
from analysis.expectations.results import Result
from analysis.expectations.verdicts import Part, Verdict
from analysis.quantities import all_quantities
from analysis.reading.disturbance import MARK
from analysis.statistics.intervals import Interval
from roundabout.core.verdict_words import NOT_MEASURED, Word
from roundabout.spec import Experiment

MAX_PARTS = 8
"""Largest number of figures of an expectation that get a line each. One with more has one line, in words."""
UNCOMPARED = ("document", "repetitions", "seed", "set")
"""Fields of an experiment that change how much is measured, and not what, and its text, whose content the others have.
"""

STATED = ("claim", "what", "of", "over", "job", "at", "only", "source")
"""Fields of a verdict that name its figure."""

Judged = tuple[Experiment, Sequence[Verdict]]


class ComparedExpectation(Result):
    """An expectation, or a claim in words, with each testbed's verdict; testbeds that lack it are left out."""

    about: str
    claim: str | None
    expected: str
    unit: str
    basis: str | None
    source: str | None
    testbeds: dict[str, Verdict]

    @property
    def note(self) -> str:
        """Return the basis, and the testbeds on which the verdict rests on disturbed trials."""
        kinds = [kind for kind, each in self.testbeds.items() if each.disturbed]
        return "; ".join([*filter(None, [self.basis]), *([f"{MARK}: {', '.join(kinds)}"] if kinds else [])])

    @property
    def is_measured(self) -> bool:
        """Return True if a testbed has a figure."""
        return any(each.verdict != NOT_MEASURED for each in self.testbeds.values())


@dataclass(frozen=True)
class LineFigure:
    """A testbed's figure and its interval's ends as text, and its verdict.

    `measured` is None for a finding in words.
    """

    text: str
    verdict: Word
    interval: tuple[str, ...] = ()
    measured: float | None = None
    ci95: Interval | None = None


@dataclass(frozen=True)
class ExpectationLine:
    """One figure that a paper prints, beside each testbed's. `part` names it if its expectation has several.

    `about` and `note` are empty but on an expectation's first line. `tolerance` is the allowed distance from `paper`;
    `at_least` and `at_most` are bounds instead.
    """

    about: str
    part: str
    paper_text: str
    note: str
    figures: Mapping[str, LineFigure] = field(default_factory=dict)
    paper: float | None = None
    tolerance: float | None = None
    tolerance_text: str = ""
    subject: str = ""
    at_least: float | None = None
    at_most: float | None = None

    @property
    def name(self) -> str:
        """Return the line's name below the lines before it: that of its part, after an expectation's first line."""
        return self.part if self.part and not self.about else self.subject


def match_expectations(judged: Mapping[str, Judged]) -> tuple[ComparedExpectation, ...]:
    """Return every expectation of these experiments, by testbed, with the testbeds that have the same one.

    Two are the same if their documents state the same, apart from the basis. Claims are the same by their words.
    """
    return _match(
        {
            testbed: [(_content(experiment, place, each), each) for place, each in enumerate(verdicts)]
            for testbed, (experiment, verdicts) in judged.items()
        }
    )


def match_verdicts(judged: Mapping[str, Sequence[Verdict]]) -> tuple[ComparedExpectation, ...]:
    """Return every expectation of these verdicts of one experiment, by testbed, where no experiment file is at hand.

    Two are the same if they name the same figure of the same cells and expect the same.
    """
    names = (*STATED, "kind", "expected")
    return _match(
        {
            testbed: [(json.dumps([getattr(each, name) for name in names], default=str), each) for each in verdicts]
            for testbed, verdicts in judged.items()
        }
    )


def _match(stated: Mapping[str, Sequence[tuple[str, Verdict]]]) -> tuple[ComparedExpectation, ...]:
    """Return verdicts of all testbeds together where their content is the same, the first with the first and so on."""
    found: dict[str, dict[str, Verdict]] = {}
    for testbed, own in stated.items():
        seen = Counter[str]()
        for content, verdict in own:
            seen[content] += 1
            found.setdefault(f"{content} {seen[content]}", {})[testbed] = verdict
    return tuple(_compared(each) for each in found.values())


def changed_fields(experiments: Sequence[Experiment]) -> tuple[str, ...]:
    """Return the fields in which these documents of an experiment differ, apart from UNCOMPARED."""
    documents = [each.model_dump(mode="json", by_alias=True) for each in experiments]
    names = dict.fromkeys(name for each in documents for name in each if name not in UNCOMPARED)
    return tuple(name for name in names if any(each.get(name) != documents[0].get(name) for each in documents))


def expectation_lines(compared: Sequence[ComparedExpectation]) -> Iterator[ExpectationLine]:
    """Yield a line for each printed figure of each expectation, or one line for a curve and for many figures."""
    for each in compared:
        parts = _parts_by_name(each)
        if parts is None:
            figures = {
                testbed: LineFigure(verdict.found if verdict.verdict != NOT_MEASURED else "", verdict.verdict)
                for testbed, verdict in each.testbeds.items()
            }
            yield ExpectationLine(each.about, "", each.expected, each.note, figures, subject=each.about)
            continue
        for place, (name, own) in enumerate(parts.items()):
            yield _line(each, name if len(parts) > 1 else "", own, is_first=place == 0)


def _content(experiment: Experiment, place: int, verdict: Verdict) -> str:
    """Return what the expectation at this place states, as text that is the same for the same statement."""
    if place < len(experiment.expect):
        stated = experiment.expect[place].model_dump(mode="json", by_alias=True, exclude={"basis"}, exclude_none=True)
    else:
        stated = {name: getattr(verdict, name) for name in STATED}
    return json.dumps(stated, sort_keys=True, default=str)


def _compared(testbeds: dict[str, Verdict]) -> ComparedExpectation:
    verdicts = list(testbeds.values())
    first = next((each for each in verdicts if each.verdict != NOT_MEASURED), verdicts[0])
    return ComparedExpectation(
        about=first.subject,
        claim=first.claim,
        expected=first.expected,
        unit=first.unit,
        basis=first.basis,
        source=first.source,
        testbeds=testbeds,
    )


def _parts_by_name(compared: ComparedExpectation) -> dict[str, dict[str, Part]] | None:
    """Return the figures by name and testbed, without those that none measured; None if one line has them all."""
    found: dict[str, dict[str, Part]] = {}
    for testbed, verdict in compared.testbeds.items():
        for part in verdict.parts:
            if part.x is not None or testbed in found.get(part.name, {}):
                return None
            found.setdefault(part.name, {})[testbed] = part
    known = {name: own for name, own in found.items() if any(each.verdict != NOT_MEASURED for each in own.values())}
    return known if 0 < len(known) <= MAX_PARTS else None


def _line(compared: ComparedExpectation, name: str, parts: Mapping[str, Part], *, is_first: bool) -> ExpectationLine:
    known = next((each for each in parts.values() if each.tolerance is not None), next(iter(parts.values())))
    figures = {testbed: _figure(verdict, parts.get(testbed)) for testbed, verdict in compared.testbeds.items()}
    return ExpectationLine(
        about=compared.about if is_first else "",
        part=name,
        paper_text=_paper_text(compared, known) or (compared.expected if is_first else ""),
        note=compared.note if is_first else "",
        figures=figures,
        paper=known.paper,
        tolerance=known.tolerance,
        tolerance_text=f"± {known.tolerance:.3g} {_tolerance_unit(compared)}".rstrip() if known.tolerance else "",
        subject=f"{compared.about}{f', {name}' if name else ''}",
        at_least=known.at_least,
        at_most=known.at_most,
    )


def _paper_text(compared: ComparedExpectation, part: Part) -> str:
    """Return a printed figure, or its bounds, with the unit unless a tolerance has it; empty for an order."""
    text = str(Limits(part.at_least, part.at_most)) if part.paper is None else f"{part.paper:.4g}"
    has_unit = not part.tolerance or _unit(compared) != _tolerance_unit(compared)
    return f"{text} {_unit(compared) if has_unit else ''}".strip() if text else ""


def _unit(compared: ComparedExpectation) -> str:
    return "" if compared.unit == "times" else compared.unit


def _tolerance_unit(compared: ComparedExpectation) -> str:
    """Return the tolerance's unit: points for a percentage, because `10 ± 20 %` would look relative."""
    return "points" if compared.unit == "%" else _unit(compared)


def _figure(verdict: Verdict, part: Part | None) -> LineFigure:
    if part is None or part.verdict == NOT_MEASURED:
        return LineFigure("", NOT_MEASURED)
    if part.measured is None:  # infinite, which words describe
        return LineFigure(verdict.found, part.verdict)
    text = _number(verdict.what, part.measured)
    ends = part.ci95 if part.ci95 and part.ci95[0] < part.ci95[1] else None
    interval = tuple(_number(verdict.what, end) for end in ends) if ends else ()
    return LineFigure(text, part.verdict, interval, part.measured, part.ci95)


def _number(what: str, value: float) -> str:
    """Return a figure with the quantity's digits; a quantity of a plugin that is gone has four."""
    quantity = all_quantities().get(what)
    return quantity.format_number(value) if quantity else f"{value:.4g}"
