# SPDX-License-Identifier: Apache-2.0
"""Checked fields of other tools' files.

Each must have its type, or a FieldError gives the values found and expected.
"""

import json
from collections.abc import Sequence
from typing import Any, Final, TypeVar

T = TypeVar("T")

MAX_WHOLE = 2**53
"""Largest whole number: 285 years in microseconds, which still fits into 64 bits in nanoseconds."""


class _Ambiguous:
    """Stands for the value of a key that an object of JSON has twice, with different values."""


AMBIGUOUS: Final = _Ambiguous()


class FieldError(ValueError):
    """A missing or invalid field. Its reader adds the file."""


def _make_object(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        found.clear()
        for key, value in pairs:
            found[key] = value if found.get(key, value) == value else AMBIGUOUS
    return found


JSON = json.JSONDecoder(object_pairs_hook=_make_object, strict=False)
"""Decodes JSON, also with line breaks within text, and puts `AMBIGUOUS` where a key has different values. Raises
ValueError, or RecursionError for objects that are nested too deep."""


def describe_json_error(error: ValueError | RecursionError) -> str:
    """Return the reason why JSON cannot be decoded, without Python's remarks about its own limits."""
    if isinstance(error, json.JSONDecodeError):
        return str(error)
    return "nested too deep" if isinstance(error, RecursionError) else "a number of thousands of digits"


def require_mapping(of: Any, name: str) -> dict[str, Any]:
    """Return the object in a field. Raises FieldError if it is missing or has another type."""
    return _require(of, name, dict, "an object")


def require_list(of: Any, name: str) -> list[Any]:
    """Return the list in a field. Raises FieldError if it is missing or has another type."""
    return _require(of, name, list, "a list")


def require_text(of: Any, name: str) -> str:
    """Return the string in a field. Raises FieldError if it is missing or has another type."""
    return _require(of, name, str, "text")


def require_whole(of: dict[str, Any], name: str, least: int = 0, most: int = MAX_WHOLE) -> int:
    """Return the whole number in a field. Raises FieldError unless it is from `least` to `most`."""
    value: Any = of.get(name)
    if type(value) is not int or not least <= value <= most:
        limit = "2^53" if most == MAX_WHOLE else most
        raise FieldError(f"field {name}: found {quote_value(value)}, expected a whole number from {least} to {limit}")
    return value


def require_real(of: dict[str, Any], name: str) -> float:
    """Return the number in a field. Raises FieldError unless it is 0 or more."""
    value: Any = of.get(name)
    if type(value) not in (int, float) or not 0 <= value <= MAX_WHOLE:
        raise FieldError(f"field {name}: found {quote_value(value)}, expected a number from 0 to 2^53")
    return float(value)


def quote_value(value: Any) -> str:
    """Return a value as short text on one line, for a message."""
    if value is None:
        return "none"
    if value is AMBIGUOUS:
        return "several values"
    if isinstance(value, (dict, list)):
        return "an object" if isinstance(value, dict) else "a list"
    if isinstance(value, int) and abs(value) > MAX_WHOLE:
        return "a larger number"
    return repr(value)[:40]


def _require(of: Any, name: str, kind: type[T], expected: str) -> T:
    if not isinstance(of, dict):
        raise FieldError(f"found {quote_value(of)}, expected an object with field {name}")
    value = of.get(name)
    if not isinstance(value, kind):
        raise FieldError(f"field {name}: found {quote_value(value)}, expected {expected}")
    return value
