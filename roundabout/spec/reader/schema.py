# SPDX-License-Identifier: Apache-2.0
"""JSON Schemas of the specification files, for editors. The loader checks more, with better messages."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from roundabout.spec.expectation import Expectations
from roundabout.spec.experiment import ExperimentHeader
from roundabout.spec.loader import LENGTH_CHANGES, LENGTHS
from roundabout.spec.profile import Profile
from roundabout.spec.topology import Topology
from roundabout.spec.transports.identification import Identification
from roundabout.spec.treatment import Treatment

DIALECT = "https://json-schema.org/draft/2020-12/schema"
# Mappings that overlays change in part; whatever else they name is given whole.
_MERGED = ("Capture", "Cluster", "CrossTraffic", "Job", "JobMix", "Transport")


def schemas() -> dict[str, dict[str, Any]]:
    """Return the JSON Schema of each kind of specification file."""
    return {
        "experiment": {"$schema": DIALECT, **_experiment()},
        "profile": {"$schema": DIALECT, **Profile.model_json_schema()},
        "topology": {"$schema": DIALECT, **Topology.model_json_schema()},
        "identification": {"$schema": DIALECT, **Identification.model_json_schema()},
    }


def write_schemas(folder: Path) -> list[Path]:
    """Write each schema to `<name>.json` in `folder`, and return the paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, schema in schemas().items():
        path = folder / f"{name}.json"
        path.unlink(missing_ok=True)  # never write through a link that lies there
        with path.open("x") as file:
            file.write(format_schema(schema))
        paths.append(path)
    return paths


def format_schema(schema: dict[str, Any]) -> str:
    """Return the text of a schema's file."""
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def _experiment() -> dict[str, Any]:
    """Return the schema of an experiment: a header and an overlay.

    A factor's level is an overlay without the header.
    """
    header = ExperimentHeader.model_json_schema()
    treatment = Treatment.model_json_schema()
    expectations = Expectations.model_json_schema()
    definitions = {**treatment.pop("$defs"), **expectations.pop("$defs"), **header.pop("$defs", {})}
    definitions.update({name: _make_optional(definitions[name]) for name in _MERGED})
    treatment["properties"] |= expectations["properties"]
    overlay = _make_optional(treatment) | {"title": "Overlay"}
    levels = {
        "anyOf": [
            {"type": "object", "additionalProperties": {"anyOf": [{"$ref": "#/$defs/Overlay"}, {"type": "null"}]}},
            {"type": "array", "items": {"type": ["string", "number"]}, "minItems": 1, "uniqueItems": True},
        ]
    }
    factors = {
        "description": "each level is a named overlay; a list sets the field of that name or dotted path",
        "type": "object",
        "additionalProperties": levels,
    }
    own = header["properties"] | {"factors": factors} | _refer_to("#/$defs/Overlay/properties/", overlay["properties"])
    length = {"type": "object", "properties": _refer_to("#/properties/", LENGTH_CHANGES), "additionalProperties": False}
    first, *others = LENGTHS
    lengths = {
        "description": "overlays on the whole file, for `--quick` and `--full`",
        "type": "object",
        "properties": {first: length} | {name: {"$ref": f"#/properties/lengths/properties/{first}"} for name in others},
        "additionalProperties": False,
    }
    return header | {
        "title": "Experiment",
        "properties": own | {"lengths": lengths},
        "$defs": definitions | {"Overlay": overlay},
    }


def _refer_to(place: str, names: Iterable[str]) -> dict[str, Any]:
    """Return references to the schemas of fields below a place of the schema, so that none is written twice."""
    return {name: {"$ref": f"{place}{name}"} for name in names}


def _make_optional(schema: dict[str, Any]) -> dict[str, Any]:
    """Return `schema` with every property optional, and null (which removes) allowed for it and for its entries."""
    properties = {name: _or_null(_with_removable_entries(value)) for name, value in schema["properties"].items()}
    return {key: value for key, value in schema.items() if key != "required"} | {"properties": properties}


def _with_removable_entries(schema: dict[str, Any]) -> dict[str, Any]:
    names = schema.get("patternProperties", {})
    return schema | {"patternProperties": {name: _or_null(entry) for name, entry in names.items()}} if names else schema


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [schema, {"type": "null"}]}
