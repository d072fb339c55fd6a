# SPDX-License-Identifier: Apache-2.0
"""summary.json: what a run's study found, for scripts to rely on. Its schema is docs/summary.schema.json."""

from pydantic import ValidationError

from analysis.reading.cells import experiment_of
from analysis.reading.once import ReadOnce
from analysis.results import Summary
from analysis.studies import study_of
from roundabout.store import Run, StoreError
from roundabout.store.files import read_json


def summarise(run: Run) -> Summary:
    """What the run's study finds; the caller stores it. The same run gives the same.

    Raises UsageError, and StoreError where anything that was stored is missing or is not what it was.
    """
    run.check()
    experiment = experiment_of(run)
    known = experiment.study.model_copy(update={"baseline": experiment.baseline.level})
    return study_of(experiment).of(ReadOnce(run), known)


def stored_or_new(run: Run) -> Summary:
    """What was found as it was stored; made anew where it was not, or as another version. Raises StoreError."""
    path = run.path / "summary.json"
    if path.exists():
        try:
            found = study_of(experiment_of(run)).results.model_validate(read_json(path))
        except ValidationError:
            return summarise(run)  # an older version's, which lacks something
        if found.run != run.id:
            raise StoreError(f"{path} is of run {found.run}, expected {run.id}", "make it anew: roundabout report")
        return found
    return summarise(run)
