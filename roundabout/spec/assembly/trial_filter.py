# SPDX-License-Identifier: Apache-2.0
"""The filter `only`, which selects some of an experiment's variants."""

from collections.abc import Iterable, Sequence

from roundabout.spec.errors import list_choices, suggest
from roundabout.spec.expectation import AnyExpectation, Order
from roundabout.spec.experiment import Cell, Experiment
from roundabout.spec.reader.yaml_source import Document


def filter_variants(document: Document, experiment: Experiment) -> Experiment:
    """Return the experiment reduced to the variants in `only`, their dependencies, and expectations about these.

    Raises SpecError if `only` names a variant that does not exist.
    """
    if not experiment.only:
        return experiment
    for index, name in enumerate(experiment.only):
        if name not in experiment.variants:
            hint = suggest(name, experiment.variants)
            raise document.error(
                ("only", index), f"'{name}'", f"a variant ({list_choices(experiment.variants)})", hint=hint
            )
    kept = with_dependencies(experiment.only, experiment.cells)
    study = experiment.study
    if study.baseline in set(experiment.variants) - kept:
        study = study.model_copy(update={"baseline": None})
    variants = tuple(level for level in experiment.factors.get("variant", ()) if str(level) in kept)
    return experiment.model_copy(
        update={
            "study": study,
            "factors": experiment.factors | ({"variant": variants} if variants else {}),
            "cells": tuple(cell for cell in experiment.cells if cell.variant in kept),
            "expect": tuple(each for each in experiment.expect if _variants_of(each) <= kept),
        }
    )


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
