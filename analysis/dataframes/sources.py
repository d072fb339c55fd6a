# SPDX-License-Identifier: Apache-2.0
"""Runs and published runs, and the results that both have."""

from pathlib import Path
from typing import TypeAlias

from pydantic import ValidationError

from analysis.expectations.results import Summary
from analysis.reports.publishing.publication import AGAIN, FACTS, RESULTS, SUMMARY, Publication
from analysis.reports.summary import stored_or_new
from analysis.studies import DEFAULT, find_study
from roundabout.store import Run, StoreError

Results: TypeAlias = Run | Publication
"""A run, or the published figures of one, which have no tables."""


def open_results(which: str | Path = "last", runs: str | Path = "runs") -> Results:
    """Return a published run by its place in `results/`, such as `compare-all/packets`, or else a run.

    A run is found by its folder, its id, its experiment's name (the latest), or `last`. Raises StoreError if there is
    none.
    """
    folder = RESULTS / which
    if (folder / FACTS).is_file():
        return Publication(folder)
    return Run.open(which, Path(runs))


def summary_of(results: Results) -> Summary:
    """Return the results of the run's study. Raises StoreError if they cannot be read."""
    if isinstance(results, Run):
        return stored_or_new(results)
    found = results.summary
    try:
        return find_study(found["study"]["kind"] or DEFAULT).results.model_validate(found)
    except (KeyError, TypeError, ValidationError) as error:
        raise StoreError(f"{results.folder / SUMMARY}: no valid results of a study: {error}", AGAIN) from error


def describe_source(results: Results) -> tuple[str, str]:
    """Return the experiment's name and the kind of testbed."""
    if isinstance(results, Run):
        return results.experiment, str(results.manifest["testbed"]["kind"])
    return results.facts.experiment, results.facts.testbed
