# SPDX-License-Identifier: Apache-2.0
"""Checksums of an attempt's files. They are recorded at commit and checked when files are read."""

import hashlib
import json
import os
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from roundabout.store import files
from roundabout.store.files import StoreError
from roundabout.store.trial_states import DISTURBANCE, DISTURBED

RECORD, RAW = "trial.json", "captures"
SEAL = "sha256"  # field with the digest of the record's other fields; older records lack it
MEND = "restore that; or delete the folder of each such trial, trials/<key>, and measure it again: roundabout resume"
FIELDS: dict[type, tuple[str, ...]] = {
    str: ("run", "trial", "variant", "levels", "reason", "started_utc"),
    int: ("repetition", "attempt"),
    bool: ("valid",),
    dict: ("spec",),
}
"""Fields that every record has, by type."""

NAMES = {str: "text", int: "a whole number", bool: "true or false", dict: "an object"}

CAPTURED = {"packets", "captures"}
NOT_IN_ALL = {"cross_traffic", "cross_flows", *CAPTURED}
"""Tables that only some trials of a run have."""

# Path in the attempt's folder -> `sha256`, and for a table `rows`. For older runs: values that all rows must have.
FileDigests = dict[str, dict[str, Any]]
Record = dict[str, Any]


def describe_files(folder: Path) -> FileDigests:
    """Return the digests of all files in an attempt's folder except its record."""
    return {str(path.relative_to(folder)): _described(path) for path in sorted(_files(folder)) if path.name != RECORD}


def record_digest(record: Record) -> str:
    """Return the SHA-256 of a record's JSON, in hex."""
    return hashlib.sha256(json.dumps(record).encode()).hexdigest()


def seal_record(record: Record) -> Record:
    """Return a record with its own digest added."""
    return {**record, SEAL: record_digest(record)}


def read_record(folder: Path, run: str) -> Record:
    """Read the record in an attempt's folder, without its digest.

    Raises StoreError if the record is missing, invalid, changed, or of a run other than `run`.
    """
    path = folder / RECORD
    if folder.is_symlink():
        raise StoreError(f"{folder} is a link, expected a folder", MEND)
    try:
        record = files.read_json(path)
    except StoreError as error:
        raise StoreError(error.message, MEND) from error
    if wrong := _wrong_shape(record):
        raise StoreError(f"{path}: {wrong}", MEND)
    key = folder.name if folder.parent.name == "trials" else folder.name.rpartition("-")[0]
    for field, expected in (("run", run), ("trial", key)):
        if record[field] != expected:
            raise StoreError(f"{path}: {field}: found {record[field]!r}, expected {expected!r}", MEND)
    return _unseal(record, path)


def _wrong_shape(record: Any) -> str | None:
    """Return what is wrong with the shape of a record, or None."""
    if not isinstance(record, dict):
        return f"found a {type(record).__name__}, expected an object"
    for kind, fields in FIELDS.items():
        for field in fields:
            if not isinstance(record.get(field), kind):
                return f"{field}: found {repr(record[field]) if field in record else 'none'}, expected {NAMES[kind]}"
    if not _is_object(record["levels"]):
        return f"levels: found {record['levels']!r}, expected a JSON object"
    if wrong := _wrong_disturbance(record):
        return wrong
    listed = record.get("files", {})
    if not isinstance(listed, dict) or not all(isinstance(each, dict) for each in listed.values()):
        return f"files: found {listed!r}, expected an object of objects"
    return None


def _wrong_disturbance(record: Record) -> str | None:
    """Return what is wrong with the fields of a disturbed attempt, which older records lack, or None."""
    disturbed, effect = record.get(DISTURBED), record.get(DISTURBANCE)
    if not isinstance(disturbed, bool | None):
        return f"{DISTURBED}: found {disturbed!r}, expected true or false"
    if disturbed and record["valid"]:
        return f"{DISTURBED}: found true, expected false of a valid attempt"
    if effect is not None and (isinstance(effect, bool) or not isinstance(effect, int | float) or not effect >= 0):
        return f"{DISTURBANCE}: found {effect!r}, expected a share of 0 or more, or null"
    return None


def _is_object(text: str) -> bool:
    """Return True for the text of a JSON object whose values are plain."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict) and not any(isinstance(value, dict | list) for value in found.values())


def _unseal(record: Record, path: Path) -> Record:
    """Return a record without its digest. Raises StoreError if the digest is wrong."""
    seal = record.pop(SEAL, None)
    if seal not in (None, record_digest(record)):
        raise StoreError(f"{path} is not what was stored", MEND)
    return record


def find_faults(folder: Path, digests: FileDigests) -> Iterator[str]:
    """Yield a message about each file of `digests` that is missing in the folder or was changed."""
    for name, expected in digests.items():
        path = folder / name
        dropped = name.startswith(f"{RAW}/") and not (folder / RAW).exists()  # for the budget
        if not dropped and (fault := file_fault(path, expected)):
            yield fault


def file_fault(path: Path, expected: Mapping[str, Any]) -> str | None:
    """Return a message if the file differs from its digest `expected`, or None."""
    try:
        if kind := files.unexpected_kind(path):
            return f"{path} is {kind}, expected a file"
        found = _described(path)
    except FileNotFoundError:
        return f"{path} is missing"
    except (OSError, pa.ArrowException) as error:
        return f"cannot read {path}: {error}"
    if "sha256" not in expected:
        return None if _belongs_to(path, expected) else f"{path} is not this trial's"
    if found != expected:
        rows = f": found {found['rows']} rows, expected {expected['rows']}" if "rows" in expected else ""
        return f"{path} is not what was stored{rows}"
    return None


def expected_files(records: Mapping[Path, Record]) -> dict[Path, FileDigests]:
    """Return the digests of the files that each trial must have, by the trial's folder.

    Records of older runs have no digests. Their valid trials must have the tables that all other valid trials have, and
    the tables of trials that request the same cross traffic and captures.
    """
    older = {folder: record for folder, record in records.items() if "files" not in record}
    there = {folder: {path.stem for path in folder.glob("*.parquet")} for folder in older}
    alike: dict[TableRequest, set[str]] = defaultdict(set)
    for folder, record in older.items():
        alike[_table_request(record)].update(there[folder])
    common = {name for requested, names in alike.items() if requested.valid for name in names} - NOT_IN_ALL | {
        "iterations"
    }
    reported = {folder: record["files"] for folder, record in records.items() if "files" in record}
    for folder, record in older.items():
        requested = _table_request(record)
        names = there[folder] | (
            common | alike[requested] | _certain_tables(requested, alike[requested]) if requested.valid else set()
        )
        whose = {"run": record["run"], "trial": record["trial"]}
        reported[folder] = {f"{name}.parquet": whose for name in sorted(names)}
    return reported


class TableRequest(NamedTuple):
    """The properties of an attempt that determine its tables."""

    valid: bool
    traffic: frozenset[str]
    captures: bool


def _table_request(record: Record) -> TableRequest:
    traffic = (record["spec"].get("cross_traffic") or {}).values()
    kinds = frozenset(str(each["kind"]) for each in traffic if each["load_gbps"])
    return TableRequest(record["valid"], kinds, bool(record["spec"].get("capture")))


def _certain_tables(requested: TableRequest, found: set[str]) -> set[str]:
    """Return the tables that it surely has. Packets come with a count of them; a model captures none."""
    return ({"cross_traffic"} if requested.traffic else set()) | (CAPTURED if found & CAPTURED else set())


def _files(folder: Path) -> Iterator[Path]:
    for inside, _, names in os.walk(folder):
        yield from (Path(inside, name) for name in names)


def _described(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        described: dict[str, Any] = {"sha256": hashlib.file_digest(file, "sha256").hexdigest()}
    if path.suffix == ".parquet":
        described["rows"] = pq.read_metadata(path).num_rows
    return described


def _belongs_to(path: Path, whose: Mapping[str, Any]) -> bool:
    """Return True if a file is the table of its name, and all its rows have these values, if it has their columns."""
    data = pq.read_metadata(path)
    if (data.metadata or {}).get(b"roundabout.table", path.stem.encode()) != path.stem.encode():
        return False
    for group in map(data.row_group, range(data.num_row_groups)):
        for column in map(group.column, range(group.num_columns)):
            found = column.statistics
            expected = whose.get(column.path_in_schema)
            if expected is not None and found and found.has_min_max and {found.min, found.max} != {expected}:
                return False
    return True
