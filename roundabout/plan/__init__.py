# SPDX-License-Identifier: Apache-2.0
"""Plans of experiments: their trials, in order, and how long they take."""

from roundabout.plan.clusters import with_simulated_jobs
from roundabout.plan.duration import expected_iterations_s, iteration_s
from roundabout.plan.trials import Plan, PlannedTrial, content_hash, expected_duration_s, make_plan

__all__ = [
    "Plan",
    "PlannedTrial",
    "content_hash",
    "expected_duration_s",
    "expected_iterations_s",
    "iteration_s",
    "make_plan",
    "with_simulated_jobs",
]
