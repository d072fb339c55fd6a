# SPDX-License-Identifier: Apache-2.0
"""Errors in specifications with their places, and helpers for their messages."""

import difflib
from collections.abc import Iterable

from roundabout.core.errors import UsageError, in_one_line


class SpecError(UsageError):
    """Error for one fault in a file. `field` is a dotted path, or empty if the fault concerns the whole file."""

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
        self.further: tuple[SpecError, ...] = ()  # other faults that the same check found


MAX_SUGGESTIONS = 6  # names in a hint

# Fields and values that version 1.0 refuses, each with its current name.
RENAMED = {"needs": "depends_on", "takes": "inputs", "meant": "auto"}


def suggest(word: object, known: Iterable[object]) -> str | None:
    """Return a hint that names the current name of `word` or the most similar words of `known`, or None without any."""
    names = [str(name) for name in known]
    if RENAMED.get(str(word)) in names:
        return f"it is called {RENAMED[str(word)]} since version 1.0"
    longer = [name for name in names if name.startswith(f"{word}_")]  # a unit or a variant is missing: T for T_us
    near = longer[:MAX_SUGGESTIONS] or difflib.get_close_matches(str(word), names, n=2, cutoff=0.6)
    return f"did you mean {' or '.join(near)}?" if near else None


def expected_names(word: object, known: Iterable[object]) -> tuple[str, str | None]:
    """Return the expected names instead of `word`, and a hint. The names are all of `known` only without a hint."""
    names = [str(name) for name in known]
    hint = suggest(word, names)
    return f"one of {list_choices(names) if hint else ', '.join(names)}", hint


def quote_value(value: object) -> str:
    """Return a short quotation of `value` for a message. Nested data is only summarized."""
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
    """Return `word` truncated for a message, because a damaged file has words of any length."""
    return word if len(word) <= 40 else f"{word[:37]}..."


def list_choices(known: Iterable[object]) -> str:
    """Return the choices `known` as a list for a message."""
    names = [str(name) for name in known]
    return ", ".join(names[:12]) + (f" and {len(names) - 12} more" if len(names) > 12 else "")
