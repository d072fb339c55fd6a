# SPDX-License-Identifier: Apache-2.0
"""Published sets of a transport's parameters: one file each, in `sets/` beside the transport's program.

Each value of a set has a `source`, where it is printed, is a `guess` with its origin, or is `identified` from printed
measurements (identification.py).
"""

import functools
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from roundabout.spec.assembly.file_cache import read_once
from roundabout.spec.assembly.validation_errors import parse_as
from roundabout.spec.base import Name, NotNegative, Positive, Strict, Text
from roundabout.spec.errors import SpecError, list_choices, quote_value, suggest
from roundabout.spec.reader.yaml_source import Document, read_document, shown_path
from roundabout.spec.transports.declarations import Declaration, Parameter

FOLDER = "sets"

FORMER_VALUES: Mapping[str, float | str] = {
    "clamp_target": 1,
    "clamp_target_after_timer": 1,
    "hyper_by_stage": 1,
    "alpha_by_timer": 0,
    "alpha_initial": 0,
    "rate_on_first_cnp_mbps": 0,
    "cnp_scope": "qp",
    "retransmission": "go_back_n",
}
"""Values of parameters that a set omits because it is older than they are, by name."""


class Ecn(Strict):
    """The marking thresholds of a switch port (RED, as in DCQCN, SIGCOMM'15).

    The marking probability is 0 up to Kmin, rises linearly to Pmax at Kmax, and is 1 above.
    """

    Kmin_bytes: NotNegative
    Kmax_bytes: NotNegative
    Pmax: Annotated[float, Field(ge=0, le=1)]

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.Kmin_bytes > self.Kmax_bytes:
            raise ValueError("Kmin_bytes no higher than Kmax_bytes")
        return self


class PublishedValues(Strict):
    """The values of a set that experiments use: parameters by name, and marking thresholds."""

    name: Name
    parameters: dict[str, int | float | str]
    ecn: Ecn


class Figure(Strict):
    """A value with its origin: a printed `source`, the reason of a `guess`, or measurements that `identified` it."""

    value: NotNegative
    source: Text | None = None
    guess: Text | None = None
    identified: Text | None = None

    @model_validator(mode="after")
    def _one_origin(self) -> Self:
        if [self.source, self.guess, self.identified].count(None) != 2:
            raise ValueError(
                "exactly one of source (where it is printed), guess (not printed; taken from where) and identified "
                "(from which measurements)"
            )
        return self


class Chosen(Figure):
    """The same of a parameter, whose value may be a name."""

    value: NotNegative | Name  # type: ignore[assignment]


class Thresholds(Strict):
    """The values of `Ecn`, with their origins."""

    Kmin_bytes: Figure
    Kmax_bytes: Figure
    Pmax: Figure


class ParameterSet(Strict):
    """The content of a file in a folder `sets/`."""

    schema_version: Literal[1] = Field(default=1, alias="schema")
    name: Name
    about: Text
    source: Text
    line_rate_gbps: Positive = Field(description="line rate of the links for which the set was published")
    parameters: Annotated[dict[Name, Chosen], Field(min_length=1)]
    ecn: Thresholds

    @property
    def guesses(self) -> tuple[str, ...]:
        """Return the names of the values that are guesses."""
        every = {**self.parameters, **dict(self.ecn)}
        return tuple(name for name, figure in every.items() if figure.guess)


def set_names(declared: Declaration) -> tuple[str, ...]:
    """Return the sorted names of a transport's published sets."""
    return read_once(
        ("sets", declared.program), lambda: tuple(sorted(path.stem for path in _folder(declared).glob("*.yaml")))
    )


def read_set(declared: Declaration, name: str) -> ParameterSet:
    """Read the set `name` of a transport with the origins of its values.

    Raises SpecError if the set does not exist, or if its file is invalid.
    """
    path = set_path(declared, name)
    if not path.exists():
        names = set_names(declared)
        expected = f"one of {list_choices(names)}" if names else f"none: {declared.name} has no sets"
        raise SpecError(shown_path(path.parent), f"no set '{name}'", expected, hint=suggest(name, names))
    parameters = tuple(each for each in declared.parameters if each.home == path.parent.parent)
    return _read(path, path.stat().st_mtime_ns, parameters)


def set_path(declared: Declaration, name: str) -> Path:
    """Return the file of a transport's set `name`, whether it exists or not."""
    return _folder(declared) / f"{name}.yaml"


def find_published(declared: Declaration, name: str) -> PublishedValues:
    """Return the values of the set `name` for an experiment. Raises SpecError like `read_set`."""
    return read_once(("set", declared.program, name), lambda: _published(declared, name))


def _published(declared: Declaration, name: str) -> PublishedValues:
    found = read_set(declared, name)
    whole = {each.name for each in declared.parameters if each.is_whole and not each.names}
    values = {each: int(figure.value) if each in whole else figure.value for each, figure in found.parameters.items()}
    return PublishedValues(name=name, parameters=values, ecn=_ecn(found.ecn))


def _ecn(written: Thresholds) -> Ecn:
    return Ecn(Kmin_bytes=written.Kmin_bytes.value, Kmax_bytes=written.Kmax_bytes.value, Pmax=written.Pmax.value)


def _folder(declared: Declaration) -> Path:
    """Return the folder of sets: beside the program; else that of the transport that it varies."""
    own = declared.program.parent
    homes = (own, *(each.home for each in declared.parameters))
    return next((home for home in homes if (home / FOLDER).exists()), own) / FOLDER


@functools.lru_cache(maxsize=64)
def _read(path: Path, _changed: int, parameters: tuple[Parameter, ...]) -> ParameterSet:
    document = read_document(path, shown_path(path))
    found = parse_as(ParameterSet, document)
    if found.name != path.stem:
        raise document.error(("name",), quote_value(found.name), f"'{path.stem}', the file's own name")
    _check_parameters(document, found, parameters)
    try:
        _ecn(found.ecn)
    except ValueError:
        figures = (
            f"Kmin {found.ecn.Kmin_bytes.value:g}, Kmax {found.ecn.Kmax_bytes.value:g}, Pmax {found.ecn.Pmax.value:g}"
        )
        raise document.error(("ecn",), figures, "Kmin no higher than Kmax, and Pmax no higher than 1") from None
    return found


def _check_parameters(document: Document, found: ParameterSet, parameters: Iterable[Parameter]) -> None:
    declared = {each.name: each for each in parameters if each.chosen_by not in ("line_rate", "network")}
    for name, figure in found.parameters.items():
        if name not in declared:
            hint = suggest(name, declared)
            raise document.error(("parameters", name), f"'{name}'", f"one of {', '.join(declared)}", hint=hint)
        each, value = declared[name], figure.value
        if each.names or isinstance(value, str):
            if value not in each.names:
                expected = f"one of {', '.join(each.names)}" if each.names else f"a number ({each.meaning})"
                raise document.error(("parameters", name, "value"), quote_value(value), expected)
            continue
        if not each.least <= value <= each.most or (each.is_whole and value != int(value)):
            kind = "a whole number" if each.is_whole else "a number"
            expected = f"{kind} from {each.least:g} to {each.most:g} ({each.meaning})"
            raise document.error(("parameters", name, "value"), quote_value(value), expected)
    missing = [name for name in declared if name not in found.parameters and name not in FORMER_VALUES]
    if missing:
        raise document.error(("parameters",), f"no {missing[0]}", "every parameter, as a guess where it is not printed")
