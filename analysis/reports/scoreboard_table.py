# SPDX-License-Identifier: Apache-2.0
"""The scoreboard on a screen: a block for each result, with the paper and each testbed in a column of its own."""

from collections import Counter
from collections.abc import Iterator, Sequence

from rich.console import Console, ConsoleOptions, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from analysis.quantities import all_quantities
from analysis.render.screen import MARKS
from analysis.render.tables import TONES
from analysis.reports.expectation_comparison import ExpectationLine, LineFigure, expectation_lines
from analysis.reports.scoreboard import (
    ScoreboardRow,
    ShowingExperiment,
    columns_of,
    count_passes,
    count_words,
    format_age,
    heading_of,
)
from roundabout.core.verdict_words import NOT_MEASURED, Word
from roundabout.spec.expectation import Basis

MAX_LINES = 4
"""Largest number of figures that the screen lists for a row; the page and the JSON have all."""
NARROW, WIDE = 11, 15
"""Width of a column of figures, in characters, on a screen of 80 and on one of `BROAD` or more."""
BROAD = 110
INDENT = (0, 0, 0, 2)
NOT_SHOWN = "not shown"
"""The cell of a testbed that does not model what a row depends on."""


class ScoreboardTable:
    """The scoreboard for a screen, as wide as that is."""

    def __init__(self, lines: Sequence[ScoreboardRow]) -> None:
        self.lines = lines

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield a heading, a block for each row, and the counts."""
        kinds = columns_of(self.lines)
        width = WIDE if options.max_width >= BROAD else NARROW
        yield Text("What is printed, and what is shown here", "bold")
        head = _grid(kinds, width)
        head.add_row("", *(Text(heading_of(kind), "bold") for kind in ("paper", *kinds)))
        yield head
        for line in self.lines:
            yield Text("─" * options.max_width, "dim")
            yield from _block(line, kinds, width)
        yield Text("─" * options.max_width, "dim")
        yield Text(summarize(self.lines))


def quantity_table() -> Table:
    """Return a table of the quantities that `expect:` may name."""
    result = Table(box=None, pad_edge=False)
    for name in ("quantity", "unit", "what it is"):
        result.add_column(name)
    for name, each in all_quantities().items():
        result.add_row(name, each.unit, each.about)
    return result


def summarize(lines: Sequence[ScoreboardRow]) -> str:
    """Return sentences on how many rows agree with print, what the others lack, and where figures come from."""
    counts = count_words([line.verdict for line in lines])
    short = sum(line.lacks_intervals for line in lines)
    computed = sum(line.computed for line in lines)
    words = [
        f"{counts['pass']} of {len(lines)} results pass{_count_bases(lines)}",
        f"{counts['fail']} fail",
        f"{counts['inconclusive'] - short} inconclusive",
        f"{short} with too few repetitions for an interval",
        f"{counts[NOT_MEASURED]} not measured",
    ]
    sentences = [f"{', '.join(words)}."]
    if known := sum(bool(line.deciding) for line in lines):
        others = ", and measured ones the others" if computed < known else ""
        sentences.append(f"Computed figures decide {computed} of {known} rows{others}.")
    open_ = [line for line in lines if line.deciding and line.verdict != "pass"]
    if open_:
        explained = sum(bool(line.cause) for line in open_)
        sentences.append(f"{explained} of {len(open_)} that do not pass say why, or what would decide them.")
    return "\n".join(sentences)


def _count_bases(lines: Sequence[ScoreboardRow]) -> str:
    """Return how many of the rows that pass rest on which basis, in parentheses; of several, the strongest counts."""
    strongest = Counter(
        next((basis for basis in Basis if basis in line.bases), "claims in words")
        for line in lines
        if line.verdict == "pass"
    )
    return f" ({', '.join(f'{count} {basis}' for basis, count in strongest.most_common())})" if strongest else ""


def describe_testbed(line: ScoreboardRow, kind: str) -> str:
    """Return how many of a row's figures pass on a testbed, with a mark; or that it cannot show them; else nothing."""
    own = [verdict for each in line.showings if each.testbed == kind for verdict in each.measured]
    if not own:
        return NOT_SHOWN if kind in line.not_shown else ""
    mark, _ = MARKS[TONES[line.testbeds[kind]]]
    return f"{mark} {count_passes(own)}"


def describe_outcome(line: ScoreboardRow) -> str:
    """Return sentences on which figures decide a row, and why it does not pass."""
    if line.missing:
        reasons = list(dict.fromkeys(line.not_shown.values()))
        return "; ".join([*reasons, line.missing]) + "."
    places = " and ".join(dict.fromkeys(heading_of(each.testbed) for each in line.deciding if each.testbed))
    basis = ", ".join(line.bases) or "claims in words"
    sentences = [f"{count_passes(line.decisive)} on {places} ({basis})."]
    if line.lacks_intervals:
        which = "The others have" if any(each.verdict == "pass" for each in line.decisive) else "They have"
        sentences.append(f"{which} too few repetitions for an interval.")
    if line.cause and line.verdict != "pass":
        sentences.append(line.cause)
    return " ".join(sentences)


def _grid(kinds: Sequence[str], width: int) -> Table:
    """Return a grid with a column for text, and one of `width` characters for the paper and each testbed."""
    grid = Table.grid(padding=(0, 1, 0, 0), expand=True)
    grid.add_column(ratio=1)
    for _ in ("paper", *kinds):
        grid.add_column(width=width)
    return grid


def _block(line: ScoreboardRow, kinds: Sequence[str], width: int) -> Iterator[Text | Table | Padding]:
    verdict = Text(NOT_MEASURED, "dim") if line.missing else marked(line.verdict)
    yield Text.assemble((line.id, "bold"), "  ", line.what, ": ", verdict)
    if line.missing:
        yield Padding(Text(f"{line.headline}\n{describe_outcome(line)}", "dim"), INDENT)
        return
    grid = _grid(kinds, width)
    grid.add_row("", "", *(Text(describe_testbed(line, kind), _colour(line, kind)) for kind in kinds))
    lines = list(expectation_lines(line.compared))
    for each in lines[:MAX_LINES]:
        grid.add_row(*_cells(each, kinds))
    if len(lines) > MAX_LINES:
        grid.add_row(Padding(Text(f"and {len(lines) - MAX_LINES} more: on the page", "dim"), INDENT))
    yield grid
    yield Padding(Text(f"{describe_outcome(line)}\n{describe_sources(line)}", "dim"), INDENT)


def _colour(line: ScoreboardRow, kind: str) -> str:
    return MARKS[TONES[line.testbeds.get(kind, NOT_MEASURED)]][1]


def marked(word: Word) -> Text:
    """Return a verdict with its mark, in its color."""
    mark, colour = MARKS[TONES[word]]
    return Text(f"{mark} {word}", colour)


def describe_sources(line: ScoreboardRow) -> str:
    """Return the experiments with figures, and for each testbed if its figures are published, or how old its run is."""
    sources: dict[str, list[str]] = {}
    for each in line.showings:
        if each.measured and each.testbed:
            sources.setdefault(each.experiment, []).append(f"{each.testbed} {_origin(each)}")
    return "; ".join(f"{name}: {', '.join(origins)}" for name, origins in sources.items())


def _origin(each: ShowingExperiment) -> str:
    """Return if a testbed's figures are published or how old they are, and if they are disturbed."""
    age = "published" if each.is_published else f"{format_age(each.age_s or 0)} old"
    return f"{age}, disturbed" if each.is_disturbed else age


def _word(word: Word) -> Text:
    mark, colour = MARKS[TONES[word]]
    return Text(f"{mark} {'open' if word == 'inconclusive' else word}", colour)


def _cells(each: ExpectationLine, kinds: Sequence[str]) -> Iterator[Text | Padding]:
    yield Padding(each.name, INDENT)
    is_figure = bool(each.part) or each.paper is not None or each.at_least is not None or each.at_most is not None
    yield Text("\n".join(filter(None, (each.paper_text if is_figure else "", each.tolerance_text))), "dim")
    for kind in kinds:
        yield _figure(each.figures.get(kind), is_figure=is_figure)


def _figure(figure: LineFigure | None, *, is_figure: bool) -> Text:
    """Return a testbed's figure with its mark; of a finding in words only the verdict."""
    if figure is None or figure.verdict == NOT_MEASURED:
        return Text("")
    if figure.measured is None or not is_figure:
        return _word(figure.verdict)
    mark, colour = MARKS[TONES[figure.verdict]]
    return Text(f"{mark} {figure.text}", colour)
