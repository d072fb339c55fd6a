# SPDX-License-Identifier: Apache-2.0
"""The form of printed figures: a row of the scoreboard for a figure or table, with its entries and claims."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from roundabout.spec.expectation import Expectation

Figures = float | Mapping[str, float] | tuple[tuple[float, float], ...] | Callable[[float], float]
"""One figure; figures by name (a table's row); points (x, y); or an equation."""


@dataclass(frozen=True)
class Entry:
    """A printed figure to which measurements can be compared.

    `name` is its name in the paper, which expectations use: `fig-1d` is `hotnets/fig-1d`. `doubt` describes what is
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
        """Return its shape: a figure, a row (figures by name) or a curve (points, or an equation)."""
        if isinstance(self.figures, Mapping):
            return "row"
        return "figure" if isinstance(self.figures, float | int) else "curve"


@dataclass(frozen=True)
class Row:
    """A result of the papers, a row of the scoreboard: its subject, its headline figures as text, and its place.

    `entries` are its figures.
    """

    id: str
    what: str
    headline: str
    source: str
    entries: tuple[Entry, ...] = ()


@dataclass(frozen=True)
class Claim:
    """A paper's statement in words, as an expectation of every run of its kind of study, and the rows it shows.

    `rows` names kinds of cross traffic of a row about one kind.
    """

    expectation: Expectation
    rows: Mapping[str, str | None]

    def shows(self, kinds: Collection[str]) -> tuple[str, ...]:
        """Return the rows that it shows with these kinds of cross traffic."""
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
