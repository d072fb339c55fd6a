# SPDX-License-Identifier: Apache-2.0
"""A publication: the figures and facts of one run in `results/<experiment>/<testbed>/`."""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from analysis.expectations.results import SCHEMA as SUMMARY_SCHEMA
from analysis.expectations.verdicts import Part, Verdict
from analysis.reports.publishing.row_tables import COLUMNS, ROWS, expand_tables, pack_table
from roundabout.core.errors import RoundaboutError
from roundabout.core.paths import ROOT
from roundabout.store import StoreError
from roundabout.store.files import read_json
from roundabout.store.run import STAMP

RESULTS = ROOT / "results"
FACTS, SUMMARY = "publication.json", "summary.json"
DIGITS = 6
"""Number of significant digits of published figures without a verdict: more than tables show."""
AGAIN = "publish a run again: roundabout publish RUN --force"
ErrorHandler = Callable[[RoundaboutError], None]


class PublishedFigure(BaseModel):
    """A figure's file in the publication's folder, and its description in words."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    file: str
    about: str


class Facts(BaseModel):
    """The content of publication.json: where a publication's figures come from.

    `revision` is the commit of the code that ran the last trials, `command` repeats the run, and `machine` describes
    the computer of the first trial, without its name. `trials` counts committed trials by state, and `disturbed` says
    that some figures rest on disturbed trials only. `wall_s` is the time from the first trial's start to the last
    one's end.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", serialize_by_alias=True)

    schema_version: Literal[1] = Field(default=1, alias="schema")
    run: str
    experiment: str
    testbed: str
    nature: str
    fidelity: str
    command: str
    length: str | None
    version: str
    revision: str
    machine: dict[str, Any]
    trials: dict[str, int]
    disturbed: bool
    wall_s: float
    figures: tuple[PublishedFigure, ...]

    @property
    def start_time(self) -> datetime:
        """The start of the run in UTC, from its id."""
        return datetime.strptime(self.run.partition("-")[0], STAMP).replace(tzinfo=UTC)


class Publication:
    """A published run: its facts and its verdicts, read from its folder at the first access."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @cached_property
    def facts(self) -> Facts:
        """The facts. Raises StoreError if publication.json is missing, damaged or of another version."""
        path = self.folder / FACTS
        try:
            return Facts.model_validate(read_json(path))
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"]))
            raise StoreError(f"{path}: {where}: {first['msg']}", AGAIN) from error

    @cached_property
    def summary(self) -> dict[str, Any]:
        """The content of summary.json, with tables expanded. Raises StoreError if it cannot be read."""
        path = self.folder / SUMMARY
        summary = read_json(path)
        if not isinstance(summary, dict):
            raise StoreError(f"{path}: found no object at the top level", AGAIN)
        return {name: expand_tables(value) for name, value in summary.items()}

    @cached_property
    def verdicts(self) -> tuple[Verdict, ...]:
        """The verdicts of summary.json. Raises StoreError if it is damaged, of another version, or of another run."""
        path, summary = self.folder / SUMMARY, self.summary
        found = summary.get("schema"), summary.get("run")
        if found != (SUMMARY_SCHEMA, self.facts.run):
            expected = f"schema {SUMMARY_SCHEMA} of run {self.facts.run}"
            raise StoreError(f"{path}: found schema {found[0]} of run {found[1]}, expected {expected}", AGAIN)
        try:
            return tuple(_verdict(each) for each in summary["expectations"])
        except (KeyError, TypeError) as error:
            raise StoreError(f"{path}: no valid list of expectations: {error}", AGAIN) from error


def publications(results: Path = RESULTS) -> list[Publication]:
    """Return all publications below `results`, sorted by experiment and testbed. They are not read yet."""
    return [Publication(path.parent) for path in sorted(results.glob(f"*/*/{FACTS}"))]


def read_publications(results: Path, complain: ErrorHandler) -> Iterator[Publication]:
    """Yield all publications below `results` that can be read; pass the error of each other one to `complain`."""
    for each in publications(results):
        try:
            _ = each.verdicts
        except RoundaboutError as error:
            complain(error)
        else:
            yield each


def published_content(summary: dict[str, Any]) -> dict[str, Any]:
    """Return the content of summary.json with figures of `DIGITS` significant digits, but for those of verdicts.

    Pages show verdicts' figures, which another rounding could change. `lines` repeat `cells`, and are left out. Lists
    of entries with the same fields are tables, because their names take most of the space.
    """
    return {
        name: value if name == "expectations" else pack_table(_round(value))
        for name, value in summary.items()
        if name != "lines"
    }


def format_json(content: Any) -> str:
    """Return JSON with an entry or a table's row a line, so that differences are readable and files small."""
    if not isinstance(content, dict):
        return _compact(content)
    fields = ",\n".join(f" {_compact(name)}: {_format_value(value)}" for name, value in content.items())
    return f"{{\n{fields}\n}}\n"


def _round(content: Any) -> Any:
    if isinstance(content, float):
        return float(f"{content:.{DIGITS}g}")
    if isinstance(content, dict):
        return {name: _round(value) for name, value in content.items()}
    return [_round(each) for each in content] if isinstance(content, list) else content


def _format_value(value: Any) -> str:
    if isinstance(value, dict) and value.keys() == {COLUMNS, ROWS}:
        return f'{{"{COLUMNS}":{_compact(value[COLUMNS])},"{ROWS}":{_format_value(value[ROWS])}}}'
    if isinstance(value, list) and value:
        return "[\n" + ",\n".join(f"  {_compact(each)}" for each in value) + "\n ]"
    return _compact(value)


def _compact(content: Any) -> str:
    return json.dumps(content, separators=(",", ":"))


def _verdict(record: dict[str, Any]) -> Verdict:
    """Return the verdict of its record. Raises TypeError for missing and unknown fields, and KeyError."""
    parts = tuple(Part(**{**each, "ci95": each["ci95"] and tuple(each["ci95"])}) for each in record["parts"])
    listed = {name: tuple(record.get(name, ())) for name in ("rows", "disturbed")}
    return Verdict(**{**record, **listed, "ci95": record["ci95"] and tuple(record["ci95"]), "parts": parts})
