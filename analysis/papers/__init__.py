# SPDX-License-Identifier: Apache-2.0
"""Printed figures as data with sources, one file for each paper or other source, and all rows of the scoreboard."""

from collections.abc import Mapping
from functools import cache
from typing import Literal, NamedTuple

from analysis.papers import hotnets, interleaving, others, salamy
from analysis.papers.entries import DECIDING, Claim, Entry, Figures, Paper, Row
from roundabout.core.errors import UsageError
from roundabout.spec.errors import suggest
from roundabout.spec.expectation import PRINTED_FIGURE

__all__ = [
    "DECIDING",
    "GROUPS",
    "PAPERS",
    "Claim",
    "Entry",
    "Figures",
    "Group",
    "Paper",
    "PrintedEntry",
    "Row",
    "claims",
    "deciding_runs",
    "find_printed",
    "printed_entries",
    "row_of",
    "rows",
]

PAPERS: tuple[Paper, ...] = (hotnets.PAPER, interleaving.PAPER, salamy.PAPER)
Group = Literal["papers", "others"]
"""A part of the scoreboard: the three papers that are reproduced, or figures of others to which models are held."""
GROUPS: Mapping[Group, tuple[Paper, ...]] = {"papers": PAPERS, "others": others.SOURCES}


class PrintedEntry(NamedTuple):
    """An entry with the paper and the row that it belongs to."""

    paper: Paper
    row: Row
    entry: Entry

    @property
    def source(self) -> str:
        """Return the place where the entry is printed, with the paper's name."""
        return f"{self.paper.name}, {self.entry.source or self.row.source}"


def find_printed(name: str) -> PrintedEntry:
    """Return the entry of a name such as `hotnets/fig-1d`. Raises UsageError if there is none."""
    if name not in printed_entries():
        raise UsageError(
            f"found nothing printed as '{name}', expected {PRINTED_FIGURE}", suggest(name, printed_entries())
        )
    return printed_entries()[name]


def rows(*groups: Group) -> tuple[tuple[Paper, Row], ...]:
    """Return the scoreboard's rows of these groups, or of all groups without any, in the order of papers."""
    return tuple((paper, row) for group in groups or GROUPS for paper in GROUPS[group] for row in paper.rows)


def row_of(id_: str) -> Row:
    """Return the row with this id."""
    return next(row for _, row in rows() if row.id == id_)


def deciding_runs() -> tuple[tuple[str, str], ...]:
    """Return each experiment that decides a row of the papers, with the testbed that decides where no rack is."""
    pairs: dict[tuple[str, str], None] = {}
    for _, row in rows("papers"):
        for name in row.shown_by:
            pairs[name, row.testbeds_for(name)[0]] = None
    return tuple(pairs)


def claims(study: str) -> tuple[Claim, ...]:
    """Return the papers' claims about every run of a kind of study."""
    return tuple(claim for paper in PAPERS if paper.study == study for claim in paper.claims)


@cache
def printed_entries() -> dict[str, PrintedEntry]:
    """Return every printed entry, by its name."""
    return {
        f"{paper.key}/{entry.name}": PrintedEntry(paper, row, entry) for paper, row in rows() for entry in row.entries
    }
