# SPDX-License-Identifier: Apache-2.0
"""Expectations of an experiment: a paper's figure, its tolerance, and the basis of an agreement.

The field that states the finding tells the kinds apart: `paper` (a value), `at_least` or `at_most` (a bound), `curve`,
`order`, `row`, `sign`. Each may be put in words, as a `claim`. Quantities and printed figures are names here;
`analysis` knows both, and completes the checks (`ExpectationCheck`).
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
    """The basis of an agreement: predicted before the measurement, fitted to it, or by construction."""

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
"""The name of something that a paper printed, as `analysis/papers` has it: `hotnets/fig-1d`."""
Figure = Annotated[float | Printed, _one_message("a number, or the name of a printed figure")]
Points = Annotated[Tuple[Annotated[tuple[float, float], Field(strict=False)]], Field(min_length=2)]
BasisOrNone = Annotated[Basis | None, Field(strict=False), WithJsonSchema({"enum": [each.value for each in Basis]})]


class Bounds(Strict):
    """The bounds of an expected figure. One of them may be open."""

    at_least: Figure | None = None
    at_most: Figure | None = None

    @model_validator(mode="after")
    def _some(self) -> Self:
        if self.at_least is None and self.at_most is None:
            raise ValueError("`at_least`, `at_most` or both")
        return self


class Expectation(Strict):
    """The common fields of all kinds: the quantity, its place in the experiment, and the basis of an agreement."""

    kind: ClassVar[str]

    what: Text = Field(description="a quantity, by its name (analysis/quantities)")
    of: Name | None = Field(default=None, description="a variant; all of them unless given")
    over: Name | None = Field(default=None, description="the variant that it is compared with")
    job: Name | None = Field(default=None, description="a job; all of them unless given")
    at: dict[Name, Level] | None = Field(default=None, description="levels of other factors")
    only: dict[Name, Annotated[Label | Tuple[Label], _one_message("a text, or a list of texts")]] | None = Field(
        default=None, description="of what is measured, that with these properties: a model, a kind of traffic"
    )
    claim: Text | None = Field(default=None, description="the same in words")
    source: Text | None = Field(default=None, description="where it is printed; told by a printed figure's name")
    basis: BasisOrNone = Field(description="what agreement is worth: foretold, tuned until it came out, or put in")


class _Tolerance(Expectation):
    """The tolerance of a measured figure around the paper's."""

    tolerance: NotNegative | None = Field(default=None, description="in the quantity's own unit")
    within: Positive | None = Field(default=None, description="as a share of the paper's figure")

    @model_validator(mode="after")
    def _one_of_them(self) -> Self:
        if (self.tolerance is None) == (self.within is None):
            raise ValueError("one of `tolerance` and `within`")
        return self


class Value(_Tolerance):
    """One figure, of every job or other case for which it is measured."""

    kind = "value"
    paper: Figure


class Bound(Expectation, Bounds):
    """A lower bound, an upper bound, or both, of every job or other case for which the figure is measured."""

    kind = "bound"


class Curve(_Tolerance):
    """Points [x, y], or a printed curve, to which measured points are compared."""

    kind = "curve"
    curve: Annotated[Printed | Points, _one_message("points [x, y], two at least, or the name of a printed curve")]


class Order(Expectation):
    """Names from the least to the most."""

    kind = "order"
    order: Annotated[Tuple[Label], Field(min_length=2)]
    by: Name = Field(default="variant", description="what they are names of: a factor's levels, `job`, `model`")


class Row(_Tolerance):
    """A table's row: figures or bounds, by their columns."""

    kind = "row"
    row: Annotated[
        Printed | Annotated[dict[Label, float | Printed | Bounds], Field(min_length=1)],
        _one_message("figures (or at_least, at_most) by name, or the name of a printed row"),
    ]
    by: Name | None = Field(default=None, description="what the names are: the quantity says it unless given")


class Sign(Expectation):
    """The side of 1 on which each of several ratios lies. A ratio that is 1, or may be, has no sign."""

    kind = "sign"
    sign: Annotated[dict[Label, Literal["above", "below"]], Field(min_length=1)]
    by: Name | None = Field(default=None, description="what the names are: the quantity says it unless given")


KINDS: dict[str, type[Expectation]] = {
    "paper": Value,
    "at_least": Bound,
    "at_most": Bound,
    "curve": Curve,
    "order": Order,
    "row": Row,
    "sign": Sign,
}
"""By the field that states the finding."""
TAGGED: dict[Any, type[Expectation]] = {f"<{model.kind}>": model for model in KINDS.values()}
"""By what tells them apart in pydantic's messages."""


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
    """The part of an experiment that states what is expected."""

    expect: Tuple[AnyExpectation] = ()


PRINTED_FIGURE = "a name of analysis/papers"


class Complaint(NamedTuple):
    """A fault of an expectation: its field, and the values found and expected."""

    field: tuple[str | int, ...]
    found: str
    expected: str
    hint: str | None = None


class TrialCell(Protocol):
    """The part of a cell that expectations refer to."""

    @property
    def variant(self) -> str:
        """Return the name of the cell's variant."""
        ...

    @property
    def spec(self) -> Any:
        """Return the specification of the cell's trials."""
        ...


ExpectationCheck = Callable[[Expectation, Sequence[TrialCell]], Complaint | None]
"""Says what is wrong with an expectation about these cells, beyond what a specification knows by itself."""


def with_basis(expectations: Any) -> Any:
    """Add an empty basis to expectations of runs that were stored before bases existed."""
    if not isinstance(expectations, list | tuple):
        return expectations
    return [{"basis": None, **each} if isinstance(each, Mapping) else each for each in expectations]
