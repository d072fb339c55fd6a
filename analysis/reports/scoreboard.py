# SPDX-License-Identifier: Apache-2.0
"""The scoreboard: every result of the papers, the experiment that shows it, and the newest valid run's figures."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from operator import itemgetter
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from analysis import papers
from analysis.expectations.expectations import resolve
from analysis.expectations.results import Summary
from analysis.expectations.verdict_tables import TONES, describe
from analysis.expectations.verdicts import Verdict, Word, combine, expectations
from analysis.quantities import all_quantities
from analysis.reading.fidelity import read_fidelity
from analysis.render.screen import MARKS
from analysis.reports.summary import stored_or_new
from analysis.studies import study_of
from roundabout.core.errors import RoundaboutError
from roundabout.spec import EXPERIMENTS, load_experiment, read_catalog
from roundabout.store import Run
from roundabout.store.trial_states import counted_trials

ErrorHandler = Callable[[RoundaboutError], None]

MOST = 3
"""Largest number of findings that the screen lists for a row; the page and the JSON have all."""


@dataclass(frozen=True)
class ShowingExperiment:
    """An experiment that shows a row, and its newest valid run's verdicts; `run` is None without one.

    `nature` is real, emulated or computed, and `age_s` the time since the run began.
    """

    experiment: str
    run: str | None = None
    age_s: float | None = None
    nature: str | None = None
    expectations: tuple[Verdict, ...] = ()

    @property
    def measured(self) -> list[Verdict]:
        """Return the measured expectations."""
        return [each for each in self.expectations if each.verdict != "not measured"]


@dataclass(frozen=True)
class ScoreboardRow:
    """A row of the scoreboard: a paper's result and the experiments that show it."""

    id: str
    paper: str
    what: str
    headline: str
    source: str
    showings: tuple[ShowingExperiment, ...]

    @property
    def measured(self) -> list[Verdict]:
        """Return all measured expectations of the row's experiments."""
        return [each for showing in self.showings for each in showing.measured]

    @property
    def computed(self) -> bool:
        """Return True if there are measured figures and all of them come from computed runs."""
        return bool(self.measured) and all(each.nature == "computed" for each in self.showings if each.measured)

    @property
    def verdict(self) -> Word:
        """Return the combined verdict of all measured expectations."""
        return combine([each.verdict for each in self.measured])

    @property
    def bases(self) -> list[str]:
        """Return the bases of the measured figures, such as `predicted`, each once."""
        return list(dict.fromkeys(each.basis for each in self.measured if each.basis))

    @property
    def missing(self) -> str:
        """Return the reason why nothing was measured; empty if something was."""
        if self.measured:
            return ""
        if not self.showings:
            return "no experiment shows it yet"
        ran = ", ".join(showing.experiment for showing in self.showings if showing.run)
        waiting = ", ".join(showing.experiment for showing in self.showings if not showing.run)
        return "; ".join(
            [*([f"to be run: {waiting}"] if waiting else []), *([f"not measured by {ran}"] if ran else [])]
        )

    def record(self) -> dict[str, Any]:
        """Return the row as JSON-compatible values."""
        return {
            **asdict(self),
            "verdict": self.verdict,
            "basis": self.bases,
            "measured": len(self.measured),
            "missing": self.missing or None,
        }


def read_scoreboard(
    runs: Path, complain: ErrorHandler, root: Path = EXPERIMENTS, now: datetime | None = None
) -> list[ScoreboardRow]:
    """Return all rows, in the order of the papers, each with its experiments' newest valid runs below `runs`.

    Experiments come from the catalog `root` and from `runs`. Runs with overrides, and computed runs beside measured
    ones, are left out. A run without a valid trial stands only where there is no other, and only if it has a disturbed
    trial. Unreadable runs are left out too, and their error is passed to `complain`.
    """
    shown = _rows_by_experiment(root)
    newest = {run.experiment: (run, summary) for run, summary in newest_runs(runs, complain)}
    at = now or datetime.now(UTC)
    lines = []
    for paper, row in papers.rows():
        experiments = [name for name, rows in shown.items() if row.id in rows]
        others = [name for name, (_, summary) in newest.items() if name not in experiments and _of(row.id, summary)]
        showings = tuple(_showing(name, row.id, newest, at) for name in (*experiments, *others))
        lines.append(ScoreboardRow(row.id, paper.name, row.what, row.headline, f"{paper.name}, {row.source}", showings))
    return lines


def scoreboard_record(lines: Sequence[ScoreboardRow]) -> dict[str, Any]:
    """Return the scoreboard as JSON-compatible values."""
    computed = sum(line.computed for line in lines)
    measured = sum(bool(line.measured) for line in lines) - computed
    return {"rows": [line.record() for line in lines], "measured": measured, "computed": computed, "of": len(lines)}


def format_age(seconds: float) -> str:
    """Return an age as text in whole days, hours or minutes; `now` below a minute."""
    for unit, length_s in (("day", 86_400), ("hour", 3600), ("minute", 60)):
        count = int(seconds // length_s)
        if count:
            return f"{count} {unit}{'' if count == 1 else 's'}"
    return "now"


def table(lines: Sequence[ScoreboardRow]) -> RenderableType:
    """Return a table for the screen with a row for each result, and its findings below."""
    result = Table(box=box.SIMPLE_HEAD, pad_edge=False, title_justify="left", title_style="bold")
    result.title = "What the papers show, and what is shown here"
    result.add_column("result", style="bold", max_width=18)
    result.add_column("what, and what was found here", ratio=1)
    result.add_column("verdict", width=15)
    for line in lines:
        result.add_row(line.id, _found(line), _verdict_text(line))
    return Group(result, Text(summarize(lines)))


def quantity_table() -> Table:
    """Return a table of the quantities that `expect:` may name."""
    result = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("quantity", "unit", "what it is"):
        result.add_column(name)
    for name, each in all_quantities().items():
        result.add_row(name, each.unit, each.about)
    return result


def summarize(lines: Sequence[ScoreboardRow]) -> str:
    """Return a sentence on how many rows were measured and how many agree with the papers."""
    known = [line for line in lines if line.measured]
    computed = sum(line.computed for line in known)
    words = [f"{word} {sum(line.verdict == word for line in known)}" for word in ("pass", "fail", "inconclusive")]
    open_ = sum(not line.showings for line in lines)
    return (
        f"{len(known) - computed} of {len(lines)} rows measured{f', {computed} computed' if computed else ''} "
        f"({', '.join(words)}); {len(lines) - len(known) - open_} that no run here has measured, {open_} that no "
        "experiment shows yet"
    )


def _found(line: ScoreboardRow) -> Text:
    """Describe the row; each of the first findings on a line of its own, with its source."""
    text = Text(line.what)
    if line.missing:
        text.append(f"\n{line.headline}", "dim")
    if line.missing and line.showings:
        text.append(f"\n  {line.missing}", "dim")
    for record in line.measured[:MOST]:
        mark, colour = MARKS[TONES[record.verdict]]
        text.append(f"\n{mark} ", colour).append(describe_briefly(record))
    if len(line.measured) > MOST:
        text.append(f"\n  and {len(line.measured) - MOST} more", "dim")
    for showing in line.showings:
        if showing.measured:
            text.append(f"\n  {showing.experiment}, {format_age(showing.age_s or 0)} old, {showing.nature}", "dim")
    return text


def _verdict_text(line: ScoreboardRow) -> Text:
    if line.missing:
        return Text("not measured" if line.showings else "nothing yet", "dim")
    mark, colour = MARKS[TONES[line.verdict]]
    inside = sum(each.verdict == "pass" for each in line.measured)
    word = Text.assemble((f"{mark} {line.verdict}", colour), f"\n{inside} of {len(line.measured)}")
    for basis in line.bases:
        word.append(f"\n{basis}", "dim")
    return word


def describe_briefly(verdict: Verdict) -> str:
    """Return a verdict's finding beside the paper's figure, as short text."""
    what = verdict.claim or describe(verdict)
    return f"{what}: {verdict.found}" + ("" if verdict.claim else f" (paper {verdict.expected})")


def _rows_by_experiment(root: Path) -> dict[str, set[str]]:
    """Return the rows that the expectations of each experiment of the catalog show."""
    shown: dict[str, set[str]] = {}
    for each in read_catalog(root):
        if not each.error:
            experiment = load_experiment(each.name, root)
            kinds = {traffic.kind for cell in experiment.cells for traffic in cell.spec.cross_traffic.values()}
            wanted = expectations(experiment, study_of(experiment).kind)
            shown[each.name] = {row for one in wanted for row in (*one.shows(kinds), *resolve(one.expectation).rows)}
    return shown


def newest_runs(runs: Path, complain: ErrorHandler) -> Iterator[tuple[Run, Summary]]:
    """Yield each experiment's newest run with a valid trial, a measured one before a computed one.

    A run with only disturbed trials comes last.
    """
    by_experiment: dict[str, list[Run]] = {}
    for run in sorted(Run.all(runs), key=lambda run: run.id, reverse=True):
        by_experiment.setdefault(run.experiment, []).append(run)
    for own in by_experiment.values():
        found = []
        for run in own:
            try:
                if is_unaltered(run) and counted_trials(records := run.trials()):
                    disturbed = not any(record["valid"] for record in records)
                    found.append((disturbed, read_fidelity(run.manifest["testbed"]).nature == "computed", run))
            except RoundaboutError as error:
                complain(error)
        chosen = min(found, key=itemgetter(0, 1), default=None)
        if chosen:
            try:
                yield chosen[2], stored_or_new(chosen[2])
            except RoundaboutError as error:
                complain(error)


def is_unaltered(run: Run) -> bool:
    """Return True if overrides changed at most the number of repetitions."""
    changes: dict[str, Any] = run.manifest["experiment"].get("set", {})
    return changes.keys() <= {"repetitions"}


def _of(row: str, summary: Summary) -> tuple[Verdict, ...]:
    return tuple(each for each in summary.expectations if row in each.rows)


def _showing(name: str, row: str, newest: dict[str, tuple[Run, Summary]], now: datetime) -> ShowingExperiment:
    if name not in newest:
        return ShowingExperiment(name)
    run, summary = newest[name]
    return ShowingExperiment(
        name, run.id, (now - run.start_time).total_seconds(), summary.testbed.fidelity.nature, _of(row, summary)
    )
