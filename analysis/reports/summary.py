# SPDX-License-Identifier: Apache-2.0
"""summary.json: the results of a run's study, for scripts. Its schema is docs/reference/summary.schema.json."""

from contextlib import suppress

from pydantic import ValidationError

from analysis.expectations.results import Summary
from analysis.reading.cached_run import CachedRun
from analysis.reading.cells import experiment_of
from analysis.statistics.intervals import repeated_looks
from analysis.studies import study_of
from roundabout.store import Run, StoreError
from roundabout.store.files import read_json


def summarize_run(run: Run) -> Summary:
    """Return the results of the run's study, computed anew and deterministically; the caller stores them.

    Raises UsageError, and StoreError if any stored file is missing or changed.
    """
    run.check()
    experiment = experiment_of(run)
    known = experiment.study.model_copy(update={"baseline": experiment.baseline.level})
    with repeated_looks(run.planned_looks):
        return study_of(experiment).compute(CachedRun(run), known)


def stored_or_new(run: Run) -> Summary:
    """Return the stored summary; compute it if it is missing, damaged, of an older version or of another run.

    Raises StoreError as `summarize_run` does.
    """
    results = study_of(experiment_of(run)).results
    with suppress(StoreError, ValidationError):
        found = results.model_validate(read_json(run.path / "summary.json"))
        if found.run == run.id:
            return found
    return summarize_run(run)
