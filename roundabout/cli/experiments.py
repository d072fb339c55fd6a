# SPDX-License-Identifier: Apache-2.0
"""Experiments for commands: checked as a whole, what is expected of them included."""

from roundabout.cassini import CassiniError, meetings
from roundabout.spec import Cell, Experiment
from roundabout.spec.load import load_experiment
from roundabout.spec.source import Block


def checked_experiment(name: str, length: str | None = None, changes: Block | None = None) -> Experiment:
    """An experiment of the catalogue, or of a file, whose study is there and whose expectations can be judged.

    Raises SpecError, UsageError where there is no such study, and CassiniError for jobs that it cannot shift.
    """
    # Quantities are measured with libraries that take a second to import.
    from analysis.expected import complain  # noqa: PLC0415

    return check_experiment(name, load_experiment(name, length=length, complain=complain, changes=changes))


def check_experiment(name: str, experiment: Experiment) -> Experiment:
    """The experiment, if its study is there and its jobs can be shifted. Raises like `checked_experiment`."""
    from analysis.studies import study_of  # noqa: PLC0415

    study_of(experiment)
    for cell in experiment.cells:
        if cell.spec.cassini and not cell.spec.cassini.timetables:
            _check_timetables(name, cell)
    return experiment


def _check_timetables(name: str, cell: Cell) -> None:
    try:
        meetings(cell.spec)
    except CassiniError as error:
        at = "".join(f", {factor} {level}" for factor, level in cell.levels.items())
        raise CassiniError(f"{name}: cassini{at}: {error.message}", error.hint) from None
