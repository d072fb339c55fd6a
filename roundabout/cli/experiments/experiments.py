# SPDX-License-Identifier: Apache-2.0
"""Loading of experiments for commands, with all checks including those of expectations."""

from roundabout.core.errors import UsageError
from roundabout.spec import Cell, Experiment
from roundabout.spec.loader import load_experiment
from roundabout.spec.reader.yaml_source import Block


def load_checked_experiment(name: str, length: str | None = None, changes: Block | None = None) -> Experiment:
    """Load an experiment of the catalog or from a file, and check its study, expectations and time-shifts.

    `length` and `changes` are those of `load_experiment`. Raises SpecError for an invalid file, UsageError if the study
    does not exist or a cluster is impossible, and CassiniError for jobs that Cassini cannot shift.
    """
    from analysis.expectations.expectation_check import complain  # noqa: PLC0415

    return check_experiment(name, load_experiment(name, length=length, complain=complain, changes=changes))


def check_experiment(name: str, experiment: Experiment) -> Experiment:
    """Check the experiment's study and time-shifts, and return it. Raises the errors of `load_checked_experiment`."""
    if experiment.study.kind is not None:
        from analysis.studies import find_study  # noqa: PLC0415

        find_study(experiment.study.kind)
    for cell in experiment.cells:
        if cell.spec.cassini and not cell.spec.cassini.timetables:
            _check_timetables(name, cell)
        if cell.spec.cluster:
            _check_cluster(name, cell, experiment.seed)
    return experiment


def _check_timetables(name: str, cell: Cell) -> None:
    from roundabout.models.cassini import CassiniError, unified_circles  # noqa: PLC0415 - importing it takes as long as all else

    try:
        unified_circles(cell.spec)
    except CassiniError as error:
        raise CassiniError(f"{name}: cassini{_describe_levels(cell)}: {error.message}", error.hint) from None


def _check_cluster(name: str, cell: Cell, seed: int) -> None:
    from roundabout.plan import clusters  # noqa: PLC0415 - as above

    try:
        clusters.check_cluster_trial(cell.spec, seed)
    except UsageError as error:
        raise UsageError(f"{name}: cluster{_describe_levels(cell)}: {error.message}", error.hint) from None


def _describe_levels(cell: Cell) -> str:
    return "".join(f", {factor} {level}" for factor, level in cell.levels.items())
