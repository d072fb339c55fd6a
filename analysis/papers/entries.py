# SPDX-License-Identifier: Apache-2.0
"""How what papers printed is held: a row of the scoreboard a figure or table, with its entries and claims."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from roundabout.spec.expectation import Expectation

Figures = float | Mapping[str, float] | tuple[tuple[float, float], ...] | Callable[[float], float]
"""One figure; figures by name (a table's row); points (x, y); or an equation."""


@dataclass(frozen=True)
class Entry:
    """Something printed that measurements can be held against.

    `name` is its name in the paper, which expectations call it by: `fig-1d` is `hotnets/fig-1d`. `doubt` says what is
    doubtful about it.
    """

    name: str
    what: str
    figures: Figures
    unit: str
    source: str = ""
    """Where it is printed, if not where its row says."""
    doubt: str = ""

    @property
    def shape(self) -> str:
        """What it is: a figure, a row (figures by name) or a curve (points, or an equation)."""
        if isinstance(self.figures, Mapping):
            return "row"
        return "figure" if isinstance(self.figures, float | int) else "curve"


@dataclass(frozen=True)
class Row:
    """A result of the papers, a row of the scoreboard: what it shows, its headline figures as text, and its place.

    `entries` are its figures.
    """

    id: str
    what: str
    headline: str
    source: str
    entries: tuple[Entry, ...] = ()


@dataclass(frozen=True)
class Claim:
    """What a paper says in words, as something to expect of every run of its kind of study, and the rows it shows.

    Of a row that is about one kind of cross traffic, `rows` names it.
    """

    expectation: Expectation
    rows: Mapping[str, str | None]

    def shows(self, kinds: Collection[str]) -> tuple[str, ...]:
        """The rows that it shows where these kinds of cross traffic are."""
        return tuple(row for row, kind in self.rows.items() if kind is None or kind in kinds)


@dataclass(frozen=True)
class Paper:
    """A paper with its results, in its own order."""

    key: str
    name: str
    """What people call it."""
    rows: tuple[Row, ...]
    claims: tuple[Claim, ...] = ()
    study: str | None = None
    """The kind of study whose runs its claims are about."""
