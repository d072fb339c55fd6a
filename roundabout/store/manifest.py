# SPDX-License-Identifier: Apache-2.0
"""Reader of a run's manifest. It checks the types of the fields on which other code relies."""

from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from roundabout.store import files, schemas
from roundabout.store.files import StoreError

NAME = "manifest.json"
Factor = Annotated[float, Field(gt=0, allow_inf_nan=False)]
"""A scale or a dilation."""


class _Part(BaseModel):
    """A part of the manifest. A field with a default may be missing, because older or unplanned runs lack it."""

    model_config = ConfigDict(strict=True)


class _Fidelity(_Part):
    nature: str
    stamp: str
    about: str
    cannot: list[str]


class _Testbed(_Part):
    kind: str = ""
    emulated: bool = False
    scale: Factor = 1
    dilation: Factor = 1
    identity: dict[str, Any] = {}
    fidelity: _Fidelity | None = None
    has_jitter: bool = False


class _Experiment(_Part):
    set: dict[str, Any] = {}


class _PlannedTrial(_Part):
    key: str


class _Clock(_Part):
    anchor_utc_ns: int
    anchor_monotonic_ns: int
    boot: str


class _Session(_Part):
    started_utc: str
    code: dict[str, Any] = {}
    controller: dict[str, Any] = {}
    hosts: dict[str, dict[str, Any]] = {}
    topology: str = ""


class _Looks(_Part):
    repetitions: list[int]
    budget_s: float
    spent_s: float


class _Manifest(_Part):
    experiment: _Experiment
    testbed: _Testbed
    plan: list[_PlannedTrial]
    run: str = ""
    which: str | None = None
    length: str | None = None
    where: dict[str, str] = {}
    clock: _Clock | None = None
    looks: _Looks | None = None
    sessions: list[_Session] = []
    artefacts: dict[str, str] = {}
    warnings: list[str] = []
    experiment_sha256: str = ""


PLANNED_TESTBED = ("kind", "emulated", "scale")
"""Fields of the block `testbed` that a manifest with planned trials must have."""


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
    try:
        _Manifest.model_validate(manifest)
    except ValidationError as error:
        from roundabout.spec.assembly.validation_errors import first_fault  # noqa: PLC0415 - only errors need it

        location, found, expected = first_fault(error)
        where = ".".join(map(str, location))
        raise StoreError(f"{path}: {where}: found {found}, expected {expected}", files.LOST_MESSAGE) from None
    missing = [name for name in PLANNED_TESTBED if manifest["plan"] and name not in manifest["testbed"]]
    if missing:
        raise StoreError(f"{path}: found no testbed.{missing[0]}, expected one", files.LOST_MESSAGE)
    return manifest


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
