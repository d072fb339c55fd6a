# SPDX-License-Identifier: Apache-2.0
"""The check of the names in an expectation, quantities and printed figures, without importing the measuring modules."""

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple, cast

from roundabout.core.memo import cached_answer
from roundabout.spec.errors import list_choices, quote_value, suggest
from roundabout.spec.expectation import (
    PRINTED_FIGURE,
    Bound,
    Bounds,
    Complaint,
    Curve,
    Expectation,
    Order,
    Row,
    TrialCell,
    Value,
)


class Term(NamedTuple):
    """A quantity's name and requirements, without its function; the fields are those of `Quantity`."""

    name: str
    needs: Sequence[str]
    curve: bool
    jobs: Sequence[str]
    signed: bool


class Vocabulary(NamedTuple):
    """The names that expectations may use: quantities by name, and the shape of each printed figure by name."""

    quantities: dict[str, Term]
    printed: dict[str, str]


@cache
def vocabulary() -> Vocabulary:
    """Return every known name, cached on disk between starts, because importing the defining modules takes a second."""
    terms, printed = cached_answer("vocabulary", (), _words)
    return Vocabulary({term[0]: Term(*term) for term in terms}, printed)


def _words() -> tuple[tuple[list[Term], dict[str, str]], bool]:
    from analysis import papers  # noqa: PLC0415
    from analysis.quantities import all_quantities  # noqa: PLC0415

    terms = [Term(each.name, each.needs, each.curve, each.jobs, each.signed) for each in all_quantities().values()]
    return (terms, {name: found.entry.shape for name, found in papers.printed_entries().items()}), True


def complain(expectation: Expectation, cells: Sequence[TrialCell]) -> Complaint | None:
    """Return the first error of an expectation: an unknown name, a wrong field or a wrong shape.

    None if it is valid.
    """
    known = vocabulary().quantities
    if expectation.what not in known:
        expected = f"a quantity ({list_choices(known)})"
        return Complaint(("what",), quote_value(expectation.what), expected, suggest(expectation.what, known))
    quantity = known[expectation.what]
    return _wrong_field(expectation, quantity, cells) or _wrong_name(expectation) or _always_true(expectation, quantity)


def _always_true(expectation: Expectation, quantity: Term) -> Complaint | None:
    """Return a fault of an expectation that every run meets."""
    if expectation.over is not None and expectation.over == expectation.of:
        return Complaint(("over",), quote_value(expectation.over), "another variant: over itself every ratio is 1")
    least = expectation.at_least if isinstance(expectation, Bound) and expectation.at_most is None else None
    if not quantity.signed and isinstance(least, int | float) and least <= 0:
        return Complaint(("at_least",), f"{least:g}", f"more than 0: '{quantity.name}' is never less")
    return None


def _wrong_field(expectation: Expectation, quantity: Term, cells: Sequence[TrialCell]) -> Complaint | None:
    by_variant = isinstance(expectation, Order) and expectation.by == "variant"
    reported = by_variant or expectation.of is not None or len({cell.variant for cell in cells}) == 1
    if "of" in quantity.needs and not reported:
        return Complaint(("of",), "nothing", f"a variant: '{quantity.name}' is of one")
    if "over" in quantity.needs and expectation.over is None:
        return Complaint(("over",), "nothing", f"a variant to compare with: '{quantity.name}' is over one")
    if "over" not in quantity.needs and expectation.over is not None:
        return Complaint(("over",), quote_value(expectation.over), f"none: '{quantity.name}' compares nothing")
    if isinstance(expectation, Curve) != quantity.curve:
        return Complaint(
            ("what",), quote_value(quantity.name), f"a quantity that is {'a figure' if quantity.curve else 'a curve'}"
        )
    missing = [job for job in quantity.jobs if not any(job in cell.spec.jobs for cell in cells)]
    if missing:
        return Complaint(("what",), quote_value(quantity.name), f"a quantity of these jobs: there is no {missing[0]}")
    return None


def _wrong_name(expectation: Expectation) -> Complaint | None:
    for location, name, shape in printed_names(expectation):
        known = vocabulary().printed
        if name not in known:
            return Complaint(location, quote_value(name), PRINTED_FIGURE, suggest(name, known))
        if known[name] != shape:
            return Complaint(location, f"{name}, a {known[name]}", f"a {shape}")
    return None


def printed_names(expectation: Expectation) -> list[tuple[tuple[str, ...], str, str]]:
    """Return for each printed figure that an expectation names: the field's path, the name, and the required shape."""
    fields: list[tuple[tuple[str, ...], Any, str]] = []
    match expectation:
        case Value():
            fields = [(("paper",), expectation.paper, "figure")]
        case Bound():
            fields = _ends((), expectation)
        case Curve():
            fields = [(("curve",), expectation.curve, "curve")]
        case Row(row=str()):
            fields = [(("row",), expectation.row, "row")]
        case Row(row=dict()):
            for name, column in cast("dict[str, Any]", expectation.row).items():
                here = ("row", name)
                fields += _ends(here, column) if isinstance(column, Bounds) else [(here, column, "figure")]
    return [(location, name, shape) for location, name, shape in fields if isinstance(name, str)]


def _ends(here: tuple[str, ...], bounds: Bounds) -> list[tuple[tuple[str, ...], Any, str]]:
    return [((*here, "at_least"), bounds.at_least, "figure"), ((*here, "at_most"), bounds.at_most, "figure")]
