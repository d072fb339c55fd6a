# SPDX-License-Identifier: Apache-2.0
"""The gallery: every result of the papers beside the published figures, as a page with a picture for each row.

It shows what `results/` holds, and none of the runs on this machine, so that it is the same for everybody.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cache

from analysis import papers
from analysis.expectations.verdict_tables import TONES
from analysis.expectations.verdicts import NOT_MEASURED
from analysis.render.page import svg_of
from analysis.render.screen import MARKS
from analysis.reports.expectation_comparison import LineFigure, expectation_lines
from analysis.reports.publishing.publication import RESULTS, Publication
from analysis.reports.scoreboard import HEADINGS, ScoreboardRow, ShowingExperiment, columns_of, read_scoreboard
from analysis.reports.scoreboard_page import describe_picture, draw_row
from analysis.reports.scoreboard_table import summarize
from docgen.line_width import wrap
from docgen.markdown import notice, plain, prose, table
from roundabout.core.errors import RoundaboutError

PAGE = "results/gallery.md"
PICTURES = "results/gallery"
MAX_SHOWN = 8
"""Largest number of lines of a row's table; the scoreboard's page and summary.json have all."""


def format_page() -> str:
    """Return the gallery's page, with a section for each paper."""
    lines = _rows()
    parts = [notice("results/"), "# Gallery\n\n", prose(_ABOUT), prose(f"{summarize(lines).replace(chr(10), '; ')}.")]
    seen: set[str] = set()
    for paper in papers.PAPERS:
        own = [line for line in lines if line.paper == paper.name]
        parts += [f"## {paper.name[0].upper()}{paper.name[1:]}\n\n", *(_section(line, lines, seen) for line in own)]
    return wrap("".join(parts).rstrip("\n") + "\n")


@cache
def draw_pictures() -> dict[str, str]:
    """Return the pictures of rows as SVG, by their paths below docs/."""
    return {_picture(line): svg_of(figure) for line in _rows() if (figure := draw_row(line)) is not None}


_ABOUT = (
    "Every result of the papers that this project repeats, beside what it found. Rows begin with A for HotNets'22, B "
    "for the interleaving thesis and C for Salamy's thesis. Each picture shows the paper's figure as a bar, what may "
    "differ as a band, and each testbed's figure with its 95 % interval: a circle for packets, a square for the lab, "
    "a diamond for the flow level. Green passes, red fails, and yellow is inconclusive. Below it stand the numbers "
    "and where they are from. [Publish results](../contributing/publishing.md) says how a figure comes here, and "
    "[Basis of expectations](../explanation/expectation-basis.md) what agreement is worth."
)


@cache
def _rows() -> list[ScoreboardRow]:
    def refuse(error: RoundaboutError) -> None:
        raise error

    return read_scoreboard(RESULTS / "no runs", refuse, results=RESULTS)


def _picture(line: ScoreboardRow) -> str:
    """Return the path of a row's picture: a folder for each paper's tables and figures."""
    slug = re.sub(r"[^a-z0-9]+", "-", line.id.lower()).strip("-")
    return f"{PICTURES}/{'-'.join(slug.split('-')[:2])}/{slug}.svg"


def _section(line: ScoreboardRow, lines: Sequence[ScoreboardRow], seen: set[str]) -> str:
    """Return a row's heading, picture, numbers and sources."""
    parts = [f"### {line.id}: {line.what}\n\n", prose(f"{line.source}: {line.headline}.")]
    if (picture := _picture(line)) in draw_pictures():
        parts.append(f"![{describe_picture(line)}]({picture.removeprefix('results/')})\n\n")
    if line.missing:
        return "".join([*parts, prose(f"Not measured: {line.missing}.")])
    parts.append(f"**{line.verdict}** (basis: {', '.join(line.bases) or 'none, a claim in words'})\n\n")
    if line.cause and line.verdict == "fail":
        parts.append(prose(f"Why: {line.cause}"))
    kinds = [kind for kind in columns_of(lines) if kind in line.testbeds]
    parts.append(table(["", "paper", *(HEADINGS.get(kind, kind) for kind in kinds)], _numbers(line, kinds)))
    for each in line.showings:
        if each.measured:
            parts.append(_source(each, with_figure=each.experiment not in seen))
            seen.add(each.experiment)
    return "".join(parts)


def _numbers(line: ScoreboardRow, kinds: Sequence[str]) -> Iterator[list[str]]:
    found = list(expectation_lines(line.compared))
    for each in found[:MAX_SHOWN]:
        paper = " ".join(filter(None, (each.paper_text, each.tolerance_text)))
        yield [plain(each.name), plain(paper), *(_cell(each.figures.get(kind)) for kind in kinds)]
    if len(found) > MAX_SHOWN:
        yield [f"and {len(found) - MAX_SHOWN} more", "", *("" for _ in kinds)]


def _cell(figure: LineFigure | None) -> str:
    if figure is None or figure.verdict == NOT_MEASURED:
        return ""
    mark, _ = MARKS[TONES[figure.verdict]]
    text = figure.text if figure.measured is not None else figure.verdict
    return f"{mark} {plain(text)}" + (f" ({' to '.join(figure.interval)})" if figure.interval else "")


def _source(each: ShowingExperiment, *, with_figure: bool) -> str:
    """Return where a testbed's figures are from, with the run's own figure if the page has none of the experiment."""
    published = Publication(RESULTS / each.experiment / str(each.testbed))
    facts = published.facts
    where = f"../../results/{each.experiment}/{each.testbed}"
    machine = ", ".join(f"{name} {value}" for name, value in facts.machine.items())
    place = HEADINGS.get(facts.testbed, facts.testbed)
    text = (
        f"{place}: `{facts.command}`, run [{facts.run}]({where}/publication.json), revision {facts.revision[:12]}, "
        f"{facts.start_time:%Y-%m-%d}, {machine}; took {_duration(facts.wall_s)}"
        f"{'; disturbed' if facts.disturbed else ''}."
    )
    drawn = [f"![{figure.about}]({where}/{figure.file})\n\n" for figure in facts.figures[:1]] if with_figure else []
    return "".join([f"{prose(text)}", *drawn])


def _duration(seconds: float) -> str:
    if seconds < 1:
        return "less than 1 s"
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"
