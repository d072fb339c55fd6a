# SPDX-License-Identifier: Apache-2.0
"""Reader of an experiment's factors. It converts each level to a named overlay."""

import math
import re
from collections.abc import Sequence
from typing import Any

from roundabout.spec.base import NAME_RULE
from roundabout.spec.errors import quote_value, suggest
from roundabout.spec.job import Job
from roundabout.spec.reader.yaml_source import Block, Document, Items, Mark
from roundabout.spec.transports import registry

MAX_COMBINATIONS = 2_000
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")

Factors = dict[str, dict[str | int | float, Block]]


def read_factors(document: Document, overlayable: tuple[str, ...]) -> Factors:
    """Return the overlay of each level of each factor of `document`.

    Raises SpecError if a factor is invalid, or if an overlay sets a field that is not in `overlayable`.
    """
    written = document.root.get("factors")
    if written is None:
        return {}
    if not isinstance(written, Block):
        raise document.error(("factors",), quote_value(written), "a mapping of factors to their levels")
    factors = {name: _levels(document, name, levels, overlayable) for name, levels in written.items()}
    combinations = math.prod(len(levels) for levels in factors.values())
    if combinations > MAX_COMBINATIONS:
        raise document.error(("factors",), f"{combinations} combinations", f"at most {MAX_COMBINATIONS}")
    return factors


def _levels(document: Document, factor: str, levels: object, overlayable: tuple[str, ...]) -> Any:
    here = ("factors", factor)
    if isinstance(levels, Block) and levels:
        _check_names(document, here, (factor, *levels))
        return {name: _overlay(document, (*here, name), overlay, overlayable) for name, overlay in levels.items()}
    if isinstance(levels, Items) and levels:
        _check_names(document, here, factor.split("."))
        _check_known(
            document, here, factor.split(".", maxsplit=1)[0], overlayable, _suggest_factor(document, factor, levels)
        )
        return _value_overlays(document, factor, levels)
    raise document.error(here, quote_value(levels), "levels: a mapping of names to overlays, or a list of values")


def _overlay(document: Document, here: tuple[str, ...], overlay: object, overlayable: tuple[str, ...]) -> Block:
    if overlay is None:
        return Block()
    if not isinstance(overlay, Block):
        raise document.error(here, quote_value(overlay), "an overlay: a mapping of fields to what changes in them")
    for field in overlay:
        _check_known(document, (*here, field), field, overlayable)
    if here[1] == "variant" and "expect" in overlay:
        raise document.error(
            (*here, "expect"), "expectations of a variant", "them in the top-level `expect`, with `of`"
        )
    return overlay


def _value_overlays(document: Document, factor: str, values: Items) -> dict[str | int | float, Block]:
    """Return the overlays of a factor that is written as a list of values."""
    overlays: dict[str | int | float, Block] = {}
    for index, (value, mark) in enumerate(zip(values, values.marks, strict=True)):
        here = ("factors", factor, index)
        if isinstance(value, bool) or not isinstance(value, str | int | float) or not math.isfinite(_number(value)):
            raise document.error(here, quote_value(value), "a name or a number")
        if value in overlays:
            raise document.error(here, f"{quote_value(value)} a second time", "each level once")
        overlays[value] = nested_overlay(factor.split("."), value, mark)
    return overlays


def _number(value: str | int | float) -> float:
    return 0.0 if isinstance(value, str | int) else value


def nested_overlay(path: Sequence[str], value: object, mark: Mark | None) -> Block:
    """Return an overlay that sets the field at `path` to `value`. `mark` is the place of the value in its file."""
    block = Block()
    block.mark = mark
    block.put(path[0], value if len(path) == 1 else nested_overlay(path[1:], value, mark), mark)
    return block


def _check_names(document: Document, here: tuple[str, ...], names: tuple[str, ...] | list[str]) -> None:
    for name in names:
        if not _NAME.fullmatch(name):
            raise document.error(here, f"the name {quote_value(name)}", NAME_RULE)


def _suggest_factor(document: Document, factor: str, levels: Items) -> str | None:
    """Return a hint for a list under a name that is no field's."""
    jobs = document.root.get("jobs")
    job = next(iter(jobs), "j1") if isinstance(jobs, Block) else "j1"
    if factor in Job.model_fields:
        return f"did you mean jobs.{job}.{factor}?"
    declared = (each for name in registry.transport_names() if (each := registry.find_declaration(name)))
    if any(factor == parameter.name for each in declared for parameter in each.parameters):
        return f"did you mean transport.{factor} or jobs.{job}.transport.{factor}?"
    if all(isinstance(level, str) for level in levels):
        return f"levels with names are a mapping to what each changes: {{{levels[0]}: {{}}, ...}}"
    return None


def _check_known(
    document: Document, here: tuple[str, ...], field: str, overlayable: tuple[str, ...], hint: str | None = None
) -> None:
    if field not in overlayable:
        expected = f"one of {', '.join(overlayable)}"
        hint = suggest(field, overlayable) or hint
        raise document.error(here, f"the unknown field '{field}'", expected, hint=hint)
