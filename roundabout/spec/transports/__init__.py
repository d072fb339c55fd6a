# SPDX-License-Identifier: Apache-2.0
"""Model of a transport: a congestion control and its parameters, which its program's headers declare."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn, Self

from pydantic import (
    Field,
    GetJsonSchemaHandler,
    ModelWrapValidatorHandler,
    SerializerFunctionWrapHandler,
    ValidationInfo,
    model_serializer,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError

from roundabout.spec.base import Name, Strict
from roundabout.spec.errors import SpecError, expected_names, quote_value, suggest
from roundabout.spec.transports import registry
from roundabout.spec.transports.declarations import PROGRAM, Counter, Declaration, Derived, Parameter, Rule
from roundabout.spec.transports.queues import QueueName
from roundabout.spec.transports.sets import FORMER_VALUES, Ecn, PublishedValues, find_published, set_names

__all__ = [
    "FOLDER",
    "Counter",
    "Declaration",
    "Derived",
    "Ecn",
    "Parameter",
    "PublishedValues",
    "Transport",
    "find_violation",
    "known",
]

# Key of a validation's context for the folder of an experiment file. Without it, stored data is not checked again.
FOLDER = "folder"
RESERVED = ("name", "file", "set", "ecn")  # fields that are not parameters


class Transport(Strict, extra="allow"):
    """A congestion control, by `name` or from a `file`. Further fields are its parameters.

    A `set` is a published set of parameters, a file in `sets/` beside the program. It gives defaults for parameters and
    for `ecn`, the marking thresholds of switches. The testbed chooses the remaining parameters.
    """

    __pydantic_extra__: dict[str, int | float | str]

    name: Name
    file: str | None = None
    stands_for: str = "TCP"  # the papers' transport that it represents
    published: PublishedValues | None = Field(default=None, alias="set")
    ecn: Ecn | None = None

    @model_validator(mode="wrap")
    @classmethod
    def _as_declared(cls, data: Any, handler: ModelWrapValidatorHandler[Self], info: ValidationInfo) -> Self:
        if not isinstance(data, Mapping):
            return handler(data)
        given = {key: value for key, value in data.items() if value is not None}
        if info.context and FOLDER in info.context:
            return handler(_check_given(given, info.context[FOLDER]))
        return handler(given if "stands_for" in given else _stands_for(given) | given)

    @model_serializer(mode="wrap")
    def _without_defaults(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Drop a missing set and thresholds, so that trial keys hashed before these existed stay valid."""
        return {key: value for key, value in handler(self).items() if value is not None or key not in ("set", "ecn")}

    @property
    def as_document(self) -> dict[str, Any]:
        """Return the transport's fields as in an experiment file."""
        which = {"file": self.file} if self.file else {"name": self.name}
        own = {"set": self.published.name if self.published else None, "ecn": self.ecn and self.ecn.model_dump()}
        return which | {field: value for field, value in own.items() if value} | self.parameters

    @property
    def parameters(self) -> dict[str, int | float | str]:
        """Return the explicitly given parameters, by name."""
        return dict(self.__pydantic_extra__)

    @property
    def requested(self) -> dict[str, int | float | str]:
        """Return the given parameters, completed by those of the transport's set."""
        return {**(self.published.parameters if self.published else {}), **self.parameters}

    def with_line_rate(self, rate_gbps: float) -> dict[str, int | float | str]:
        """Return the requested parameters, and those that follow from a host's link with this payload rate."""
        declared = self.declaration.parameters if self.declaration else ()
        return {each.name: rate_gbps * 1000 for each in declared if each.chosen_by == "line_rate"} | self.requested

    def fallback(self, parameter: Parameter) -> float | str:
        """Return the value of a parameter that was not requested: its default.

        A set that is older than the parameter stands for what programs did before (FORMER_VALUES).
        """
        if self.published and parameter.name in FORMER_VALUES:
            return FORMER_VALUES[parameter.name]
        return parameter.default

    @property
    def thresholds(self) -> Ecn | None:
        """Return the marking thresholds of switches from `ecn`, else from the set, else None."""
        return self.ecn if self.ecn or not self.published else self.published.ecn

    @property
    def intended_queue(self) -> QueueName:
        """Return the kind of queue at switch ports that the transport declares. For Linux's own it is drop-tail."""
        return self.declaration.meant_for if self.declaration else "drop-tail"

    @property
    def kernel_name(self) -> str:
        """Return the transport's name in the hosts' kernels."""
        return registry.kernel_name(self.name)

    @property
    def declaration(self) -> Declaration | None:
        """Return the transport's declaration, or None for Linux's own. Raises SpecError if its program is invalid."""
        return registry.find_declaration(self.name, self.file)

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        declared = [found for name in registry.transport_names() if (found := registry.find_declaration(name))]
        properties = {
            "name": {"enum": list(registry.transport_names()), "title": "Name"},
            "file": {
                "type": "string",
                "pattern": r"\.bpf\.c$",
                "description": "program of the transport, relative to the experiment's file",
                "title": "File",
            },
            "set": {"type": ["string", "null"], "description": "published set of parameters, for omitted ones"},
            "ecn": {"anyOf": [Ecn.model_json_schema(), {"type": "null"}]},
        }
        return {
            "title": "Transport",
            "description": cls.__doc__,
            "type": "object",
            "properties": properties,
            "additionalProperties": {"type": ["number", "string", "null"]},
            "allOf": [_schema_of_transports([each.name], each.parameters, set_names(each)) for each in declared]
            + [_schema_of_transports(registry.KERNELS_OWN, (), ())],
        }


def _schema_of_transports(
    names: Sequence[str], parameters: tuple[Parameter, ...], sets: tuple[str, ...]
) -> JsonSchemaValue:
    """Return the schema of the fields beside the name of one of these transports."""
    properties: JsonSchemaValue = {each.name: _schema_of(each) for each in parameters if each.chosen_by != "network"}
    if sets:
        properties["set"] = {"enum": [*sets, None]}
    return {
        "if": {"properties": {"name": {"enum": list(names)}}, "required": ["name"]},
        "then": {"properties": properties, "propertyNames": {"enum": ["name", "ecn", *properties]}},
    }


def _schema_of(parameter: Parameter) -> JsonSchemaValue:
    if parameter.names:
        values: JsonSchemaValue = {"enum": [*parameter.names, None]}
    else:
        kind = "integer" if parameter.is_whole else "number"
        values = {"type": [kind, "null"], "minimum": parameter.least, "maximum": parameter.most}
    default = {"default": parameter.default} if parameter.chosen_by == "experiment" else {}
    return {**values, "description": parameter.meaning, **default}


def _stands_for(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Add the field that older runs did not record."""
    found = registry.find_declaration(stored["name"]) if stored.get("name") in registry.transport_names() else None
    return {"stands_for": found.stands_for} if found else {}


def _check_given(given: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return an experiment's fields of a transport, completed by the implied ones."""
    if "file" in given:
        given["file"] = str(_program(given["file"], folder))
        given["name"] = Path(given["file"]).name.removesuffix(PROGRAM)
    elif "name" not in given:
        return given
    name, file = given["name"], given.get("file")
    if file is None and name not in registry.transport_names():
        ours = " or ".join(f"'{each}'" for each in registry.transport_names() if each not in registry.KERNELS_OWN)
        expected = f"{ours}, one of Linux's own ({', '.join(registry.KERNELS_OWN)}), or `file`"
        _refuse("name", quote_value(name), expected, suggest(name, registry.transport_names()))
    try:
        found = registry.find_declaration(name, file)
    except SpecError as error:
        _refuse(
            "file" if file else "name",
            f"in {error.file}{f':{error.line}' if error.line else ''} {error.found}",
            error.expected,
        )
    parameters = {each.name: each for each in found.parameters if each.chosen_by != "network"} if found else {}
    if "set" in given:
        given["set"] = _published(name, found, given["set"])
    in_set = given["set"].parameters if "set" in given else {}
    for key, value in given.items():
        if key not in RESERVED:
            given[key] = _value(key, value, parameters, name)
    understood = {
        each.name: each.default
        for each in parameters.values()
        if each.chosen_by == "experiment" and each.name not in in_set
    }
    values = understood | in_set | {key: value for key, value in given.items() if key not in RESERVED}
    for rule in found.rules if found else ():
        if broken := find_violation(rule, values):
            _refuse(rule.left if rule.left in given else rule.right, *broken)
    return {"stands_for": found.stands_for if found else "TCP", **understood, **given}


def _published(transport: str, found: Declaration | None, name: Any) -> PublishedValues:
    names = set_names(found) if found else ()
    if found is None or name not in names:
        expected = f"one of {', '.join(names)}" if names else f"no set: {transport} has none"
        _refuse("set", quote_value(name), expected, suggest(name, names))
    try:
        return find_published(found, name)
    except SpecError as error:
        where = f"{error.file}{f':{error.line}' if error.line else ''}"
        _refuse("set", f"in {where}{f': {error.field}' if error.field else ''} {error.found}", error.expected)


def _program(file: Any, folder: Path) -> Path:
    """Return the source that an experiment names, relative to itself."""
    if not isinstance(file, str) or "\0" in file or not file.endswith(PROGRAM):
        _refuse("file", quote_value(file), registry.FILE)
    path = Path(os.path.realpath(folder / file))  # unlike `resolve`, takes links in a loop
    try:
        registry.program_name(path)
    except SpecError as error:
        _refuse("file", error.found, error.expected)
    return path


def _value(key: str, value: Any, parameters: Mapping[str, Parameter], name: str) -> float | str:
    if key not in parameters:
        no_parameter = f"no parameter: {name} has none", None
        _refuse(key, f"the unknown field '{key}'", *(expected_names(key, parameters) if parameters else no_parameter))
    parameter = parameters[key]
    if parameter.names:
        if value not in parameter.names:
            expected = f"one of {', '.join(parameter.names)} ({parameter.meaning})"
            _refuse(key, quote_value(value), expected, suggest(str(value), parameter.names))
        return str(value)
    kind = "a whole number" if parameter.is_whole else "a number"
    right_type = isinstance(value, int) or (isinstance(value, float) and not parameter.is_whole)
    if isinstance(value, bool) or not right_type or not parameter.least <= value <= parameter.most:
        _refuse(key, quote_value(value), f"{kind} from {parameter.least:g} to {parameter.most:g} ({parameter.meaning})")
    return int(value) if parameter.is_whole else float(value)


def find_violation(rule: Rule, values: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the found and expected value if `values` violate `rule`, else None. A missing value violates no rule."""
    if rule.left not in values or rule.right not in values:
        return None
    left, right = values[rule.left], values[rule.right]
    if rule.either and not left and not right:
        return f"0, with {rule.right} 0", f"one of {rule.left} and {rule.right}"
    if not rule.either and left > right:
        return f"{left:g}, with {rule.right} {right:g}", f"{rule.left} no higher than {rule.right}"
    return None


def _refuse(key: str, found: str, expected: str, hint: str | None = None) -> NoReturn:
    context = {"location": (key,), "found": found, "expected": expected, "hint": hint}
    raise PydanticCustomError("located", "{expected}", context)
