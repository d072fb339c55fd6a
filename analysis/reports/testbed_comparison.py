# SPDX-License-Identifier: Apache-2.0
"""Comparison of testbeds: one run of an experiment on each of them, side by side, beside what papers print."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from analysis.expectations.results import DisturbedTrial, InvalidTrial, JobCell, Result, Summary, Testbed
from analysis.expectations.verdicts import Verdict
from analysis.reading.cells import CellId, by_group, experiment_of
from analysis.reading.disturbance import MARK
from analysis.render import screen
from analysis.render.tables import TONES, Cell, Column, NumberFormat, Section, Table, one_section
from analysis.reports.comparison import CompareError
from analysis.reports.expectation_comparison import (
    ComparedExpectation,
    LineFigure,
    changed_fields,
    expectation_lines,
    match_expectations,
)
from analysis.reports.scoreboard import is_unaltered
from analysis.reports.summary import stored_or_new
from analysis.statistics.intervals import Interval
from roundabout.core.errors import RoundaboutError
from roundabout.core.milliseconds import format_ms
from roundabout.core.verdict_words import NOT_MEASURED
from roundabout.spec.base import Level
from roundabout.store import Run

ORDER = ("fluid", "packets", "lab", "rack")
"""Testbeds by growing fidelity; testbeds of plugins come last."""
MARKS = "✓ pass  ✗ fail  ? inconclusive  - not measured; 95 % intervals below figures"
MEDIANS = "Median iteration time in ms, with 95 % intervals"
SPEEDUPS = "Speed-up of the median over the same testbed's baseline"


class TestbedRun(Result):
    """The experiment's run on one testbed. Of its `trials`, those are valid that are neither invalid nor disturbed."""

    run: str
    testbed: Testbed
    trials: int
    invalid_trials: tuple[InvalidTrial, ...]
    disturbed_trials: tuple[DisturbedTrial, ...]
    revision: str | None


class TestbedFigures(Result):
    """A job's figures on one testbed in one cell. `speedup` is over that testbed's own baseline.

    `disturbance` is the estimated effect on disturbed trials, as a share; None for valid ones.
    """

    median_ms: float
    median_ci95_ms: Interval | None
    speedup: float | None
    speedup_ci95: Interval | None
    disturbance: float | None = None


class TestbedCell(Result):
    """The figures of a job in one cell, by testbed; testbeds that did not run the cell are left out."""

    levels: dict[str, Level]
    job: str
    testbeds: dict[str, TestbedFigures]


class TestbedComparison(Result):
    """A run on each testbed, all expectations, and every cell and job of these runs.

    `changed` names the fields in which the runs' documents of the experiment differ.
    """

    experiment: str
    about: str
    source: str | None
    changed: tuple[str, ...]
    runs: tuple[TestbedRun, ...]
    expectations: tuple[ComparedExpectation, ...]
    cells: tuple[TestbedCell, ...]

    @property
    def kinds(self) -> tuple[str, ...]:
        """Return the kinds of testbed, in ORDER."""
        return tuple(each.testbed.kind for each in self.runs)

    def record(self) -> dict[str, Any]:
        """Return the comparison as JSON-compatible values."""
        return self.model_dump(mode="json")


def compare_testbeds(experiment: str, runs: Path) -> TestbedComparison:
    """Return the comparison of the newest run of `experiment` on each testbed, among the runs below `runs`.

    Runs without a valid or disturbed trial, and runs with overridden fields, do not count. A run with only disturbed
    trials does not replace an older one with a valid trial. Raises CompareError if fewer than two testbeds have a run.
    """
    newest: dict[str, tuple[Run, Summary]] = {}
    for run in sorted((each for each in Run.all(runs) if each.experiment == experiment), key=lambda each: each.id):
        try:
            found = stored_or_new(run) if is_unaltered(run) else None
        except RoundaboutError:  # a damaged run, which `roundabout runs` reports
            continue
        before = newest.get(found.testbed.kind) if found else None
        if found and found.cells and (before is None or has_quiet_cell(found) or not has_quiet_cell(before[1])):
            newest[found.testbed.kind] = (run, found)
    if len(newest) < 2:
        there = ", ".join(newest) or "none"
        raise CompareError(
            f"{runs}: found runs of {experiment} on these testbeds: {there}; expected two testbeds at least",
            f"roundabout run {experiment} --testbed fluid, or packets, or lab",
        )
    return compare_runs([run for run, _ in newest.values()])


def has_quiet_cell(summary: Summary) -> bool:
    """Return True if a cell's figures come from valid trials."""
    return any(cell.disturbance is None for cell in summary.cells)


def compare_runs(runs: Sequence[Run]) -> TestbedComparison:
    """Return the comparison of these runs of one experiment, each on a testbed of its own.

    Raises StoreError if a run cannot be read.
    """
    found = {summary.testbed.kind: (run, summary) for run in runs for summary in (stored_or_new(run),)}
    kinds = sorted(found, key=lambda kind: (ORDER.index(kind) if kind in ORDER else len(ORDER), kind))
    documents = {kind: experiment_of(found[kind][0]) for kind in kinds}
    newest = max(kinds, key=lambda kind: found[kind][0].id)
    # The newest document gives the order of the expectations.
    judged = {kind: (documents[kind], found[kind][1].expectations) for kind in dict.fromkeys((newest, *kinds))}
    return TestbedComparison(
        experiment=found[newest][1].experiment,
        about=documents[newest].about,
        source=documents[newest].source,
        changed=changed_fields(list(documents.values())),
        runs=tuple(_testbed_run(*found[kind]) for kind in kinds),
        expectations=match_expectations(judged),
        cells=_cells({kind: found[kind][1].cells for kind in kinds}),
    )


def _testbed_run(run: Run, summary: Summary) -> TestbedRun:
    sessions = run.manifest.get("sessions") or [{}]
    return TestbedRun(
        run=run.id,
        testbed=summary.testbed,
        trials=len(run.committed()),
        invalid_trials=summary.invalid_trials,
        disturbed_trials=summary.disturbed_trials,
        revision=sessions[-1].get("code", {}).get("revision"),
    )


def _cells(found: Mapping[str, Sequence[JobCell]]) -> tuple[TestbedCell, ...]:
    figures: dict[tuple[CellId, str], dict[str, TestbedFigures]] = {}
    for kind, cells in found.items():
        for cell in cells:
            own = figures.setdefault((cell.id, cell.job), {})
            own[kind] = TestbedFigures.model_validate(cell.model_dump())
    return tuple(TestbedCell(levels=dict(cell.levels), job=job, testbeds=own) for (cell, job), own in figures.items())


def table(comparison: TestbedComparison) -> RenderableType:
    """Return the comparison for a screen of 80 columns: expectations, claims, iteration times, then speed-ups."""
    lines = [Text(f"{each.testbed.kind}  {each.run} ({each.testbed.fidelity.stamp})") for each in comparison.runs]
    if comparison.changed:
        lines.append(Text(describe_change(comparison), "yellow"))
    tables = (*expectation_tables(comparison), *cell_tables(comparison))
    return Group(*lines, *map(screen.table_renderable, tables))


def describe_change(comparison: TestbedComparison) -> str:
    """Return a sentence that says in which fields the runs' documents differ."""
    return (
        f"These runs are of different documents of {comparison.experiment}, which differ in "
        f"{', '.join(comparison.changed)}; expectations that state the same are in one line."
    )


def count_verdicts(comparison: TestbedComparison) -> dict[str, dict[str, int]]:
    """Return the number of expectations with each verdict, by testbed."""
    found: dict[str, dict[str, int]] = {kind: {} for kind in comparison.kinds}
    for each in comparison.expectations:
        for kind, verdict in each.testbeds.items():
            if not each.claim:
                found[kind][verdict.verdict] = found[kind].get(verdict.verdict, 0) + 1
    return found


def expectation_tables(comparison: TestbedComparison) -> list[Table]:
    """Return a table of the printed figures beside each testbed's, and one of claims in words, where there are any."""
    figures = [each for each in comparison.expectations if not each.claim]
    claims = [each for each in comparison.expectations if each.claim]
    return [
        *([_figure_table(comparison.kinds, figures)] if figures else []),
        *([_claim_table(comparison.kinds, claims)] if any(each.is_measured for each in claims) else []),
    ]


def cell_tables(comparison: TestbedComparison) -> list[Table]:
    """Return a table of median iteration times and, if there is any, one of speed-ups."""

    def median(found: TestbedFigures) -> Cell:
        return Cell(found.median_ms, found.median_ci95_ms)

    def speedup(found: TestbedFigures) -> Cell:
        return Cell(found.speedup, found.speedup_ci95)

    has_speedups = any(own.speedup is not None for cell in comparison.cells for own in cell.testbeds.values())
    return [
        _cell_table(comparison, median, format_ms, MEDIANS),
        *([_cell_table(comparison, speedup, ".2f", SPEEDUPS)] if has_speedups else []),
    ]


def _figure_table(kinds: Sequence[str], compared: Sequence[ComparedExpectation]) -> Table:
    columns = (Column("expectation", kind="words"), Column(kind="words"), Column("paper", wraps=True))
    title, why = "Beside the paper", _common_reason(compared)
    if why:
        return Table(columns, (), title, empty=f"Expectations: {why}.")
    rows: list[list[Cell]] = []
    for line in expectation_lines(compared):
        cells = [Cell(line.about, note=line.note), Cell(line.part), Cell(line.paper_text, note=line.tolerance_text)]
        rows.append([*cells, *(cell for kind in kinds for cell in _figure_cells(line.figures.get(kind)))])
    return Table((*columns, *_testbed_columns(kinds)), _sections(rows), title, MARKS)


def _claim_table(kinds: Sequence[str], compared: Sequence[ComparedExpectation]) -> Table:
    known = [each for each in compared if each.is_measured]
    rows = [
        [
            Cell(each.claim, note=each.note),
            *(cell for kind in kinds for cell in _figure_cells(_claim_figure(each.testbeds.get(kind)))),
        ]
        for each in known
    ]
    left = len(compared) - len(known)
    caption = f"measured by none of these runs: {left} of {len(compared)}" if left else ""
    columns = (Column("claim", kind="words"), *_testbed_columns(kinds, kind_of="words"))
    return Table(columns, one_section(rows), "What papers claim", caption)


def _claim_figure(verdict: Verdict | None) -> LineFigure | None:
    if verdict is None:
        return None
    return LineFigure("" if verdict.verdict == NOT_MEASURED else verdict.found, verdict.verdict)


def _testbed_columns(kinds: Sequence[str], kind_of: Any = "figures") -> list[Column]:
    """Return each testbed's columns: on the screen a figure with its mark, on the page a figure and a verdict."""
    columns = []
    for kind in kinds:
        columns.append(Column(kind, kind=kind_of, wraps=True, only="screen"))
        columns.append(Column(kind, kind=kind_of, wraps=True, only="page"))
        columns.append(Column(kind="words", only="page"))
    return columns


def _figure_cells(figure: LineFigure | None) -> tuple[Cell, Cell, Cell]:
    """Return the cells of `_testbed_columns`; empty ones for an expectation that the run's document lacks."""
    if figure is None:
        return Cell(), Cell(), Cell()
    tone = TONES[figure.verdict]
    on_screen = Cell(figure.text, note="-".join(figure.interval), tone=tone)
    return on_screen, Cell(figure.text, note=" to ".join(figure.interval)), Cell(figure.verdict, tone=tone)


def _sections(rows: Sequence[Sequence[Cell]]) -> tuple[Section, ...]:
    """Return a section for each expectation, which begins with a row that names it."""
    found: list[list[tuple[Cell, ...]]] = []
    for row in rows:
        if row[0].value or not found:
            found.append([])
        found[-1].append(tuple(row))
    return tuple(Section(tuple(each)) for each in found)


def _common_reason(compared: Sequence[ComparedExpectation]) -> str:
    """Return the reason if no testbed judged anything and all say the same, such as a change by `--set`."""
    reasons = {verdict.found for each in compared for verdict in each.testbeds.values()}
    return reasons.pop() if len(reasons) == 1 and not any(each.is_measured for each in compared) else ""


def _cell_table(
    comparison: TestbedComparison, cell: Callable[[TestbedFigures], Cell], form: NumberFormat, title: str
) -> Table:
    columns = (Column(kind="words"), Column("job", kind="words"), *(Column(kind, form) for kind in comparison.kinds))

    def row(each: TestbedCell) -> tuple[Cell, ...]:
        return (
            Cell(CellId(each.levels).name_in_group, note=_disturbed_note(each)),
            Cell(each.job),
            *(cell(each.testbeds[kind]) if kind in each.testbeds else Cell() for kind in comparison.kinds),
        )

    groups = by_group(comparison.cells, lambda each: CellId(each.levels))
    return Table(columns, tuple(Section(tuple(map(row, own)), group) for group, own in groups.items()), title)


def _disturbed_note(cell: TestbedCell) -> str:
    """Return the mark with the testbeds whose trials were disturbed; empty for quiet ones."""
    kinds = [kind for kind, own in cell.testbeds.items() if own.disturbance is not None]
    return f"{MARK}: {', '.join(kinds)}" if kinds else ""
