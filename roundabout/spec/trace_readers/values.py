# SPDX-License-Identifier: Apache-2.0
"""Parsers of single values of real traces, as published or as saved by spreadsheets and pandas.

Each parser raises ValueError, whose text states what is allowed, for any other value.
"""

import re
from collections.abc import Callable
from datetime import datetime
from typing import Annotated, TypeVar

from pydantic import BeforeValidator

MAX_GPUS = 1_000_000  # limit for a job or task; no cluster has as many, so a larger number is damaged
MAX_S = 1e12  # limit of a trace's clock, 30,000 years; below it a float resolves milliseconds
YEARS = range(1970, 2101)  # allowed years; spreadsheets and Go write unknown times as 1899 or year 1
UNKNOWN = frozenset({"", "none", "null", "nan", "nat", "na", "n/a", "#n/a", "<na>", "unknown"})

_TIME = re.compile(
    r"(\d{1,4})([-/.])(\d{1,2})\2(\d{1,4})[ T](\d{1,2}):(\d{2})(?::(\d{2})(\.\d+)?)?(Z|[+-]\d{2}(?::?\d{2})?)?",
    re.ASCII,
)
_NUMBER = re.compile(r"\d+(\.\d+)?", re.ASCII)  # 1.25E+07 is refused, because it was rounded

Value = TypeVar("Value")


def is_unknown(value: object) -> bool:
    """Return True for None and for words such as `null` or `n/a` that stand for a missing value."""
    return value is None or (isinstance(value, str) and value.strip().lower() in UNKNOWN)


def unless_unknown(read: Callable[[object], Value]) -> Callable[[object], Value | None]:
    """Return a parser that returns None for an unknown value and otherwise `read(value)`."""
    return lambda value: None if is_unknown(value) else read(value)


def instant(value: object) -> float:
    """Parse a time without a zone. Return seconds since 1970 on the trace's own clock."""
    return _instant(value, "2023-07-15 02:19:05", zoned=False)


def zoned_instant(value: object) -> float:
    """Parse a time with a zone. Return seconds since 1970 in UTC."""
    return _instant(value, "2023-05-17 11:00:58+00:00", zoned=True)


def seconds(value: object) -> float:
    """Parse a number of seconds on the trace's own clock, from 0 to MAX_S."""
    return _number(value, MAX_S, f"seconds from 0 to {MAX_S:.0f}, in digits")


def whole(value: object) -> int:
    """Parse a whole number of GPUs or workers, from 0 to MAX_GPUS."""
    expected = f"a whole number from 0 to {MAX_GPUS:,}"
    number = _number(value, MAX_GPUS, expected)
    if not number.is_integer():
        raise ValueError(expected)
    return int(number)


def percent(value: object) -> float:
    """Parse a percentage of GPUs, where 100 is one GPU."""
    return _number(value, 100 * MAX_GPUS, f"a percentage from 0 to {100 * MAX_GPUS:,}, in digits")


def name(value: object) -> str:
    """Return `value` if it is a text other than a word for a missing value."""
    if is_unknown(value) or not isinstance(value, str):
        raise ValueError("a name")
    return value


Instant = Annotated[float, BeforeValidator(instant)]
InstantIfKnown = Annotated[float | None, BeforeValidator(unless_unknown(instant))]
ZonedInstant = Annotated[float, BeforeValidator(zoned_instant)]
ZonedInstantIfKnown = Annotated[float | None, BeforeValidator(unless_unknown(zoned_instant))]
Seconds = Annotated[float, BeforeValidator(seconds)]
SecondsIfKnown = Annotated[float | None, BeforeValidator(unless_unknown(seconds))]
Whole = Annotated[int, BeforeValidator(whole)]
WholeIfKnown = Annotated[int | None, BeforeValidator(unless_unknown(whole))]
PercentIfKnown = Annotated[float | None, BeforeValidator(unless_unknown(percent))]
KnownName = Annotated[str, BeforeValidator(name)]


def elapsed(*instants: float | None) -> float | None:
    """Return the seconds between the last two instants. Return None if one is unknown or they are not ascending."""
    known = [each for each in instants if each is not None]
    return known[-1] - known[-2] if len(known) == len(instants) and known == sorted(known) else None


def _instant(value: object, example: str, *, zoned: bool) -> float:
    match = _TIME.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None:
        raise ValueError(f"a date and a time, as {example}")
    first, _, second, third, hour, minute, of_minute, fraction, zone = match.groups()
    if (zone is not None) != zoned:
        raise ValueError(f"a time {'with its zone' if zoned else 'without a zone'}, as {example}")
    year, month, day = _in_order(first, second, third, example)
    text = f"{year}-{month:0>2}-{day:0>2}T{hour:0>2}:{minute}:{of_minute or '00'}{zone or '+00:00'}"
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"a date and a time of the calendar, as {example}") from None
    if moment.year not in YEARS:
        raise ValueError(f"a year from {YEARS[0]} to {YEARS[-1]}")
    return moment.timestamp() + float(f"0{fraction or ''}")


def _in_order(first: str, second: str, third: str, example: str) -> tuple[str, str, str]:
    """Return a date's year, month and day, where only one order of them is possible."""
    if len(first) == 4 and len(third) <= 2:
        return first, second, third
    if len(first) > 2 or len(third) != 4:
        raise ValueError(f"a year of four digits, as {example}")
    if int(first) != int(second) and max(int(first), int(second)) <= 12:
        raise ValueError(f"the year first, as {example}, since {first} and {second} can both be the month")
    return (third, second, first) if int(first) > 12 else (third, first, second)


def _number(value: object, most: float, expected: str) -> float:
    if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
        raise ValueError(expected)
    return float(value)
