# SPDX-License-Identifier: Apache-2.0
"""Trials of experiments that a test describes by the fields that matter to it."""

from typing import Any

from roundabout import build_experiment
from roundabout.spec import TrialSpec


def build_trial(**fields: Any) -> TrialSpec:
    """Build the first trial of an experiment with these fields, on two racks of two hosts unless they say otherwise."""
    return build_experiment({"name": "trial", "about": "A trial", "topology": "dumbbell-2x2", **fields}).cells[0].spec
