# SPDX-License-Identifier: Apache-2.0
"""Runs that a model computes in a moment."""

from pathlib import Path
from typing import Any

from analysis.reading.trial_inputs import resolve_inputs
from roundabout.runner.run import Runner
from roundabout.runner.testbed import TestbedProvider
from roundabout.spec import load_experiment
from roundabout.store import Run
from roundabout.testbeds import undo
from roundabout.testbeds.fluid.provider import FluidProvider
from tests.observers import Silent

OBSERVER: Any = Silent()


def runner_on(provider: TestbedProvider) -> Runner:
    """Return a runner that reports nothing."""
    return Runner(provider, OBSERVER, undo, resolve_inputs=resolve_inputs)


RUNNER = runner_on(FluidProvider())


def compute_run(path: Path) -> Run:
    """Run the experiment at `path`, beside which the run is stored."""
    return RUNNER.start(load_experiment(path), str(path), path.parent / "runs")
