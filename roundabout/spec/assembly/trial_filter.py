# SPDX-License-Identifier: Apache-2.0
"""The filter `only`, which selects some of an experiment's variants, and some levels of its other factors."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import starmap
from typing import NamedTuple, Self

from roundabout.spec.base import Level
from roundabout.spec.errors import list_choices, suggest
from roundabout.spec.expectation import AnyExpectation, Order
from roundabout.spec.experiment import ONLY_VARIANT, Cell, Experiment
from roundabout.spec.reader.yaml_source import Document

Factors = Mapping[str, Iterable[Level]]


class Selection(NamedTuple):
    """The cells that `only` keeps: those of some variants, and of some levels of other factors. None keeps all."""

    variants: frozenset[str] | None
    levels: Mapping[str, frozenset[str]]

    @classmethod
    def of(cls, only: Iterable[str], factors: Factors, cells: Sequence[Cell]) -> Self:
        """Return the selection by names of variants and of other factors' levels.

        A name that both have is the variant's; one of several factors is the first one's. Variants bring their
        dependencies.
        """
        variants = {str(level) for level in factors.get("variant", (ONLY_VARIANT,))}
        chosen, levels = set[str](), dict[str, set[str]]()
        for name in only:
            factor = None if name in variants else find_factor(name, factors)
            if factor is None:
                chosen.add(name)
            else:
                levels.setdefault(factor, set()).add(name)
        kept = frozenset(with_dependencies(chosen, cells)) if chosen else None
        return cls(kept, {factor: frozenset(names) for factor, names in levels.items()})

    def has_level(self, factor: str, level: Level) -> bool:
        """Return True if cells with this level of a factor are kept."""
        if factor == "variant":
            return self.variants is None or str(level) in self.variants
        return factor not in self.levels or str(level) in self.levels[factor]

    def has_cell(self, levels: Mapping[str, Level]) -> bool:
        """Return True if a cell with these levels is kept."""
        return all(starmap(self.has_level, {"variant": ONLY_VARIANT, **levels}.items()))

    def has_expectation(self, expectation: AnyExpectation) -> bool:
        """Return True if the variants and levels that an expectation is about are kept."""
        about = [("variant", name) for name in _variants_of(expectation)]
        return all(starmap(self.has_level, [*about, *(expectation.at or {}).items()]))


def find_factor(name: str, factors: Factors) -> str | None:
    """Return the first factor that has the level `name`; None if no factor has it."""
    return next((factor for factor, levels in factors.items() if name in map(str, levels)), None)


def filter_cells(document: Document, experiment: Experiment) -> Experiment:
    """Return the experiment reduced to the variants and levels in `only`, and to expectations about these.

    Dependencies of the variants are kept. Raises SpecError if `only` names neither a variant nor a level, or if
    nothing is left.
    """
    if not experiment.only:
        return experiment
    for index, name in enumerate(experiment.only):
        if name not in experiment.variants and find_factor(name, experiment.factors) is None:
            others = [
                str(each) for factor, levels in experiment.factors.items() if factor != "variant" for each in levels
            ]
            known = f"a variant ({list_choices(experiment.variants)})"
            expected = f"{known}, or a level of another factor ({list_choices(others)})" if others else known
            hint = suggest(name, [*experiment.variants, *others])
            raise document.error(("only", index), f"'{name}'", expected, hint=hint)
    selection = Selection.of(experiment.only, experiment.factors, experiment.cells)
    cells = tuple(cell for cell in experiment.cells if selection.has_cell(cell.levels))
    if not cells:
        raise document.error(("only",), list_choices(experiment.only), "levels that are run together, not excluded")
    study = experiment.study
    if selection.variants is not None and study.baseline in set(experiment.variants) - selection.variants:
        study = study.model_copy(update={"baseline": None})
    factors = {
        factor: tuple(level for level in levels if selection.has_level(factor, level))
        for factor, levels in experiment.factors.items()
    }
    expect = tuple(each for each in experiment.expect if selection.has_expectation(each))
    return experiment.model_copy(update={"study": study, "factors": factors, "cells": cells, "expect": expect})


def with_dependencies(variants: Iterable[str], cells: Sequence[Cell]) -> set[str]:
    """Return `variants` and all their direct and indirect dependencies."""
    kept, found = set[str](), set(variants)
    while found - kept:
        kept |= found
        found = {need for cell in cells if cell.variant in kept for need in cell.dependencies.values()}
    return kept


def _variants_of(expectation: AnyExpectation) -> set[str]:
    """Return the variants that an expectation is about."""
    ordered = expectation.order if isinstance(expectation, Order) and expectation.by == "variant" else ()
    at = (expectation.at or {}).get("variant")
    return {str(name) for name in (expectation.of, expectation.over, at, *ordered) if name is not None}
