# SPDX-License-Identifier: Apache-2.0
"""Runs that the flow-level model computes in a moment."""

from pathlib import Path
from typing import Any

from analysis.reading.trial_inputs import resolve_inputs
from roundabout.runner.run import Runner
from roundabout.spec import load_experiment
from roundabout.store import Run
from roundabout.testbeds import undo
from roundabout.testbeds.fluid.provider import FluidProvider
from tests.observers import Silent

OBSERVER: Any = Silent()
RUNNER = Runner(FluidProvider(), OBSERVER, undo, resolve_inputs=resolve_inputs)


def compute_run(path: Path) -> Run:
    """Run the experiment at `path`, beside which the run is stored."""
    return RUNNER.start(load_experiment(path), str(path), path.parent / "runs")
