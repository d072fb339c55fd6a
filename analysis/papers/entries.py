# SPDX-License-Identifier: Apache-2.0
"""The form of printed figures: a row of the scoreboard for a figure or table, with its entries and claims."""

import csv
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import TypeAdapter

from roundabout.spec.expectation import Expectation

T = TypeVar("T")
Effect = Literal["link sharing", "transports", "software"]
"""The part of a real cluster that a result depends on: how links are shared, transports, or programs on hosts."""

NOT_MODELLED: Mapping[str, Mapping[Effect, str]] = {
    "fluid": {
        "transports": "the flow level has no transports, timers or queues",
        "software": "the flow level runs no programs",
    },
    "packets": {"software": "the packet level runs no programs"},
}
"""By testbed, the effects that it does not model, each with the reason. Other testbeds model all of them."""
DECIDING = ("rack", "fluid", "packets", "lab")
"""Testbeds in the order in which they decide a row, among those that model what the row depends on.

Real hosts come first. Of the others, an exact result comes before one with intervals, and full rates before scaled
ones.
"""
Figures = float | Mapping[str, float] | tuple[tuple[float, float], ...] | Callable[[float], float]
"""A number; numbers by name (a table's row); points (x, y); or an equation."""


@dataclass(frozen=True)
class Entry:
    """A printed figure to which measurements can be compared.

    Expectations use `name` with the paper's key before it: `fig-1d` becomes `hotnets/fig-1d`.
    """

    name: str
    what: str
    figures: Figures
    unit: str
    source: str = ""
    """The place where the entry is printed; empty if it is the row's."""

    @property
    def shape(self) -> str:
        """Return the shape of the entry: `figure`, `row` (figures by name) or `curve` (points, or an equation)."""
        if isinstance(self.figures, Mapping):
            return "row"
        return "figure" if isinstance(self.figures, float | int) else "curve"


@dataclass(frozen=True)
class Row:
    """A printed result, which is a row of the scoreboard: its subject, its headline figures as text, and its place.

    The place in a repository is its path and revision.
    `entries` are the figures to which measurements can be compared. `shown_by` names the experiments that decide the
    row, with what each depends on. Each decides on the first testbed of `DECIDING` that models that and has a figure.
    """

    id: str
    what: str
    headline: str
    source: str
    entries: tuple[Entry, ...] = ()
    shown_by: Mapping[str, Effect] = field(kw_only=True)

    def why_not_shown(self, experiment: str, testbed: str) -> str:
        """Return the reason why a testbed cannot show the row by an experiment; empty if it can.

        An experiment that does not decide the row depends on the same as the first one that does.
        """
        effect = self.shown_by.get(experiment, next(iter(self.shown_by.values())))
        return NOT_MODELLED.get(testbed, {}).get(effect, "")

    def testbeds_for(self, experiment: str) -> list[str]:
        """Return the testbeds without hardware that can show the row by an experiment; the first decides."""
        return [each for each in DECIDING if each != "rack" and not self.why_not_shown(experiment, each)]


@dataclass(frozen=True)
class Claim:
    """A paper's statement in words, as an expectation of every run of a kind of study, and the scoreboard's rows.

    `rows` maps each row's id to the kind of cross traffic that the row is about; None for any kind.
    """

    expectation: Expectation
    rows: Mapping[str, str | None] = field(default_factory=dict)

    def shows(self, kinds: Collection[str]) -> tuple[str, ...]:
        """Return the ids of the claim's rows for runs with these kinds of cross traffic."""
        return tuple(row for row, kind in self.rows.items() if kind is None or kind in kinds)


@dataclass(frozen=True)
class Paper:
    """A paper, or another source such as a repository, with its results in its own order."""

    key: str
    name: str
    """The usual name."""
    rows: tuple[Row, ...]
    claims: tuple[Claim, ...] = ()
    study: str | None = None
    """The kind of study whose runs the claims are about."""


def read_table(path: Path, row: type[T]) -> tuple[T, ...]:
    """Return the rows of a CSV file with a header as instances of a dataclass. An empty field is None."""
    with path.open(newline="") as file:
        rows = [{name: value or None for name, value in each.items()} for each in csv.DictReader(file)]
    adapter: Any = TypeAdapter(row)
    return tuple(map(adapter.validate_python, rows))
