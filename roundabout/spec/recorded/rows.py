# SPDX-License-Identifier: Apache-2.0
"""What readers of real traces share: rows of CSV and instants, and complaints by file, row and column."""

import csv
from collections.abc import Callable
from datetime import datetime
from io import StringIO
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from roundabout.spec.errors import SpecError, choices, show
from roundabout.spec.source import dotted, shown

EPOCH = datetime(1970, 1, 1)  # these traces' clocks have no zone


class Row(BaseModel):
    """What is read of a row; it may have more."""

    model_config = ConfigDict(frozen=True, strict=True)


Read = TypeVar("Read", bound=Row)


def instant(*formats: str, needed: bool = False) -> Callable[[object], float | None]:
    """A reader of instants in the first of those formats that fits, s; None for what a trace does not know."""

    def read(value: object) -> float | None:
        if value in ("", "None", None) and not needed:
            return None
        for each in formats:
            try:
                return (datetime.strptime(str(value), each) - EPOCH).total_seconds()
            except ValueError:
                continue
        raise ValueError(f"an instant as {' or '.join(formats)}")

    return read


def content(path: Path) -> str:
    """The text of a file. Raises SpecError where there is none."""
    try:
        return path.read_bytes().decode("utf-8-sig")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise SpecError(shown(path), reason.lower(), "a file of UTF-8 text") from None


def complaint(path: Path, error: ValidationError, line: int | None = None) -> SpecError:
    """The first thing wrong with a file, or with its row that ends in that line."""
    details = error.errors(include_url=False)[0]
    found = "nothing" if details["type"] == "missing" else show(details["input"])
    expected = details["msg"].removeprefix("Value error, ").removeprefix("Input should be ")
    return SpecError(shown(path), found, expected, field=dotted(details["loc"]), line=line)


def table(path: Path, model: type[Read]) -> tuple[Read, ...]:
    """The rows of a CSV file whose first names the columns. Raises SpecError for the first thing wrong with it."""
    reader = csv.DictReader(StringIO(content(path), newline=""), strict=True, restkey="more")
    rows: list[Read] = []
    try:
        wanted = [field.alias or name for name, field in model.model_fields.items()]
        missing = [name for name in wanted if name not in (reader.fieldnames or ())]
        if missing:
            found = f"the columns {choices(reader.fieldnames or ('none',))}"
            raise SpecError(shown(path), found, f"{missing[0]} among them", line=1)
        rows += [model.model_validate(row) for row in reader]
    except csv.Error as error:
        raise SpecError(shown(path), str(error), "rows of CSV", line=reader.line_num) from None
    except ValidationError as error:
        raise complaint(path, error, reader.line_num) from None
    return tuple(rows)
