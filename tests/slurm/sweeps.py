# SPDX-License-Identifier: Apache-2.0
"""An experiment for sweeps with Slurm, and the figures of a run."""

from typing import Any

from roundabout.store import Run

SPREAD = """
schema: 1
name: spread
about: A job alone, and then two
topology: dumbbell-2x2
profile: vgg19-1400
jobs:
  j1: {workers: [s0, s2]}
  j2: {workers: [s1, s3]}
iterations: 4
transport: {name: dcqcn, T_us: 125}
factors:
  variant:
    alone: {jobs: {j2: null}}
    after: {depends_on: [alone]}
"""


def figures(run: Run) -> list[tuple[Any, ...]]:
    """What a run has, but for when and where."""
    rows = run.table("iterations").select(["trial", "job", "host", "iteration", "iteration_ms"]).to_pylist()
    return sorted(tuple(row.values()) for row in rows)
