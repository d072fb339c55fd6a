# SPDX-License-Identifier: Apache-2.0
"""Common parts of specifications: the strict base model, and types of names and numbers."""

from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

T = TypeVar("T")


class Strict(BaseModel):
    """The base of all models of specifications.

    Unknown fields are errors, values are never converted, and instances are immutable.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False, serialize_by_alias=True)


# A tuple that accepts a list, because YAML and JSON have no tuples. Its items are validated strictly.
Tuple = Annotated[tuple[T, ...], Field(strict=False)]

MAX_NAME_LENGTH = 64
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=MAX_NAME_LENGTH)]
NAME_RULE = f"at most {MAX_NAME_LENGTH} letters, digits, '.', '_' and '-', a letter or digit first"
# Names that hosts and switches cannot have, and why. A lab names a bridge after its switch, and a port after its
# neighbor.
_TAKEN = {
    **dict.fromkeys(("lo", "all", "default"), "the kernel gives no device this name"),
    **dict.fromkeys(
        ("tunl0", "gre0", "gretap0", "erspan0", "sit0", "ip6tnl0", "ip6gre0"),
        "a kernel with tunnels has such a device everywhere",
    ),
    **dict.fromkeys(("ungrouped", "localhost"), "Ansible gives it another meaning"),
    **dict.fromkeys(("rack", "switches", "testbed", "lab"), "inventories have a group of this name"),
    "controller": "it is this machine",
    **dict.fromkeys(("true", "false", "yes", "no", "on", "off", "null"), "YAML, and so Ansible, reads it as no text"),
}


def _is_free(name: str) -> str:
    if name in _TAKEN:
        raise ValueError(f"another name: {_TAKEN[name]}")
    return name


# A node's name is also a host name, and part of the name of a network device, which Linux limits to 15 characters.
NodeName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]*$", max_length=12), AfterValidator(_is_free)]
Text = Annotated[str, StringConstraints(min_length=1, max_length=4000)]
Positive = Annotated[float, Field(gt=0, le=1e9)]
NotNegative = Annotated[float, Field(ge=0, le=1e9)]


def _level(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError("a name or a number")
    return value


Level = Annotated[str | int | float, BeforeValidator(_level)]


def drop_defaults(unsaid: Mapping[str, Any], stored: dict[str, Any]) -> dict[str, Any]:
    """Return `stored` without the fields whose value is the default in `unsaid`.

    This keeps trial keys valid that were hashed before a field existed.
    """
    return {name: value for name, value in stored.items() if name not in unsaid or value != unsaid[name]}
