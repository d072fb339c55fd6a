# SPDX-License-Identifier: Apache-2.0
"""Readers of the files of real traces: text, CSV tables, and errors with file, line and column."""

import csv
from collections.abc import Iterator, Sequence
from io import StringIO
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from roundabout.spec.assembly.validation_errors import first_fault
from roundabout.spec.errors import SpecError, list_choices, shorten, suggest
from roundabout.spec.reader.yaml_source import decode, dotted_path, read_bytes, shown_path

MAX_BYTES = 1 << 30  # limit of a file, far more than any published table, so that it fits into memory
DELIMITERS = ",;\t"  # spreadsheets write semicolons in locales whose decimal point is a comma
# Formats that users give by mistake, by their first bytes: a description, and the hint of the error.
OTHER_FORMATS = {
    b"\x1f\x8b": ("gzip-compressed data", "decompress it, with tar -xzf if it is a .tar.gz"),
    b"\x28\xb5\x2f\xfd": ("zstd-compressed data", "decompress it: zstd -d"),
    b"BZh": ("bzip2-compressed data", "decompress it: bzip2 -d"),
    b"\xfd7zXZ": ("xz-compressed data", "decompress it: xz -d"),
    b"7z\xbc\xaf\x27\x1c": ("a 7-Zip archive", "unpack it: 7z x"),
    b"PAR1": ("a Parquet file", "save its table as CSV (UTF-8)"),
    b"PK\x03\x04": ("a ZIP archive or a spreadsheet", "unpack it, or save the spreadsheet as CSV (UTF-8)"),
    b"\xff\xfe": ("UTF-16 text", "save it as UTF-8"),
    b"\xfe\xff": ("UTF-16 text", "save it as UTF-8"),
    b"version https://git-lfs": ("a Git LFS pointer", "fetch the file that it points to: git lfs pull"),
}


class Row(BaseModel):
    """The base of rows. Its fields are the columns that are read; other columns are ignored."""

    model_config = ConfigDict(frozen=True, strict=True)


RowModel = TypeVar("RowModel", bound=Row)


def load_text(path: Path) -> str:
    """Return the text of a trace's file. Raises SpecError if the file is missing, too large, or not UTF-8 text."""
    content = read_bytes(path, shown_path(path), MAX_BYTES)
    for start, (found, remedy) in OTHER_FORMATS.items():
        if content.startswith(start):
            raise SpecError(shown_path(path), found, "UTF-8 text", hint=remedy)
    return decode(content, shown_path(path))


def row_error(path: Path, error: ValidationError, line: int | None = None) -> SpecError:
    """Return a SpecError for the first fault in `error` about a file, or about its row that ends in `line`."""
    location, found, expected = first_fault(error)
    return SpecError(shown_path(path), found, expected, field=dotted_path(location), line=line)


def read_table(path: Path, model: type[RowModel], published: Sequence[str] = ()) -> Iterator[RowModel]:
    """Yield the rows of a CSV file. Raises SpecError for the file's first fault.

    Repeated headings are skipped, because concatenated files have them.

    Args:
        path: path of the file.
        model: model of a row, whose fields are the columns to read.
        published: all columns in order, for a table that is published without a heading.
    """
    columns: Sequence[str] = ()
    heading: Sequence[str] = ()
    for line, cells in _lines(path):
        if not columns:
            heading = cells if not published or not set(published).isdisjoint(cells) else ()
            columns = heading or published
            _check_columns(path, model, columns, line)
        if cells == heading:
            continue
        if len(cells) != len(columns):
            expected = f"{len(columns)}, one for each column"
            raise SpecError(shown_path(path), f"a row of {len(cells)} cells", expected, line=line)
        try:
            yield model.model_validate(dict(zip(columns, cells, strict=True)))
        except ValidationError as error:
            raise row_error(path, error, line) from None
    if not columns:
        _check_columns(path, model, columns, 1)


def _lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the cells of each row that is not empty, with the line in which it ends."""
    text = load_text(path)
    delimiter = max(DELIMITERS, key=text.lstrip().partition("\n")[0].count)
    reader = csv.reader(StringIO(text, newline=""), delimiter=delimiter, strict=True)
    begin = 1
    try:
        for row in reader:
            cells = [each.strip() for each in row]
            if any(cells):  # spreadsheets leave empty rows at the end
                yield reader.line_num, cells
            begin = reader.line_num + 1
    except csv.Error as error:
        hint = "look for a quote that is not closed"
        raise SpecError(shown_path(path), str(error), "rows of CSV", line=begin, hint=hint) from None


def _check_columns(path: Path, model: type[Row], columns: Sequence[str], line: int) -> None:
    wanted = [field.alias or name for name, field in model.model_fields.items()]
    if any("\0" in each for each in columns):
        raise SpecError(shown_path(path), "null bytes", "UTF-8 text", line=line, hint="unpack it, or save it as UTF-8")
    if missing := [each for each in wanted if each not in columns]:
        found = f"the columns {list_choices(map(shorten, columns))}" if columns else "no columns"
        hint = suggest(missing[0], columns)
        raise SpecError(shown_path(path), found, f"{', '.join(missing)} among them", line=line, hint=hint)
    if twice := [each for each in wanted if columns.count(each) > 1]:
        raise SpecError(shown_path(path), f"the column {twice[0]} twice", "each column once", line=line)
