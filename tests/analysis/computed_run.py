# SPDX-License-Identifier: Apache-2.0
"""A small run of three trials, computed in a moment, with its summary."""

from pathlib import Path
from typing import Any

from analysis.reports.summary import summarize_run
from roundabout.runner.run import Runner
from roundabout.spec import load_experiment
from roundabout.store import Run
from roundabout.testbeds import undo
from roundabout.testbeds.fluid.provider import FluidProvider
from tests.observers import Silent
from tests.runner.conftest import experiment

TINY = experiment(3, "alone: {one_job_at_a_time: true}, fair: {}")


def compute(folder: Path) -> Run:
    """Write the experiment into `folder` and run it there."""
    path = folder / "tiny.yaml"
    path.write_text(TINY)
    observer: Any = Silent()
    run = Runner(FluidProvider(), observer, undo).start(load_experiment(path), str(path), folder / "runs")
    run.write_summary(summarize_run(run).record())
    return run
