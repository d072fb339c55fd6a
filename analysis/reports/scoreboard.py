# SPDX-License-Identifier: Apache-2.0
"""The scoreboard: every printed result of a group, the experiments that show it, and what each testbed has of it.

A testbed's figures are those of its newest run here, or of the publication below `results/` if no newer run is here.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from operator import itemgetter
from pathlib import Path
from typing import Any

from analysis import papers
from analysis.expectations.expectations import resolve
from analysis.expectations.results import Summary
from analysis.expectations.verdicts import Verdict, combine, expectations
from analysis.papers import DECIDING
from analysis.papers.causes import CAUSES
from analysis.reading.fidelity import read_fidelity
from analysis.reports.expectation_comparison import (
    ComparedExpectation,
    ExpectationLine,
    expectation_lines,
    match_verdicts,
)
from analysis.reports.publishing.publication import Publication, read_publications
from analysis.reports.summary import stored_or_new
from analysis.studies import study_of
from roundabout.core.errors import RoundaboutError
from roundabout.core.verdict_words import Word
from roundabout.spec import EXPERIMENTS, Experiment, load_catalog
from roundabout.store import Run
from roundabout.store.trial_states import counted_trials

ErrorHandler = Callable[[RoundaboutError], None]

TESTBEDS = ("packets", "lab", "fluid")
"""Testbeds that have a column even without a figure; others have one if they have a figure."""
HEADINGS = {"fluid": "flow level"}
WORDS: tuple[Word, ...] = ("pass", "fail", "inconclusive", "not measured")


@dataclass(frozen=True)
class ShowingExperiment:
    """An experiment that shows a row, and one testbed's verdicts; `run` is None if no testbed ran it.

    `testbed` is the kind, `nature` is real, emulated or computed, and `age_s` the time since the run began.
    `is_published` says that the figures come from `results/`, and `is_disturbed` that some rest on disturbed trials.
    `not_shown` is the reason why this testbed cannot show the row; it has no verdicts then.
    """

    experiment: str
    run: str | None = None
    age_s: float | None = None
    nature: str | None = None
    expectations: tuple[Verdict, ...] = ()
    testbed: str | None = None
    is_published: bool = False
    is_disturbed: bool = False
    not_shown: str = ""

    @property
    def measured(self) -> list[Verdict]:
        """Return the measured expectations."""
        return [each for each in self.expectations if each.verdict != "not measured"]

    @property
    def place(self) -> int:
        """Return the testbed's place in the order in which testbeds decide a row; a plugin's testbed comes last."""
        return DECIDING.index(self.testbed) if self.testbed in DECIDING else len(DECIDING)


@dataclass(frozen=True)
class ScoreboardRow:
    """A row of the scoreboard: one claim of a paper, and the figures of the experiments that decide it.

    `showings` are those experiments' results on each testbed, and `others` the names of further experiments about the
    same result, without a verdict. `cause` gives the measured cause why the row fails or stays undecided.
    """

    id: str
    paper: str
    what: str
    headline: str
    source: str
    showings: tuple[ShowingExperiment, ...]
    others: tuple[str, ...] = ()
    cause: str = ""

    @property
    def measured(self) -> list[Verdict]:
        """Return all measured expectations of the row's experiments, on all testbeds."""
        return [each for showing in self.showings for each in showing.measured]

    @cached_property
    def deciding(self) -> list[ShowingExperiment]:
        """Return for each experiment the testbed that decides: the first of `DECIDING` that measured any of the row."""
        found: dict[str, ShowingExperiment] = {}
        for each in sorted((each for each in self.showings if each.measured), key=lambda each: each.place):
            found.setdefault(each.experiment, each)
        return list(found.values())

    @property
    def decisive(self) -> list[Verdict]:
        """Return the measured expectations that decide the row's verdict."""
        return [each for showing in self.deciding for each in showing.measured]

    @property
    def computed(self) -> bool:
        """Return True if there are deciding figures and all of them come from computed runs."""
        return bool(self.deciding) and all(each.nature == "computed" for each in self.deciding)

    @property
    def verdict(self) -> Word:
        """Return the combined verdict of the expectations that decide."""
        return combine([each.verdict for each in self.decisive])

    @property
    def lacks_intervals(self) -> bool:
        """Return True if the row is inconclusive only because figures have no interval."""
        open_ = [each for each in self.decisive if each.verdict == "inconclusive"]
        return self.verdict == "inconclusive" and all(each.lacks_intervals for each in open_)

    @property
    def testbeds(self) -> dict[str, Word]:
        """Return each testbed's combined verdict, for testbeds that measured anything of the row."""
        known = [each for each in self.showings if each.testbed and each.measured]
        kinds = dict.fromkeys(each.testbed for each in known if each.testbed)
        return {
            kind: combine([verdict.verdict for each in known if each.testbed == kind for verdict in each.measured])
            for kind in kinds
        }

    @property
    def not_shown(self) -> dict[str, str]:
        """Return the reason of each testbed that cannot show the row."""
        return {each.testbed: each.not_shown for each in self.showings if each.testbed and each.not_shown}

    @property
    def bases(self) -> list[str]:
        """Return the bases of the deciding figures, such as `predicted`, each once."""
        return list(dict.fromkeys(each.basis for each in self.decisive if each.basis))

    @cached_property
    def compared(self) -> list[ComparedExpectation]:
        """Return the measured expectations with each testbed's verdict, experiment by experiment."""
        return self._compared(self.showings)

    @cached_property
    def decisive_lines(self) -> list[ExpectationLine]:
        """Return the figures that decide the row, a line each."""
        return list(expectation_lines(self._compared(self.deciding)))

    def _compared(self, showings: Sequence[ShowingExperiment]) -> list[ComparedExpectation]:
        by_experiment: dict[str, dict[str, Sequence[Verdict]]] = {}
        for each in showings:
            if each.testbed and each.measured:
                by_experiment.setdefault(each.experiment, {})[each.testbed] = each.measured
        return [one for judged in by_experiment.values() for one in match_verdicts(judged)]

    @property
    def missing(self) -> str:
        """Return the reason why nothing was measured, with the command of a run that would; empty if something was."""
        if self.measured:
            return ""
        capable = [showing for showing in self.showings if showing.run and not showing.not_shown]
        ran = dict.fromkeys(showing.experiment for showing in capable)
        waiting = dict.fromkeys(showing.experiment for showing in self.showings if showing.experiment not in ran)
        return "; ".join([*map(self._describe_lack, waiting), *(f"not measured by {name}" for name in ran)])

    def _describe_lack(self, experiment: str) -> str:
        first, *others = papers.row_of(self.id).testbeds_for(experiment)
        kinds = " or ".join((first, *others))
        return f"no run of {experiment} on {kinds} is published yet (roundabout run {experiment} --testbed {first})"

    def record(self) -> dict[str, Any]:
        """Return the row as JSON-compatible values."""
        return {
            **asdict(self),
            "cause": self.cause or None,
            "verdict": self.verdict,
            "lacks_intervals": self.lacks_intervals,
            "deciding": {each.experiment: each.testbed for each in self.deciding},
            "testbeds": self.testbeds,
            "basis": self.bases,
            "measured": len(self.measured),
            "missing": self.missing or None,
        }


def read_scoreboard(  # noqa: PLR0913 - where figures come from, and which are read
    runs: Path,
    complain: ErrorHandler,
    *,
    root: Path = EXPERIMENTS,
    now: datetime | None = None,
    results: Path | None = None,
    groups: Sequence[papers.Group] = ("papers",),
) -> list[ScoreboardRow]:
    """Return all rows of groups, in the order of their papers, each with its experiments' figures on each testbed.

    Experiments come from the catalog `root`, from the newest valid runs below `runs`, and from the publications below
    `results`, if it is given. Runs with overrides are left out. A run without a valid trial stands only where there is
    no other, and only if it has a disturbed trial. Unreadable runs and publications are left out too, and their error
    is passed to `complain`.
    """
    shown = rows_by_experiment(root)
    at = now or datetime.now(UTC)
    found = _newest(runs, results, complain, at)
    for name, own in found.items():
        verdicts = (verdict for each in own for verdict in each.expectations)
        shown.setdefault(name, set()).update(row for verdict in verdicts for row in verdict.rows)
    return [_row(paper, row, shown, found) for paper, row in papers.rows(*groups)]


def _row(
    paper: papers.Paper,
    row: papers.Row,
    shown: Mapping[str, set[str]],
    found: Mapping[str, list[ShowingExperiment]],
) -> ScoreboardRow:
    """Return a row of the scoreboard with the figures `found`; `shown` has the rows of each experiment."""
    return ScoreboardRow(
        row.id,
        paper.name,
        row.what,
        row.headline,
        f"{paper.name}, {row.source}",
        tuple(each for name in row.shown_by for each in _showings(name, row, found)),
        tuple(name for name, rows in shown.items() if row.id in rows and name not in row.shown_by),
        CAUSES.get(row.id, ""),
    )


def scoreboard_record(lines: Sequence[ScoreboardRow]) -> dict[str, Any]:
    """Return the scoreboard as JSON-compatible values."""
    computed = sum(line.computed for line in lines)
    measured = sum(bool(line.measured) for line in lines) - computed
    return {
        "rows": [line.record() for line in lines],
        "measured": measured,
        "computed": computed,
        "of": len(lines),
        "verdicts": count_words([line.verdict for line in lines]),
        "testbeds": count_by_testbed(lines),
    }


def count_words(words: Sequence[Word]) -> dict[str, int]:
    """Return the number of each verdict."""
    return {word: words.count(word) for word in WORDS}


def count_by_testbed(lines: Sequence[ScoreboardRow]) -> dict[str, dict[str, int]]:
    """Return for each testbed the number of rows with each verdict."""
    return {
        kind: count_words([line.testbeds.get(kind, "not measured") for line in lines]) for kind in columns_of(lines)
    }


def columns_of(lines: Sequence[ScoreboardRow]) -> list[str]:
    """Return the testbeds that have a column: the usual ones, and others with a figure."""
    return list(dict.fromkeys((*TESTBEDS, *(kind for line in lines for kind in line.testbeds))))


def heading_of(kind: str) -> str:
    """Return the heading of a testbed's column."""
    return HEADINGS.get(kind, kind)


def count_passes(verdicts: Sequence[Verdict]) -> str:
    """Return how many of the verdicts pass, such as `3 of 5`."""
    return f"{sum(each.verdict == 'pass' for each in verdicts)} of {len(verdicts)}"


def format_age(seconds: float) -> str:
    """Return an age as text in whole days, hours or minutes; `now` below a minute."""
    for unit, length_s in (("day", 86_400), ("hour", 3600), ("minute", 60)):
        count = int(seconds // length_s)
        if count:
            return f"{count} {unit}{'' if count == 1 else 's'}"
    return "now"


def rows_by_experiment(root: Path) -> dict[str, set[str]]:
    """Return the rows that the expectations of each experiment of the catalog show."""
    shown: dict[str, set[str]] = {}
    for name, experiment in load_catalog(root).items():
        if isinstance(experiment, Experiment):
            kinds = {traffic.kind for cell in experiment.cells for traffic in cell.spec.cross_traffic.values()}
            wanted = expectations(experiment, study_of(experiment).kind)
            shown[name] = {row for one in wanted for row in (*one.shows(kinds), *resolve(one.expectation).rows)}
    return shown


def newest_runs(runs: Path, complain: ErrorHandler) -> Iterator[tuple[Run, Summary]]:
    """Yield the newest run with a valid trial of each experiment on each testbed.

    A run with only disturbed trials comes last.
    """
    by_place: dict[tuple[str, str], list[tuple[bool, Run]]] = {}
    for run in sorted(Run.all(runs), key=lambda run: run.id, reverse=True):
        try:
            if is_unaltered(run) and counted_trials(records := run.trials()):
                disturbed = not any(record["valid"] for record in records)
                by_place.setdefault((run.experiment, _kind_of(run)), []).append((disturbed, run))
        except RoundaboutError as error:
            complain(error)
    for found in by_place.values():
        _, chosen = min(found, key=itemgetter(0))
        try:
            yield chosen, stored_or_new(chosen)
        except RoundaboutError as error:
            complain(error)


def is_unaltered(run: Run) -> bool:
    """Return True if overrides changed at most the number of repetitions."""
    changes: dict[str, Any] = run.manifest["experiment"].get("set", {})
    return changes.keys() <= {"repetitions"}


def _newest(
    runs: Path, results: Path | None, complain: ErrorHandler, now: datetime
) -> Mapping[str, list[ShowingExperiment]]:
    """Return by experiment what each testbed has: its newest run here, or the publication if that is newer."""
    found: dict[str, dict[str, ShowingExperiment]] = {}
    for each in read_publications(results, complain) if results else ():
        found.setdefault(each.facts.experiment, {})[each.facts.testbed] = _published(each, now)
    for run, summary in newest_runs(runs, complain):
        local = _local(run, summary, now)
        own = found.setdefault(run.experiment, {})
        if local.testbed and _is_newer(local, own.get(local.testbed)):
            own[local.testbed] = local
    return {name: sorted(own.values(), key=lambda each: each.place) for name, own in found.items()}


def _is_newer(local: ShowingExperiment, published: ShowingExperiment | None) -> bool:
    """Return True if a run here replaces the publication: it is newer, and not disturbed instead of valid."""
    if published is None:
        return True
    return (local.run or "") > (published.run or "") and published.is_disturbed >= local.is_disturbed


def _kind_of(run: Run) -> str:
    testbed = run.manifest["testbed"]
    return str(testbed.get("kind") or ("lab" if testbed.get("emulated") else "rack"))


def _local(run: Run, summary: Summary, now: datetime) -> ShowingExperiment:
    return ShowingExperiment(
        run.experiment,
        run.id,
        (now - run.start_time).total_seconds(),
        read_fidelity(run.manifest["testbed"]).nature,
        summary.expectations,
        _kind_of(run),
        is_disturbed=any(each.counted for each in summary.disturbed_trials),
    )


def _published(each: Publication, now: datetime) -> ShowingExperiment:
    facts = each.facts
    return ShowingExperiment(
        facts.experiment,
        facts.run,
        (now - facts.start_time).total_seconds(),
        facts.nature,
        each.verdicts,
        facts.testbed,
        is_published=True,
        is_disturbed=facts.disturbed,
    )


def _showings(name: str, row: papers.Row, found: Mapping[str, list[ShowingExperiment]]) -> list[ShowingExperiment]:
    """Return what each testbed has of a row, with the row's verdicts only; without a run one that says so."""
    own = [_of_row(each, row) for each in found.get(name, [])]
    return own or [ShowingExperiment(name)]


def _of_row(showing: ShowingExperiment, row: papers.Row) -> ShowingExperiment:
    """Return an experiment's figures that belong to a row; none if the testbed cannot show it."""
    why = row.why_not_shown(showing.experiment, showing.testbed or "")
    known = () if why else tuple(each for each in showing.expectations if row.id in each.rows)
    return replace(showing, expectations=known, not_shown=why)
