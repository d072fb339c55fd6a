# SPDX-License-Identifier: Apache-2.0
"""Runs on lab hosts that pose as a rack, in this process."""

import tempfile
from pathlib import Path
from typing import Any

from roundabout.runner.run import Runner
from roundabout.spec.loader import load_experiment
from roundabout.store import Run
from roundabout.testbeds import undo
from roundabout.testbeds.rack.provider import RackProvider


def run(inventory: Path, experiment: str, folder: Path, observer: Any) -> Run:
    path = folder / "experiment.yaml"
    path.write_text(experiment)
    with tempfile.TemporaryDirectory(
        prefix="r", dir="/tmp"
    ) as state:  # Ansible's sockets lie below, whose paths must be short
        runner = Runner(RackProvider(inventory), observer, undo, Path(state) / "s", folder / "journals/runs")
        return runner.start(load_experiment(path), "experiment", folder / "runs")
