# SPDX-License-Identifier: Apache-2.0
"""Tables of columns and rows for lists of JSON objects that have the same fields.

A field of an inner object is a column `outer/inner`, as in `levels/variant`. pandas.DataFrame takes such a table:
`DataFrame(table["rows"], columns=table["columns"])`.
"""

from typing import Any

from roundabout.store import StoreError

COLUMNS, ROWS = "columns", "rows"
SEPARATOR = "/"


def pack_table(entries: Any) -> Any:
    """Return the entries as a table if they are two objects or more with the same fields, or else as they are."""
    if not isinstance(entries, list) or len(entries) < 2 or not all(isinstance(each, dict) for each in entries):
        return entries
    flat = [_flatten(each) for each in entries]
    columns = list(flat[0])
    if any(list(each) != columns for each in flat) or any(SEPARATOR in name for path in columns for name in path):
        return entries
    return {COLUMNS: [SEPARATOR.join(path) for path in columns], ROWS: [list(each.values()) for each in flat]}


def expand_tables(value: Any) -> Any:
    """Return the entries of a table, or any other value as it is. Raises StoreError for a row of another length."""
    if not isinstance(value, dict) or value.keys() != {COLUMNS, ROWS}:
        return value
    paths = [name.split(SEPARATOR) for name in value[COLUMNS]]
    return [_nest(paths, row) for row in value[ROWS]]


def _flatten(entry: dict[str, Any], above: tuple[str, ...] = ()) -> dict[tuple[str, ...], Any]:
    found: dict[tuple[str, ...], Any] = {}
    for name, value in entry.items():
        if isinstance(value, dict) and value:
            found |= _flatten(value, (*above, name))
        else:
            found[*above, name] = value
    return found


def _nest(paths: list[list[str]], row: list[Any]) -> dict[str, Any]:
    if len(row) != len(paths):
        raise StoreError(f"a table: found a row of {len(row)} values, expected {len(paths)}")
    entry: dict[str, Any] = {}
    for (*outer, name), value in zip(paths, row, strict=True):
        inner = entry
        for each in outer:
            inner = inner.setdefault(each, {})
        inner[name] = value
    return entry
