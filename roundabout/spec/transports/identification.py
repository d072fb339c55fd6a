# SPDX-License-Identifier: Apache-2.0
"""Identifications: documents that say how unknown parameters of a transport are found from printed measurements.

An identification names the figures that may be looked at, the trials that reproduce them, and the readings of each
parameter that documents allow. `experiments/identification` has one file each, by paper and figure.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from roundabout.core.paths import ROOT
from roundabout.spec.assembly.validation_errors import parse_as
from roundabout.spec.base import Name, NotNegative, Positive, Strict, Text, Tuple
from roundabout.spec.errors import SpecError, list_choices, quote_value, suggest
from roundabout.spec.expectation import Printed
from roundabout.spec.reader.yaml_source import read_document, shown_path
from roundabout.spec.transports.registry import find_declaration
from roundabout.spec.transports.sets import Chosen

FOLDER = ROOT / "experiments/identification"

BANDWIDTH, SHARE = "first-iteration bandwidth", "first-iteration bandwidth share j1/j2"
"""Quantities that may be looked at, by their names in analysis/quantities; rates are of payload."""

OF_TRIALS = ("flows", "feedback_us", "cell_bytes", "Pmax")
"""Readings that are no parameters of a transport: a job's flows, the time from a mark to its cut in us, the bytes of a
switch's cell, which its thresholds count, and its marking probability at the upper one."""


class Measurement(Strict):
    """A printed figure that may be looked at, and the largest difference at which a candidate fits it.

    `tolerance` is in the figure's unit, `within` is a share of it.
    """

    what: Literal["first-iteration bandwidth", "first-iteration bandwidth share j1/j2"]
    of: Name = Field(description="variant of `trials` that is measured")
    paper: Printed
    tolerance: Positive | None = None
    within: Positive | None = None

    @model_validator(mode="after")
    def _one_of_them(self) -> Self:
        if (self.tolerance is None) == (self.within is None):
            raise ValueError("one of `tolerance` and `within`")
        return self


class Reading(Strict):
    """The values that documents allow for something unknown: several, the vendor's first, or a range.

    The origin says where they are printed (`source`), or why they are possible (`guess`).
    """

    values: Annotated[Tuple[NotNegative], Field(min_length=2)] | None = None
    least: NotNegative | None = None
    most: NotNegative | None = None
    usual: NotNegative | None = None
    source: Text | None = None
    guess: Text | None = None

    @model_validator(mode="after")
    def _one_kind_and_origin(self) -> Self:
        ends = (self.least, self.usual, self.most)
        if (self.values is None) == (None in ends) or (
            self.values is not None and any(each is not None for each in ends)
        ):
            raise ValueError("`values`, or `least`, `usual` and `most`")
        if self.values is None and not self.is_ordered:
            raise ValueError("least below most, and usual between them")
        if (self.source is None) == (self.guess is None):
            raise ValueError("exactly one of source (where it is printed) and guess (why it is possible)")
        return self

    @property
    def is_ordered(self) -> bool:
        """Return True if a range is not empty and holds its usual value."""
        least, usual, most = self.least or 0.0, self.usual or 0.0, self.most or 0.0
        return least <= usual <= most and least < most

    @property
    def default(self) -> float:
        """Return the vendor's value, or the usual one of a range."""
        return self.values[0] if self.values else self.usual or 0.0


class Cells(Strict):
    """Marking thresholds as a switch counts them: in cells, whose size is a reading."""

    Kmin_cells: Positive
    Kmax_cells: Positive
    source: Text


class Identification(Strict):
    """The content of a file in `experiments/identification`.

    `trials` has the fields of an experiment with a factor `variant`; its transport names the set whose values hold
    where no reading and no `fixed` value stands in their place.
    """

    schema_version: Literal[1] = Field(default=1, alias="schema")
    name: Annotated[str, StringConstraints(pattern=r"^[a-z0-9-]+/[a-z0-9.-]+$", max_length=64)]
    about: Text
    source: Text
    set_name: Name = Field(alias="set", description="the set of parameters that the representative becomes")
    looks_at: Annotated[Tuple[Measurement], Field(min_length=1)]
    trials: dict[str, Any]
    fixed: dict[Name, Chosen] = Field(default={})
    thresholds: Cells
    readings: Annotated[dict[Name, Reading], Field(min_length=1)]
    points: int = Field(ge=0, le=100_000, description="sampled candidates, unless a command sets another number")
    seeds: Annotated[Tuple[Annotated[int, Field(ge=0)]], Field(min_length=1)]

    @property
    def transport(self) -> Mapping[str, Any]:
        """Return the transport of `trials`."""
        found = self.trials.get("transport")
        return found if isinstance(found, Mapping) else {}

    @property
    def defaults(self) -> str:
        """Return the name of the set whose values hold where nothing is varied or fixed."""
        return str(self.transport["set"])

    @property
    def variants(self) -> tuple[str, ...]:
        """Return the variants that are looked at, in the order of the measurements."""
        return tuple(dict.fromkeys(each.of for each in self.looks_at))


def identification_names(folder: Path = FOLDER) -> tuple[str, ...]:
    """Return the names of all identifications, such as `hotnets/fig-1`."""
    return tuple(sorted(str(path.relative_to(folder).with_suffix("")) for path in folder.glob("*/*.yaml")))


def read_identification(name: str, folder: Path = FOLDER) -> Identification:
    """Read the identification `name`. Raises SpecError if it does not exist, or if its file is invalid."""
    path = folder / f"{name}.yaml"
    if name not in identification_names(folder):
        names = identification_names(folder)
        raise SpecError(
            shown_path(folder),
            f"no identification '{name}'",
            f"one of {list_choices(names)}",
            hint=suggest(name, names),
        )
    document = read_document(path, shown_path(path))
    found = parse_as(Identification, document)
    if found.name != name:
        raise document.error(("name",), quote_value(found.name), f"'{name}', the file's own name")
    missing = [field for field in ("name", "set") if not isinstance(found.transport.get(field), str)]
    declared = None if missing else find_declaration(found.transport["name"])
    if declared is None:
        raise document.error(
            ("trials",), "a transport without name and set", "a transport with parameters, and its set"
        )
    known = (*(each.name for each in declared.parameters if each.chosen_by != "line_rate"), *OF_TRIALS)
    for field in ("readings", "fixed"):
        for each in getattr(found, field):
            if each not in known:
                raise document.error(
                    (field, each), f"'{each}'", f"one of {', '.join(known)}", hint=suggest(each, known)
                )
    if absent := [each for each in OF_TRIALS if each not in found.readings]:
        raise document.error(("readings",), f"no {absent[0]}", f"each of {', '.join(OF_TRIALS)}")
    return found
