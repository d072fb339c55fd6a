# SPDX-License-Identifier: Apache-2.0
"""The exported JSON Schemas: up to date, valid, and of one mind with the reader on the shipped files."""

from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from roundabout.spec import EXPERIMENTS
from roundabout.spec.reader.schema import format_schema, schemas, write_schemas

pytestmark = pytest.mark.unit

KINDS = {
    "catalog": "experiment",
    "profiles": "profile",
    "topologies": "topology",
    "identification": "identification",
}
FILES = sorted(path for folder in KINDS for path in (EXPERIMENTS / folder).rglob("*.yaml"))


def errors(kind: str, document: Any) -> list[str]:
    return [error.message for error in jsonschema.Draft202012Validator(schemas()[kind]).iter_errors(document)]


@pytest.mark.parametrize("name", schemas())
def test_the_exported_schema_is_the_readers(name: str) -> None:
    exported = (EXPERIMENTS / "schema" / f"{name}.json").read_text()
    assert exported == format_schema(schemas()[name]), "run `roundabout schema` and commit what it writes"


@pytest.mark.parametrize("name", schemas())
def test_each_schema_is_a_valid_json_schema(name: str) -> None:
    jsonschema.Draft202012Validator.check_schema(schemas()[name])


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_shipped_files_satisfy_it_and_name_it(path: Path) -> None:
    kind = KINDS[path.parents[1].name]
    assert errors(kind, yaml.safe_load(path.read_text())) == []
    assert path.read_text().startswith(f"# yaml-language-server: $schema=../../schema/{kind}.json\n")


def test_the_schema_accepts_every_field_that_the_reader_accepts(library: Path) -> None:
    assert errors("experiment", yaml.safe_load((library / "catalog" / "rich.yaml").read_text())) == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"iteration": 5},
        {"jobs": {"j1": {"workers": ["s0"]}}},
        {"transport": {"name": "dcqnc"}},
        {"factors": {"variant": {"fair": {"iteration": 5}}}},
        {"factors": {"load": []}},
        {"expect": [{"what": "luck", "of": "fair", "paper": 1, "tolerance": 0}]},
    ],
)
def test_the_schema_refuses_what_the_reader_refuses(wrong: dict[str, Any]) -> None:
    assert errors("experiment", {"name": "x", "about": "y", **wrong})


def test_schemas_are_written_to_a_new_folder(tmp_path: Path) -> None:
    paths = write_schemas(tmp_path / "new")
    assert [path.name for path in paths] == ["experiment.json", "profile.json", "topology.json", "identification.json"]
