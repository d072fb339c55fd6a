# SPDX-License-Identifier: Apache-2.0
"""What all parts of a specification share: strictness, and the shape of names."""

from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

T = TypeVar("T")


class Strict(BaseModel):
    """A part of a specification: unknown fields are refused, nothing is converted, nothing changes once read."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False, serialize_by_alias=True)


# YAML and JSON have lists where we keep tuples; the items stay strict.
Tuple = Annotated[tuple[T, ...], Field(strict=False)]

Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=64)]
# Also a host name, and short enough to be part of a device's name.
NodeName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]*$", max_length=12)]
Text = Annotated[str, StringConstraints(min_length=1, max_length=4000)]
Positive = Annotated[float, Field(gt=0, le=1e9)]
NotNegative = Annotated[float, Field(ge=0, le=1e9)]


def _level(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError("a name or a number")
    return value


Level = Annotated[str | int | float, BeforeValidator(_level)]


def without(unsaid: Mapping[str, Any], stored: dict[str, Any]) -> dict[str, Any]:
    """What is stored of a part, less fields with these values, which say nothing: older trials' keys stay the same."""
    return {name: value for name, value in stored.items() if name not in unsaid or value != unsaid[name]}
