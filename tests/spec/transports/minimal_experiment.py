# SPDX-License-Identifier: Apache-2.0
"""The least experiment that says something of a transport."""

from pathlib import Path

from roundabout.spec import Transport
from roundabout.spec.loader import load_experiment

EXPERIMENT = """
name: one
about: one
topology: dumbbell-2x2
iterations: 2
jobs: {{j1: {{profile: bert-8, workers: [s0, s1]}}}}
transport: {transport}
"""


def written(folder: Path, transport: str) -> Path:
    """Its file, in `folder`."""
    path = folder / "one.yaml"
    path.write_text(EXPERIMENT.format(transport=transport))
    return path


def transport_of(folder: Path, transport: str) -> Transport:
    """What its job gets of that. Raises SpecError."""
    return load_experiment(written(folder, transport)).cells[0].spec.jobs["j1"].transport
