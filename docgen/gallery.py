# SPDX-License-Identifier: Apache-2.0
"""The gallery: every printed result beside the published figures, as a page for each group with a picture for each row.

It shows what `results/` holds, and none of the runs on this machine, so that it is the same for everybody.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from analysis import papers
from analysis.render.page import svg_of
from analysis.reports.publishing.publication import RESULTS
from analysis.reports.scoreboard import ScoreboardRow, columns_of, heading_of, read_scoreboard
from analysis.reports.scoreboard_page import table_of
from analysis.reports.scoreboard_pictures import describe_picture, draw_overview, draw_row
from analysis.reports.scoreboard_table import describe_outcome, describe_testbed, summarize
from docgen.line_width import wrap
from docgen.links import slugify
from docgen.markdown import notice, plain, prose, table
from roundabout.core.errors import RoundaboutError

PICTURES = "results/gallery"
OVERVIEWS: Mapping[papers.Group, str] = {
    "papers": f"{PICTURES}/overview.svg",
    "others": f"{PICTURES}/others/overview.svg",
}
TITLES: Mapping[papers.Group, str] = {"papers": "Gallery", "others": "Figures of others"}


def format_page(group: papers.Group) -> str:
    """Return a group's page: a picture of all rows, a matrix of rows by testbed, and a section for each paper."""
    lines = _rows()[group]
    parts = [notice("results/"), f"# {TITLES[group]}\n\n", prose(summarize(lines).replace("\n", " "))]
    parts += map(prose, (_SUBJECTS[group], *_ABOUT))
    parts += [f"![Each row's figure that differs most, over the paper's]({_below(OVERVIEWS[group])})\n\n"]
    parts += [_matrix(lines)]
    for paper in papers.GROUPS[group]:
        own = [line for line in lines if line.paper == paper.name]
        parts += [f"## {_title(paper)}\n\n", *map(_section, own)]
    return wrap("".join(parts).rstrip("\n") + "\n")


@cache
def draw_pictures() -> dict[str, str]:
    """Return the pictures of each group and of each row as SVG, by their paths below docs/."""
    lines = [line for own in _rows().values() for line in own]
    rows = {_picture(line): svg_of(figure) for line in lines if (figure := draw_row(line)) is not None}
    return {path: svg_of(draw_overview(_rows()[group])) for group, path in OVERVIEWS.items()} | rows


_SUBJECTS: Mapping[papers.Group, str] = {
    "papers": "A row is one result of a paper: A is HotNets'22, B the interleaving thesis, and C Salamy's thesis.",
    "others": "A row is one result of others: a paper's figure, a measurement in a public thread, or the output of a "
    "simulator. The [gallery](gallery.md) has the three papers that this project reproduces.",
}
_ABOUT = (
    "The experiment that shows it runs on testbeds: computed packet by packet (packets, a circle), measured with real "
    "programs in namespaces (lab, a square), or computed with links that are shared equally (flow level, a diamond). "
    "The first of flow level, packets and lab that models what the result depends on decides. *Not shown* is a testbed "
    "that does not model it.",
    "A row passes when the 95 % interval of each deciding figure is within the tolerance (grey), and fails when an "
    "interval is outside. It is inconclusive when an interval crosses the edge, or where there is none, for which "
    "four repetitions are needed; exact figures of the flow level need none. [Basis of "
    "expectations](../explanation/expectation-basis.md) says what a pass of a fitted figure is worth. [Published "
    "runs](gallery/published.md) lists the runs, their revisions and machines, and [Publish "
    "results](../contributing/publishing.md) how a figure comes here.",
    "The picture has for each row the deciding figure that differs most from the paper's, as a multiple of it. The "
    "number at the right counts the deciding figures that pass.",
)


@cache
def _rows() -> dict[papers.Group, list[ScoreboardRow]]:
    def refuse(error: RoundaboutError) -> None:
        raise error

    lines = read_scoreboard(RESULTS / "no runs", refuse, results=RESULTS, groups=tuple(papers.GROUPS))
    names = {group: {paper.name for paper in own} for group, own in papers.GROUPS.items()}
    return {group: [line for line in lines if line.paper in own] for group, own in names.items()}


def _title(paper: papers.Paper) -> str:
    return f"{paper.name[0].upper()}{paper.name[1:]}"


def _below(path: str) -> str:
    """Return a path below docs/ as the page links to it."""
    return path.removeprefix("results/")


def _picture(line: ScoreboardRow) -> str:
    """Return the path of a row's picture: a folder for each paper's tables and figures."""
    slug = re.sub(r"[^a-z0-9]+", "-", line.id.lower()).strip("-")
    return f"{PICTURES}/{'-'.join(slug.split('-')[:2])}/{slug}.svg"


def _matrix(lines: Sequence[ScoreboardRow]) -> str:
    """Return a table of rows by testbed, with the number of figures that pass."""
    kinds = columns_of(lines)

    def cells(line: ScoreboardRow) -> list[str]:
        return [
            f"[{line.id}](#{slugify(f'{line.id}: {line.what}')})",
            line.verdict,
            *(describe_testbed(line, kind) for kind in kinds),
        ]

    return table(["row", "verdict", *(heading_of(kind) for kind in kinds)], map(cells, lines))


def _section(line: ScoreboardRow) -> str:
    """Return a row's heading, picture, outcome and command, and all its figures, folded."""
    parts = [f"### {line.id}: {line.what}\n\n", prose(f"{line.source}: {line.headline}.")]
    if (picture := _picture(line)) in draw_pictures():
        parts.append(f"![{describe_picture(line)}]({_below(picture)})\n\n")
    parts.append(prose(f"{line.verdict.capitalize()}: {describe_outcome(line)}"))
    if line.deciding:
        commands = [f"    roundabout run {each.experiment} --testbed {each.testbed}\n" for each in line.deciding]
        parts += ["".join(commands), "\n", *_figures(line)]
    if line.others:
        parts.append(prose(f"See also: {', '.join(f'`{name}`' for name in line.others)}."))
    return "".join(parts)


def _figures(line: ScoreboardRow) -> Iterator[str]:
    """Yield the table of all figures, folded, with links to the runs."""
    headings, rows = table_of(line)
    yield '<details markdown="1">\n<summary>All figures</summary>\n\n'
    yield table(headings, [list(map(plain, cells)) for cells in rows])
    runs = [
        f"[{each.experiment}, {heading_of(each.testbed)}]"
        f"(../../results/{each.experiment}/{each.testbed}/publication.json)"
        for each in line.showings
        if each.measured and each.testbed
    ]
    yield prose(f"Runs: {'; '.join(runs)}.")
    yield "</details>\n\n"
