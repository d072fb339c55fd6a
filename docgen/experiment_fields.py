# SPDX-License-Identifier: Apache-2.0
"""The reference page of the fields of experiment files, made from the exported JSON Schemas."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from docgen.links import slugify
from docgen.markdown import code, notice, plain, prose, table
from roundabout.core.paths import ROOT

Schema = Mapping[str, Any]

HEAD = """# Experiment fields

Every field of an experiment file, as its JSON Schema has it (`experiments/schema/experiment.json`;
editors read it by a file's first line). A block's fields stand in a section of its own.
[Experiments](../how-to/experiments.md) shows how to write a file, and how its parts are merged.
[Transports](transports.md) lists the parameters of each transport.

"""
OVERLAY = "Overlay"
OVERLAY_TITLE = "Fields that levels may change"
BOUNDS = {"minimum": "≥ {}", "exclusiveMinimum": "> {}", "maximum": "≤ {}", "exclusiveMaximum": "< {}"}
ITEMS = {"minItems": "at least {}", "maxItems": "at most {}"}
LARGEST = 1e9  # limits from here on only keep numbers finite
WORDS = {"string": "text", "integer": "whole number", "number": "number", "boolean": "true or false"}


def format_page() -> str:
    """Return the page: the file's own fields, the fields that overlays may change, then the blocks by name."""
    schema = json.loads((ROOT / "experiments/schema/experiment.json").read_text())
    blocks = {name: each for name, each in schema["$defs"].items() if each.get("properties")}
    overlay = blocks.pop(OVERLAY)["properties"]
    own = {name: each for name, each in schema["properties"].items() if name not in overlay}
    required = schema.get("required", [])
    parts = [notice("experiments/schema/experiment.json"), HEAD]
    parts += ["## The file\n\n", _fields(own, required)]
    parts += [f"## {OVERLAY_TITLE}\n\n", "These stand in the file, and in each level of a factor.\n\n"]
    parts.append(_fields(overlay, required))
    for name in sorted(blocks, key=title):
        about = blocks[name].get("description", "").split("\n\n")
        parts += [f"## {title(name)}\n\n", *(prose(each) for each in about if each)]
        parts.append(_fields(blocks[name]["properties"], blocks[name].get("required", [])))
    return "".join(parts).rstrip() + "\n"


def title(name: str) -> str:
    """Return a block's heading: its model's name in words, with the module where several models have one name."""
    if name == OVERLAY:
        return OVERLAY_TITLE
    *module, last = name.split("__")
    return (
        f"{last} {module[-1]}" if module else "".join(f" {each}" if each.isupper() else each for each in last).strip()
    )


def _fields(fields: Mapping[str, Schema], required: list[str]) -> str:
    rows = [
        [code(name), describe_value(each), "required" if name in required else _default(each), plain(_about(each))]
        for name, each in fields.items()
    ]
    return table(("field", "value", "default", "meaning"), rows)


def _alternatives(schema: Schema) -> Iterator[Schema]:
    """Yield the schemas that a value may have, without null."""
    nested = [*schema.get("anyOf", []), *schema.get("oneOf", [])]
    for each in nested:
        yield from _alternatives(each)
    if not nested and schema.get("type") != "null":
        yield schema


def _about(schema: Schema) -> str:
    if "description" in schema:
        return str(schema["description"])
    return next((found for each in schema.get("anyOf", []) if (found := _about(each))), "")


def _default(schema: Schema) -> str:
    found = schema.get("default")
    if found is None:
        return next((found for each in schema.get("anyOf", []) if (found := _default(each))), "")
    if isinstance(found, dict) and not any(found.values()):
        return ""
    return code(json.dumps(found, ensure_ascii=False)) if found not in ([], {}, "") else ""


def describe_value(schema: Schema) -> str:
    """Return the allowed values in words, with links to the sections of blocks."""
    found = dict.fromkeys(filter(None, map(_kind_of_one, _alternatives(schema))))
    return " or ".join(each for each in found if each != WORDS["integer"] or WORDS["number"] not in found)


def _kind_of_one(schema: Schema) -> str:
    if "$ref" in schema:
        heading = title(schema["$ref"].rpartition("/")[2])
        return f"[{heading}](#{slugify(heading)})"
    if "enum" in schema:
        return ", ".join(code(str(each)) for each in schema["enum"])
    if "const" in schema:
        return code(json.dumps(schema["const"]))
    kind = schema.get("type")
    if kind == "array":
        return _kind_of_list(schema)
    if kind == "object":
        values = [*schema.get("patternProperties", {}).values(), schema.get("additionalProperties")]
        inner = next((describe_value(each) for each in values if isinstance(each, dict)), "")
        return f"mapping of names to {inner}" if inner else "mapping"
    kinds = kind if isinstance(kind, list) else [kind]
    words = " or ".join(WORDS[each] for each in kinds if each in WORDS)
    return " ".join(filter(None, [words, _limits(schema, BOUNDS)]))


def _kind_of_list(schema: Schema) -> str:
    if "prefixItems" in schema:
        return f"[{', '.join(map(describe_value, schema['prefixItems']))}]"
    return ", ".join(filter(None, [f"list of {describe_value(schema.get('items', {}))}", _limits(schema, ITEMS)]))


def _limits(schema: Schema, texts: Mapping[str, str]) -> str:
    found = {key: schema[key] for key in texts if key in schema and abs(schema[key]) < LARGEST}
    return ", ".join(texts[key].format(f"{value:g}") for key, value in found.items())
