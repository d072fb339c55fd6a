# SPDX-License-Identifier: Apache-2.0
"""Quantities by name, and what one is."""

import importlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TypeVar

from analysis.quantities._request import Asked, Case, Curve
from roundabout.core import plugins
from roundabout.core.errors import UsageError
from roundabout.spec.errors import did_you_mean

Answer = TypeVar("Answer", bound=Sequence[Case] | Sequence[Curve])

_registered: dict[str, "Quantity"] = {}


@dataclass(frozen=True)
class Quantity:
    """Something that can be measured of a run: its name and unit, and the function that does it.

    `digits` are those after the point when it is shown, and `signed` says that it bears a sign then. `needs` are the
    fields of an expectation that it cannot do without, `jobs` those that it is about by name, and `by` is the property
    that a table's row goes by. `curve` says that it answers with curves, and `note` puts its cases into words.
    """

    name: str
    about: str
    unit: str
    digits: int
    measure: Callable[[Asked], Sequence[Case] | Sequence[Curve]]
    needs: tuple[str, ...]
    by: str
    curve: bool
    signed: bool
    jobs: tuple[str, ...]
    note: Callable[[Sequence[Case]], str] | None

    def digit(self, value: float) -> str:
        """A figure as text."""
        return f"{value:{'+' if self.signed else ''}z.{self.digits}f}"

    def shown(self, value: float) -> str:
        """A figure as text, with the unit."""
        return f"{self.digit(value)} {self.unit}".rstrip()


def quantity(  # noqa: PLR0913 - each is one thing to say about it
    name: str,
    *,
    unit: str = "",
    digits: int = 2,
    needs: tuple[str, ...] = (),
    by: str = "job",
    curve: bool = False,
    signed: bool = False,
    jobs: tuple[str, ...] = (),
    note: Callable[[Sequence[Case]], str] | None = None,
) -> Callable[[Callable[[Asked], Answer]], Callable[[Asked], Answer]]:
    """Register a function that measures a quantity; its docstring says what that is.

    It answers with cases, or with curves where `curve` is set: nothing where the run does not have it. Every quantity
    may be asked `of` a variant, `at` levels and of a `job`; `needs` names what it cannot do without, `over` among that.
    """

    def register(measure: Callable[[Asked], Answer]) -> Callable[[Asked], Answer]:
        about = (measure.__doc__ or "").strip().partition("\n")[0]
        _registered[name] = Quantity(name, about, unit, digits, measure, needs, by, curve, signed, jobs, note)
        return measure

    return register


@cache
def known() -> dict[str, Quantity]:
    """Every quantity by name, those from outside the tree included."""
    package = sys.modules[__package__]
    for module in plugins.names(package):
        importlib.import_module(f"{__package__}.{module}")
    return dict(sorted(_registered.items()))


def named(name: str) -> Quantity:
    """The quantity of that name. Raises UsageError when there is none."""
    if name not in known():
        raise UsageError(f"found no quantity '{name}', expected one of those in analysis/quantities", hint_for(name))
    return known()[name]


def hint_for(name: str) -> str:
    """What somebody who wrote `name` may have meant."""
    return did_you_mean(name, known()) or "`roundabout scoreboard --quantities` lists them"
