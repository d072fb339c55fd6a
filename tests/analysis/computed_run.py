# SPDX-License-Identifier: Apache-2.0
"""A small run of three trials, computed in a moment, with its summary."""

from pathlib import Path

from analysis.reports.summary import summarize_run
from roundabout.store import Run
from tests.computed_runs import compute_run
from tests.fakes.workplace import experiment

TINY = experiment(3, "alone: {one_job_at_a_time: true}, fair: {}")


def compute(folder: Path) -> Run:
    """Write the experiment into `folder` and run it there."""
    path = folder / "tiny.yaml"
    path.write_text(TINY)
    run = compute_run(path)
    run.write_summary(summarize_run(run).record())
    return run
