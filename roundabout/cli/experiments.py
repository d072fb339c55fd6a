# SPDX-License-Identifier: Apache-2.0
"""Experiments for commands: checked as a whole, what is expected of them included."""

from roundabout.spec import Experiment
from roundabout.spec.load import load_experiment


def checked_experiment(name: str, length: str | None = None) -> Experiment:
    """An experiment of the catalogue, or of a file, whose study is there and whose expectations can be judged.

    Raises SpecError, and UsageError where there is no such study.
    """
    # Quantities are measured with libraries that take a second to import.
    from analysis.expected import complain  # noqa: PLC0415
    from analysis.studies import study_of  # noqa: PLC0415

    experiment = load_experiment(name, length=length, complain=complain)
    study_of(experiment)
    return experiment
