# SPDX-License-Identifier: Apache-2.0
"""Experiments for commands: checked as a whole, what is expected of them included."""

from roundabout.spec import Experiment
from roundabout.spec.load import load_experiment


def checked_experiment(name: str, length: str | None = None) -> Experiment:
    """An experiment of the catalogue, or of a file, whose expectations can be judged. Raises SpecError."""
    # Quantities are measured with libraries that take a second to import.
    from analysis.expected import complain  # noqa: PLC0415

    return load_experiment(name, length=length, complain=complain)
