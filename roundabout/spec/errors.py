# SPDX-License-Identifier: Apache-2.0
"""Errors of specifications, with their places."""

import difflib
from collections.abc import Iterable

from roundabout.core.errors import UsageError, in_one_line


class SpecError(UsageError):
    """One fault in one file: the field (dotted path, empty for the whole), line, and the values found and expected."""

    def __init__(  # noqa: PLR0913 - each is one part of the message
        self,
        file: str,
        found: str,
        expected: str,
        *,
        field: str = "",
        line: int | None = None,
        hint: str | None = None,
    ) -> None:
        place = file if line is None else f"{file}:{line}"
        where = f"{place}: {field}" if field else place
        super().__init__(in_one_line(f"{where}: found {found}, expected {expected}"), hint)
        self.file = file
        self.field = field
        self.line = line
        self.found = found
        self.expected = expected


def suggest(word: object, known: Iterable[object]) -> str | None:
    """Return a hint that names the known words most like `word`, or None."""
    near = difflib.get_close_matches(str(word), [str(name) for name in known], n=2, cutoff=0.6)
    return f"did you mean {' or '.join(near)}?" if near else None


def quote_value(value: object) -> str:
    """Return `value` as a message quotes it: short, and never a page of nested data."""
    if isinstance(value, dict):
        return f"a mapping of {len(value)}"
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}"
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def shorten(word: str) -> str:
    """Return a word of a file as a message quotes it: a damaged file has words of any length."""
    return word if len(word) <= 40 else f"{word[:37]}..."


def list_choices(known: Iterable[object]) -> str:
    """Return `known` as a message lists it."""
    names = [str(name) for name in known]
    return ", ".join(names[:12]) + (f" and {len(names) - 12} more" if len(names) > 12 else "")
