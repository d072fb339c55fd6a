# SPDX-License-Identifier: Apache-2.0
"""Conversion of pydantic's validation errors to a single SpecError with the line of the fault."""

import typing
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, Tag, ValidationError
from pydantic_core import ErrorDetails

from roundabout.spec.base import Strict
from roundabout.spec.errors import SpecError, expected_names, quote_value, suggest
from roundabout.spec.reader.yaml_source import Block, Document
from roundabout.spec.trace import KINDS
from roundabout.spec.trainers import MODELS

Part = TypeVar("Part", bound=Strict)

# Models of the fields whose value is one of several kinds, by kind.
UNIONS: dict[Any, Mapping[str, type[BaseModel]]] = {"trainer": MODELS, "trace": KINDS}

_NAME = "letters, digits, '.', '_' and '-', a letter or digit first (a host or switch: lower case, a letter first)"
_EXPECTED = {
    "missing": "a value: the field is required",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "string_type": "text",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "literal_error": "{expected}",
    "enum": "{expected}",
    "union_tag_invalid": "one of {expected_tags}",
    "greater_than": "more than {gt:g}",
    "greater_than_equal": "at least {ge:g}",
    "less_than": "less than {lt:g}",
    "less_than_equal": "at most {le:g}",
    "too_short": "at least {min_length}",
    "too_long": "at most {max_length}",
    "string_too_short": "text",
    "string_too_long": "at most {max_length} characters",
    "string_pattern_mismatch": _NAME,
    "value_error": "{error}",
    "located": "{expected}",
}


def parse_as(model: type[Part], document: Document) -> Part:
    """Parse `document` as a `model`. Raises SpecError for the first fault."""
    try:
        return model.model_validate(document.root)
    except ValidationError as error:
        raise explain_error(error, document, model, document.root) from None


def explain_error(error: ValidationError, document: Document, model: type[BaseModel], root: Block) -> SpecError:
    """Return a SpecError for the first fault that `error` reports about `root`, a part of `document` read as `model`.

    Its `further` are the other faults. Unknown fields come before other faults, because a misspelled field is also
    reported as missing.
    """
    details = sorted(error.errors(include_url=False), key=lambda item: item["type"] != "extra_forbidden")
    first, *others = (_explain(item, document, model, root) for item in details if not _follows(item, details))
    first.further = tuple(others)
    return first


def _follows(item: ErrorDetails, details: Sequence[ErrorDetails]) -> bool:
    """Return True if a fault is due to another one: a misspelled field is missing, and faulty entries do not count."""
    if item["type"] == "missing":
        return any(each["type"] == "extra_forbidden" and each["loc"][:-1] == item["loc"][:-1] for each in details)
    within = (each["loc"] for each in details if len(each["loc"]) > len(item["loc"]))
    return item["type"] == "too_short" and any(loc[: len(item["loc"])] == item["loc"] for loc in within)


def _explain(details: ErrorDetails, document: Document, model: type[BaseModel], root: Block) -> SpecError:
    way = tuple(step for step in details["loc"] if step != "[key]")
    location = _file_location(tuple(step for step in way if not _is_tag(step)))
    if details["type"] == "extra_forbidden":
        return _unknown_field(location, document, fields_at(model, way[:-1]), root)
    context = details.get("ctx", {})
    location += tuple(context.get("location", ()))
    if "discriminator" in context:  # no kind, or one that there is not
        location += (context["discriminator"].strip("'"),)
    found, expected = _words(details)
    if details["type"] in ("missing", "union_tag_not_found"):
        return _missing(location, document, root)
    return document.error(location, found, expected, hint=context.get("hint") or _suggest(details), root=root)


def first_fault(error: ValidationError) -> tuple[tuple[str | int, ...], str, str]:
    """Return location, found value and expected value of the first fault. For data other than specifications."""
    details = error.errors(include_url=False)[0]
    return details["loc"], *_words(details)


def _words(details: ErrorDetails) -> tuple[str, str]:
    """Return what was found, and what is expected instead."""
    context = details.get("ctx", {})
    found = "nothing" if details["type"] == "missing" else context.get("found") or _found(details)
    return found, _EXPECTED.get(details["type"], details["msg"]).format_map(context)


def _is_tag(step: str | int) -> bool:
    """Return True if a step of a location is the tag of a union's member, which all models write as `<kind>`."""
    return isinstance(step, str) and step.startswith("<") and step.endswith(">")


def _file_location(location: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return `location` without the steps by which pydantic names one of several kinds."""
    before = (None, *location)
    return tuple(step for last, step in zip(before, location, strict=False) if step not in UNIONS.get(last, ()))


def _found(details: ErrorDetails) -> str:
    if choice := _choice(details):
        return quote_value(choice[0])
    return (
        "the name " + quote_value(details["input"])
        if details["loc"][-1:] == ("[key]",)
        else quote_value(details["input"])
    )


def _missing(location: tuple[Any, ...], document: Document, root: Block) -> SpecError:
    around = document.find(location[:-1], root)
    parts = [around.path if around else "", str(location[-1])]
    field = ".".join(part for part in parts if part)
    line = around.line if around else None
    return SpecError(document.file, "nothing", _EXPECTED["missing"], field=field, line=line)


def _unknown_field(location: tuple[Any, ...], document: Document, known: list[str], root: Block) -> SpecError:
    expected, hint = expected_names(location[-1], known) if known else ("no such field", None)
    return document.error(location, f"the unknown field '{location[-1]}'", expected, hint=hint, root=root)


def _suggest(details: ErrorDetails) -> str | None:
    choice = _choice(details)
    return suggest(*choice) if choice else None


def _choice(details: ErrorDetails) -> tuple[Any, list[str]] | None:
    """Return the value found where one of several words is expected, and the words."""
    context = details.get("ctx", {})
    if details["type"] == "union_tag_invalid":
        found, expected = context["tag"], context["expected_tags"]
    elif details["type"] in ("literal_error", "enum"):
        found, expected = details["input"], context["expected"].replace(" or ", ", ")
    else:
        return None
    return found, expected.replace("'", "").split(", ")


def fields_at(model: type[BaseModel], location: tuple[Any, ...]) -> list[str]:
    """Return the field names of the nested model at `location` in `model`, or an empty list if there is no model."""
    kind: Any = model
    for last, step in zip((None, *location), location, strict=False):
        if _is_tag(step):
            kind = _member(kind, step)
        elif step in UNIONS.get(last, ()):
            kind = UNIONS[last][step]
        elif isinstance(kind, type) and issubclass(kind, BaseModel):
            fields = {field.alias or name: field.annotation for name, field in kind.model_fields.items()}
            kind = _strip_annotation(fields.get(step))
        else:
            kind = _strip_annotation((typing.get_args(kind) or (None,))[0 if typing.get_origin(kind) is tuple else -1])
    if not (isinstance(kind, type) and issubclass(kind, BaseModel)):
        return []
    return [field.alias or name for name, field in kind.model_fields.items()]


def _member(union: Any, tag: Any) -> Any:
    """Return the member of a union that has this tag, or None."""
    members = (typing.get_args(member) for member in typing.get_args(union))
    return next((kind for kind, *metadata in members if Tag(tag) in metadata), None)


def _strip_annotation(annotation: Any) -> Any:
    """Return `annotation` without Annotated and without `| None`."""
    while typing.get_origin(annotation) is typing.Annotated or type(None) in typing.get_args(annotation):
        annotation = typing.get_args(annotation)[0]
    return annotation
