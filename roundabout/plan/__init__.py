# SPDX-License-Identifier: Apache-2.0
"""Plans of experiments: their trials, in order, and how long they take."""

from roundabout.plan.clusters import conducted
from roundabout.plan.duration import expected_iterations_s, iteration_s
from roundabout.plan.trials import Plan, PlannedTrial, content_hash, expected_s, make_plan

__all__ = [
    "Plan",
    "PlannedTrial",
    "conducted",
    "content_hash",
    "expected_iterations_s",
    "expected_s",
    "iteration_s",
    "make_plan",
]
