# SPDX-License-Identifier: Apache-2.0
"""Expectations of an experiment: a paper's figure, its tolerance, and the basis of an agreement.

The kind of an expectation follows from the field that states the finding: `paper` (a value), `at_least` or `at_most` (a
bound), `curve`, `order`, `row`, or `sign`. A `claim` states the expectation in words. This package has only the names
of quantities and printed figures; `analysis` checks that they exist (`ExpectationCheck`).
"""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Protocol, Self

from pydantic import (
    Discriminator,
    Field,
    StringConstraints,
    Tag,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WithJsonSchema,
    WrapValidator,
    model_validator,
)

from roundabout.spec.base import Level, Name, NotNegative, Positive, Strict, Text, Tuple


class Basis(StrEnum):
    """The basis of an agreement: predicted before the measurement, fitted to the paper, or by construction."""

    PREDICTED = "predicted"
    FITTED = "fitted"
    BY_CONSTRUCTION = "by construction"


def _one_message(expected: str) -> WrapValidator:
    """Return a validator with one message for a value of several shapes, each of which would give its own."""

    def check(value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
        try:
            return handler(value)
        except ValidationError:
            raise ValueError(expected) from None

    return WrapValidator(check)


Label = Annotated[str, StringConstraints(min_length=1, max_length=80)]
Printed = Annotated[str, StringConstraints(pattern=r"^[a-z0-9-]+(/[A-Za-z0-9._-]+)+$", max_length=80)]
"""The name of a printed figure or table in `analysis/papers`, such as `hotnets/fig-1d`."""
Figure = Annotated[float | Printed, _one_message("a number, or the name of a printed figure")]
Points = Annotated[Tuple[Annotated[tuple[float, float], Field(strict=False)]], Field(min_length=2)]
BasisOrNone = Annotated[Basis | None, Field(strict=False), WithJsonSchema({"enum": [each.value for each in Basis]})]


class Bounds(Strict):
    """The bounds of an expected figure. At least one bound is given."""

    at_least: Figure | None = Field(default=None, description="lower bound, or the name of a printed figure")
    at_most: Figure | None = Field(default=None, description="upper bound, or the name of a printed figure")

    @model_validator(mode="after")
    def _some(self) -> Self:
        if self.at_least is None and self.at_most is None:
            raise ValueError("`at_least`, `at_most` or both")
        return self


class Expectation(Strict):
    """The common fields of all kinds of expectation."""

    kind: ClassVar[str]

    what: Text = Field(description="name of the quantity (analysis/quantities)")
    of: Name | None = Field(default=None, description="variant that is measured; default: all")
    over: Name | None = Field(default=None, description="variant that the quantity compares with")
    job: Name | None = Field(default=None, description="job that is measured; default: all")
    at: dict[Name, Level] | None = Field(default=None, description="levels of the other factors")
    only: dict[Name, Annotated[Label | Tuple[Label], _one_message("a text, or a list of texts")]] | None = Field(
        default=None, description="only measurements with these properties, such as a model or a kind of traffic"
    )
    claim: Text | None = Field(default=None, description="the expectation in words")
    source: Text | None = Field(default=None, description="place in the paper; the name of a printed figure implies it")
    basis: BasisOrNone = Field(
        description="basis of an agreement: predicted before, fitted to the paper, or by construction"
    )


class _Tolerance(Expectation):
    """An expectation with a tolerance around the paper's figure."""

    tolerance: NotNegative | None = Field(
        default=None, description="largest absolute difference, in the quantity's unit"
    )
    within: Positive | None = Field(
        default=None, description="largest relative difference, as a share of the paper's figure"
    )

    @model_validator(mode="after")
    def _one_of_them(self) -> Self:
        if (self.tolerance is None) == (self.within is None):
            raise ValueError("one of `tolerance` and `within`")
        return self


class Value(_Tolerance):
    """An expectation of one figure, which each measured job or case must match."""

    kind = "value"
    paper: Figure = Field(description="printed figure, or its name in analysis/papers")


class Bound(Expectation, Bounds):
    """An expectation of a lower bound, an upper bound, or both, which each measured job or case must keep."""

    kind = "bound"


class Curve(_Tolerance):
    """An expectation of a curve: points [x, y], or the name of a printed curve."""

    kind = "curve"
    curve: Annotated[Printed | Points, _one_message("points [x, y], two at least, or the name of a printed curve")]


class Order(Expectation):
    """An expectation of an order: names sorted by the quantity, the smallest first."""

    kind = "order"
    order: Annotated[Tuple[Label], Field(min_length=2)] = Field(description="names from the smallest to the largest")
    by: Name = Field(default="variant", description="kind of the names: a factor for its levels, `job`, or `model`")


class Row(_Tolerance):
    """An expectation of a table's row: figures or bounds by column, or the name of a printed row."""

    kind = "row"
    row: Annotated[
        Printed | Annotated[dict[Label, float | Printed | Bounds], Field(min_length=1)],
        _one_message("figures (or at_least, at_most) by name, or the name of a printed row"),
    ]
    by: Name | None = Field(default=None, description="kind of the column names; default: the quantity's")


class Sign(Expectation):
    """An expectation whether each of several ratios is above or below 1. A ratio that may be 1 matches neither."""

    kind = "sign"
    sign: Annotated[dict[Label, Literal["above", "below"]], Field(min_length=1)] = Field(
        description="side of 1 on which each ratio lies, by name"
    )
    by: Name | None = Field(default=None, description="kind of the names; default: the quantity's")


KINDS: dict[str, type[Expectation]] = {
    "paper": Value,
    "at_least": Bound,
    "at_most": Bound,
    "curve": Curve,
    "order": Order,
    "row": Row,
    "sign": Sign,
}
"""Models of expectations, by the field that states the finding."""


def _tag(value: Any) -> str | None:
    kind = value.kind if isinstance(value, Expectation) else None
    if isinstance(value, Mapping):
        kind = next((model.kind for field, model in KINDS.items() if field in value), None)
    return kind and f"<{kind}>"


AnyExpectation = Annotated[
    Annotated[Value, Tag("<value>")]
    | Annotated[Bound, Tag("<bound>")]
    | Annotated[Curve, Tag("<curve>")]
    | Annotated[Order, Tag("<order>")]
    | Annotated[Row, Tag("<row>")]
    | Annotated[Sign, Tag("<sign>")],
    Discriminator(_tag, custom_error_type="no_finding", custom_error_message=f"one of {', '.join(KINDS)}"),
]


class Expectations(Strict):
    """The part of an experiment that states its expectations."""

    expect: Tuple[AnyExpectation] = Field(default=(), description="printed figures that the runs are held against")


PRINTED_FIGURE = "a name of analysis/papers"


class Complaint(NamedTuple):
    """A fault of an expectation: the field, the found value and the expected value, as for SpecError."""

    field: tuple[str | int, ...]
    found: str
    expected: str
    hint: str | None = None


class TrialCell(Protocol):
    """The attributes of a cell that a check of expectations needs."""

    @property
    def variant(self) -> str:
        """Return the name of the cell's variant."""
        ...

    @property
    def spec(self) -> Any:
        """Return the specification of the cell's trials."""
        ...


ExpectationCheck = Callable[[Expectation, Sequence[TrialCell]], Complaint | None]
"""Returns a fault of an expectation about these cells that needs knowledge of `analysis`, or None."""


def with_basis(expectations: Any) -> Any:
    """Add an empty basis to expectations of runs that were stored before bases existed."""
    if not isinstance(expectations, list | tuple):
        return expectations
    return [{"basis": None, **each} if isinstance(each, Mapping) else each for each in expectations]
