# SPDX-License-Identifier: Apache-2.0
"""Figures of a congestion control from training jobs: whether jobs interleave, and how slow the slowest job is."""

import numpy as np

from analysis.reading.cells import cells_of
from analysis.reading.phase_overlap import compute_overlaps, first_lasting, select_jobs
from analysis.reading.traces import communication_spans
from roundabout.store import Run

JobFigures = dict[str, dict[str, float | None]]


def job_figures(run: Run) -> JobFigures:
    """Return figures by variant: `interleaved`, `mean` and `worst`.

    `interleaved` is the iteration from which jobs stay interleaved, or None. `mean` (of all jobs) and `worst` (of the
    slowest) are the last half's median iteration over the profile's isolated iteration.
    Variants without a valid trial have no figure, because conditions are judged on these figures.
    """
    reported: JobFigures = {}
    for cell in cells_of(run):
        if not cell.trials or cell.disturbance is not None:
            continue
        _, spans = communication_spans(run, cell, cell.trials[0])
        firsts = [first_lasting(compute_overlaps(select_jobs(spans, jobs))) for jobs in cell.sharing_jobs.values()]
        settled = [float(first) for first in firsts if first is not None]
        slow = []
        for job, times in cell.times.items():
            (series,) = times.values()
            alone_ms = cell.spec.jobs[job].profile.alone_ms
            slow.append(float(np.median(series[len(series) // 2 :])) / alone_ms)
        reported[cell.variant] = {
            "interleaved": max(settled) if settled and len(settled) == len(firsts) else None,
            "mean": float(np.mean(slow)),
            "worst": max(slow),
        }
    return reported
