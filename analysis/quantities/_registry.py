# SPDX-License-Identifier: Apache-2.0
"""The registry of quantities by name."""

import importlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TypeVar

from analysis.quantities._request import Case, Curve, QuantityRequest
from roundabout.core import plugins
from roundabout.core.errors import UsageError
from roundabout.core.milliseconds import format_ms
from roundabout.spec.errors import suggest

Answer = TypeVar("Answer", bound=Sequence[Case] | Sequence[Curve])

_registered: dict[str, "Quantity"] = {}


@dataclass(frozen=True)
class Quantity:
    """A quantity of a run: its name, its unit, and the function that measures it.

    `digits` is the number of digits after the point in texts, and `signed` adds a sign. `needs` are the required fields
    of an expectation, `jobs` the jobs that must exist, and `by` is the property that names a table's columns. `curve`
    marks quantities that are curves, and `note` describes the cases in words.
    """

    name: str
    about: str
    unit: str
    digits: int
    measure: Callable[[QuantityRequest], Sequence[Case] | Sequence[Curve]]
    needs: tuple[str, ...]
    by: str
    curve: bool
    signed: bool
    jobs: tuple[str, ...]
    note: Callable[[Sequence[Case]], str] | None

    def format_number(self, value: float) -> str:
        """Format a figure without its unit."""
        if self.unit == "ms":
            return format_ms(value, self.digits)
        return f"{value:{'+' if self.signed else ''}z.{self.digits}f}"

    def format(self, value: float) -> str:
        """Format a figure with the unit."""
        return f"{self.format_number(value)} {self.unit}".rstrip()


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
) -> Callable[[Callable[[QuantityRequest], Answer]], Callable[[QuantityRequest], Answer]]:
    """Register a function that measures a quantity; the first line of its docstring describes the quantity to users.

    The function returns cases, or curves if `curve` is set, and an empty list if the run lacks the data. Expectations
    may restrict every quantity by `of` (a variant), `at` (levels) and `job`. `needs` names the fields that are
    required, among them `over`, the variant to compare with.
    """

    def register(measure: Callable[[QuantityRequest], Answer]) -> Callable[[QuantityRequest], Answer]:
        about = (measure.__doc__ or "").strip().partition("\n")[0].removeprefix("Return ")
        about = about[:1].upper() + about[1:]
        _registered[name] = Quantity(name, about, unit, digits, measure, needs, by, curve, signed, jobs, note)
        return measure

    return register


@cache
def all_quantities() -> dict[str, Quantity]:
    """Return every quantity by name, including plugins'."""
    package = sys.modules[__package__]
    for module in plugins.module_names(package):
        importlib.import_module(f"{__package__}.{module}")
    return dict(sorted(_registered.items()))


def find_quantity(name: str) -> Quantity:
    """Return the quantity of that name. Raises UsageError if there is none."""
    if name not in all_quantities():
        raise UsageError(f"found no quantity '{name}', expected one of those in analysis/quantities", hint_for(name))
    return all_quantities()[name]


def hint_for(name: str) -> str:
    """Return a hint for an unknown quantity: a similar name, or the command that lists all names."""
    return suggest(name, all_quantities()) or "`roundabout scoreboard --quantities` lists them"
