# SPDX-License-Identifier: Apache-2.0
"""Rules that a comparison of runs must keep, such as `p99 > 5 %`, judged together, with a JUnit report for CI."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple
from xml.etree import ElementTree as ET

import numpy as np
from rich.console import RenderableType

from analysis.expectations.results import Result
from analysis.reading.cells import CellTrials, experiment_of
from analysis.reading.disturbance import MARK
from analysis.reading.fidelity import is_repeatable
from analysis.render import screen
from analysis.render.tables import TONES, Cell, Column, Table, one_section
from analysis.reports.comparison import pairs
from analysis.statistics.intervals import MIN_REPETITIONS, MIN_TAIL, Array
from analysis.statistics.one_sided_tests import correct_by_holm, p_value_of_excess
from roundabout.core.errors import UsageError
from roundabout.core.verdict_words import Word
from roundabout.spec.condition import Condition, parse_condition
from roundabout.store import Run

ALPHA = 0.01
"""Probability with which a comparison of equal runs may break any of its rules."""
QUANTITIES: Mapping[str, Callable[[Array], float]] = {
    "median": np.median,
    "mean": np.mean,
    "p90": partial(np.quantile, q=0.9),
    "p99": partial(np.quantile, q=0.99),
}
"""Statistics of iteration times that rules may name."""


class Rule(NamedTuple):
    """A change that must not happen: a statistic of iteration times above, or below, run A's by more than a bound."""

    condition: Condition

    def __str__(self) -> str:
        return str(self.condition)

    @property
    def quantity(self) -> str:
        """Return the name of the statistic in `QUANTITIES`."""
        return self.condition.quantity

    def p_value(self, one: Sequence[Array], other: Sequence[Array]) -> float:
        """Return the probability (p) of the repetitions' iteration times if the rule is kept: `one` is A, `other` B."""
        a, b = ([float(QUANTITIES[self.quantity](each)) for each in side] for side in (one, other))
        if self.condition.is_upper:
            return p_value_of_excess(a, b, self.ratio)
        return p_value_of_excess(b, a, 1 / self.ratio)

    def is_broken(self, a: float, b: float) -> bool:
        """Return True if a statistic of exactly `a` in A and `b` in the other run breaks the rule."""
        return self.condition.is_met(b, a * self.ratio)

    @property
    def ratio(self) -> float:
        """Return the bound as a ratio of the other run's statistic to A's."""
        return 1 + self.condition.bound / 100


class RuleVerdict(Result):
    """The verdict on one rule of one job in one cell of a run, against A.

    `change` is the other run's statistic over A's, less 1. `chance` is p, corrected for all rules judged at once; it is
    0 or 1 for computed figures, which are exact.
    """

    rule: str
    run: str
    cell: str
    job: str
    change: float
    chance: float | None
    verdict: Word
    why: str = ""


class RuleCheck(NamedTuple):
    """The check of a rule on a job's iteration times in one cell, by repetition: `one` of A, `other` of `run`.

    `disturbed` names the runs whose trials of the cell were disturbed.
    """

    rule: Rule
    run: Run
    cell: CellTrials
    one: Sequence[Array]
    other: Sequence[Array]
    job: str
    exact: bool
    disturbed: tuple[str, ...]

    @property
    def missing_data(self) -> str:
        """Return the reason why the rule cannot be judged; an empty string if it can be."""
        if self.exact:
            return ""
        if self.disturbed:
            return f"trials were {MARK} in {' and '.join(self.disturbed)}"
        for side in (self.one, self.other):
            if len(side) < MIN_REPETITIONS:
                return f"{len(side)} repetitions, expected {MIN_REPETITIONS} at least"
            if self.rule.quantity == "p99" and (count := sum(map(len, side))) < MIN_TAIL:
                return f"{count} iterations, expected {MIN_TAIL} at least for a 99th percentile"
        return ""

    @property
    def figures(self) -> tuple[float, float]:
        """Return the rule's statistic over all iterations in A and in the other run."""
        quantity = QUANTITIES[self.rule.quantity]
        return float(quantity(np.concatenate(self.one))), float(quantity(np.concatenate(self.other)))

    def verdict(self, chance: float | None) -> RuleVerdict:
        """Return the verdict for the corrected p `chance`; None stands for a rule that cannot be judged."""
        a, b = self.figures
        return RuleVerdict(
            rule=str(self.rule),
            run=self.run.id,
            cell=self.cell.id.name,
            job=self.job,
            change=b / a - 1,
            chance=chance,
            verdict="inconclusive" if chance is None else "fail" if chance < ALPHA else "pass",
            why=self.missing_data,
        )


def parse_rule(text: str) -> Rule:
    """Return the rule in a text such as `p99 > 5 %`.

    Raises UsageError for a wrong text, or a bound of -100 % or less.
    """
    condition = parse_condition(text, tuple(QUANTITIES), "%")
    if condition.bound <= -100:
        raise UsageError(f"--fail-if: found {text!r}, expected a change of more than -100 %")
    return Rule(condition)


def judge_rules(rules: Sequence[Rule], one: Run, others: Sequence[Run]) -> list[RuleVerdict]:
    """Judge each rule of every job in every cell that A and another run share.

    p is corrected over all measured figures (Holm). Computed figures have no scatter and need no p.
    """
    exact = _is_exact(one)
    requested = [
        RuleCheck(
            each,
            other,
            cell,
            cell.repetitions(job),
            twin.repetitions(job),
            job,
            exact(cell) and its_exact(twin),
            _disturbed_runs((one, cell), (other, twin)),
        )
        for other in others
        for its_exact in [_is_exact(other)]
        for cell, twin, job in pairs(one, other)
        for each in rules
    ]
    able = [each for each in requested if not each.exact and not each.missing_data]
    chances = iter(correct_by_holm([each.rule.p_value(each.one, each.other) for each in able]))

    def chance(each: RuleCheck) -> float | None:
        if each.exact:
            return 0.0 if each.rule.is_broken(*each.figures) else 1.0
        return None if each.missing_data else next(chances)

    return [each.verdict(chance(each)) for each in requested]


def _disturbed_runs(*sides: tuple[Run, CellTrials]) -> tuple[str, ...]:
    return tuple(run.id for run, cell in sides if cell.disturbance is not None)


def _is_exact(run: Run) -> Callable[[CellTrials], bool]:
    """Return a predicate of a run's cells: True if a repetition would give the same, since no seed draws anything."""
    if not is_repeatable(run):
        return lambda _: False
    drawn = any(cell.spec.has_random_parts for cell in experiment_of(run).cells)
    return lambda cell: not cell.spec.has_random_parts and not (drawn and cell.spec.has_inputs)


def table(judged: Sequence[RuleVerdict]) -> RenderableType:
    """Return a table of all verdicts for the screen."""
    columns = (
        *(Column("rule", kind="words"), Column("", kind="words"), Column("job", kind="words")),
        *(Column("change", "+.1%"), Column("p-value", ".2g"), Column("", kind="words")),
    )
    several = len({each.run for each in judged}) > 1
    rows = (
        (
            Cell(each.rule),
            Cell(each.cell, note=each.run if several else ""),
            Cell(each.job),
            Cell(each.change),
            Cell(each.chance),
            _word(each),
        )
        for each in judged
    )
    return screen.table_renderable(
        Table(
            columns,
            one_section(rows),
            f"Rules, which fail where the p-value is below {ALPHA:.0%}",
            "p-value: the chance of such a change without a cause, corrected for all rules; 0 or 1 if exact",
        )
    )


def junit(judged: Sequence[RuleVerdict]) -> str:
    """Return JUnit XML with a test case for each rule, cell, job and run; inconclusive cases are marked as skipped."""
    count = Counter(each.verdict for each in judged)
    counted = {"tests": len(judged), "failures": count["fail"], "skipped": count["inconclusive"]}
    suite = ET.Element("testsuite", {"name": "roundabout compare"} | {key: str(each) for key, each in counted.items()})
    for each in judged:
        case = ET.SubElement(suite, "testcase", classname=f"{each.run}.{each.cell}", name=f"{each.job}: {each.rule}")
        if each.verdict == "fail":
            ET.SubElement(case, "failure", message=f"changed by {each.change:+.1%}, chance {each.chance:.2g}")
        elif each.why:
            ET.SubElement(case, "skipped", message=each.why)
    ET.indent(suite)
    return ET.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def _word(each: RuleVerdict) -> Cell:
    return Cell(each.verdict, note=each.why, tone=TONES[each.verdict])


def failed_rules(judged: Sequence[RuleVerdict]) -> Iterator[RuleVerdict]:
    """Yield the verdicts that are `fail`."""
    return (each for each in judged if each.verdict == "fail")
