# SPDX-License-Identifier: Apache-2.0
"""The contents of experiment files."""

from roundabout.spec.assembly.library import EXPERIMENTS
from roundabout.spec.errors import SpecError
from roundabout.spec.experiment import Cell, Experiment, ResolvedJob, StudyChoice, TrialSpec, Value
from roundabout.spec.load import Summary, catalogue, load_experiment, load_profile, load_topology
from roundabout.spec.profile import Phase, Profile
from roundabout.spec.topology import Hop, Link, Topology
from roundabout.spec.transports import Transport

__all__ = [
    "EXPERIMENTS",
    "Cell",
    "Experiment",
    "Hop",
    "Link",
    "Phase",
    "Profile",
    "ResolvedJob",
    "SpecError",
    "StudyChoice",
    "Summary",
    "Topology",
    "Transport",
    "TrialSpec",
    "Value",
    "catalogue",
    "load_experiment",
    "load_profile",
    "load_topology",
]
