# SPDX-License-Identifier: Apache-2.0
"""Reader of a run's manifest. It checks the types of the fields on which other code relies."""

import math
from collections.abc import Mapping
from pathlib import Path
from types import NoneType
from typing import Any, NamedTuple

from roundabout.store import files, schemas
from roundabout.store.files import StoreError

NAME = "manifest.json"


class Number:
    """The shape of a finite number above 0, such as a scale."""


class Optional(NamedTuple):
    """The shape of a field that older or unplanned runs lack. If the field is present, it has `shape`."""

    shape: Any


class AllOf(NamedTuple):
    """The shape of a list or object (`kind`) all of whose entries or values have `shape`."""

    kind: type
    shape: Any


NAMES = {
    str: "text",
    int: "a whole number",
    bool: "true or false",
    dict: "an object",
    list: "a list",
    NoneType: "null",
    Number: "a number above 0",
}
FIDELITY = {"nature": str, "stamp": str, "about": str, "cannot": AllOf(list, str)}
TESTBED = {
    "kind": Optional(str),
    "emulated": Optional(bool),
    "scale": Optional(Number),
    "dilation": Optional(Number),
    "identity": Optional(dict),
    "fidelity": Optional(FIDELITY),
    "has_jitter": Optional(bool),
}
PLANNED_TESTBED = ("kind", "emulated", "scale")
"""Fields of the block `testbed` that a manifest with planned trials must have."""
SESSION = {
    "started_utc": str,
    "code": Optional(dict),
    "controller": Optional(dict),
    "hosts": Optional(AllOf(dict, dict)),
    "topology": Optional(str),
}
SHAPE = {
    "experiment": {"set": Optional(dict)},
    "testbed": TESTBED,
    "plan": AllOf(list, {"key": str}),
    "run": Optional(str),
    "which": Optional((str, NoneType)),
    "length": Optional((str, NoneType)),
    "where": Optional(AllOf(dict, str)),
    "clock": Optional({"anchor_utc_ns": int, "anchor_monotonic_ns": int, "boot": str}),
    "sessions": Optional(AllOf(list, SESSION)),
    "artefacts": Optional(AllOf(dict, str)),
    "warnings": Optional(AllOf(list, str)),
    "experiment_sha256": Optional(str),
}


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return the manifest of the run in `folder`. Raises StoreError if it is missing, unreadable or invalid."""
    path = folder / NAME
    manifest = files.read_json(path)
    if not isinstance(manifest, dict) or manifest.get("schema") != schemas.VERSION:
        found = manifest.get("schema") if isinstance(manifest, dict) else type(manifest).__name__
        raise StoreError(
            f"{path}: schema is {_shown(found)}, expected {schemas.VERSION}",
            "read this run with the version of roundabout that wrote it",
        )
    if wrong := _wrong(manifest, SHAPE, "") or _unplanned(manifest):
        raise StoreError(f"{path}: {wrong}", files.LOST_MESSAGE)
    return manifest


def _unplanned(manifest: Mapping[str, Any]) -> str | None:
    missing = [name for name in PLANNED_TESTBED if manifest["plan"] and name not in manifest["testbed"]]
    return f"found no testbed.{missing[0]}, expected one" if missing else None


def _wrong(value: Any, shape: Any, where: str) -> str | None:
    """Return what is wrong with a value at the dotted path `where`, or None."""
    if isinstance(shape, dict):
        return _wrong_kind(value, (dict,), where) or _wrong_field(value, shape, where)
    if isinstance(shape, AllOf):
        entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        inside = (_wrong(each, shape.shape, f"{where}.{key}") for key, each in entries)
        return _wrong_kind(value, (shape.kind,), where) or next(filter(None, inside), None)
    return _wrong_kind(value, shape if isinstance(shape, tuple) else (shape,), where)


def _wrong_field(value: Mapping[str, Any], shape: Mapping[str, Any], where: str) -> str | None:
    for name, expected in shape.items():
        path = f"{where}.{name}".removeprefix(".")
        if name not in value:
            if not isinstance(expected, Optional):
                return f"found no {path}, expected one"
        elif wrong := _wrong(value[name], expected.shape if isinstance(expected, Optional) else expected, path):
            return wrong
    return None


def _wrong_kind(value: Any, kinds: tuple[type, ...], where: str) -> str | None:
    if any(_is_a(value, kind) for kind in kinds):
        return None
    expected = " or ".join(NAMES[kind] for kind in kinds)
    return f"{where}: found {_shown(value)}, expected {expected}"


def _is_a(value: Any, kind: type) -> bool:
    if kind is Number:
        return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < math.inf
    return isinstance(value, kind) and (kind is not int or not isinstance(value, bool))


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
