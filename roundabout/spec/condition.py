# SPDX-License-Identifier: Apache-2.0
"""Conditions of `--fail-if`: QUANTITY COMPARISON NUMBER, with `%` if the number is a relative change."""

import math
import operator
import re
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from roundabout.core.errors import UsageError
from roundabout.spec.errors import list_choices, suggest

COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_FORM = re.compile(r"\s*(\w+)\s*(<=|>=|<|>)\s*(\S+?)\s*(%?)\s*")


class Condition(NamedTuple):
    """A condition: the comparison of a quantity with a bound, in percent or in the quantity's own unit."""

    quantity: str
    comparison: str
    bound: float
    unit: Literal["", "%"] = ""

    def __str__(self) -> str:
        return f"{self.quantity} {self.comparison} {self.bound:g} {self.unit}".rstrip()

    @property
    def is_upper(self) -> bool:
        """Return True if the comparison is `>` or `>=`, so that large values meet the condition."""
        return self.comparison.startswith(">")

    def is_met(self, value: float, bound: float | None = None) -> bool:
        """Return True if `value` meets the condition. `bound` replaces the condition's bound if given."""
        return COMPARISONS[self.comparison](value, self.bound if bound is None else bound)


def parse_condition(text: str, quantities: Sequence[str], unit: Literal["", "%"] = "") -> Condition:
    """Parse a condition such as `iteration_ms > 5 %`.

    Raises UsageError if the form is wrong, the quantity is not in `quantities`, or the bound has another unit.
    """
    found = _FORM.fullmatch(text)
    if not found or found[4] != unit:
        form = f"QUANTITY < NUMBER {unit}".rstrip()
        example = f"{quantities[0]} > 5 {unit}".rstrip()
        raise UsageError(f"--fail-if: found {text!r}, expected {form} (or <=, >, >=), as in '{example}'")
    name, comparison, number, _ = found.groups()
    if name not in quantities:
        hint = suggest(name, quantities)
        raise UsageError(f"--fail-if: found the quantity {name!r}, expected one of {list_choices(quantities)}", hint)
    return Condition(name, comparison, _bound(number, text), unit)


def _bound(word: str, text: str) -> float:
    try:
        value = float(word)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise UsageError(f"--fail-if: found the bound {word!r} in {text!r}, expected a number")
    return value
