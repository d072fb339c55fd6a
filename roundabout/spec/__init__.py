# SPDX-License-Identifier: Apache-2.0
"""Specifications: models, readers and checks of experiment, profile and topology files."""

from roundabout.spec.assembly.library import EXPERIMENTS
from roundabout.spec.errors import SpecError
from roundabout.spec.experiment import Cell, Experiment, InputValue, ResolvedJob, StudyChoice, TrialSpec
from roundabout.spec.loader import Summary, load_catalog, load_experiment, load_profile, load_topology, read_catalog
from roundabout.spec.profile import Phase, Profile
from roundabout.spec.topology import Hop, Link, Topology
from roundabout.spec.transports import Transport

__all__ = [
    "EXPERIMENTS",
    "Cell",
    "Experiment",
    "Hop",
    "InputValue",
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
    "load_catalog",
    "load_experiment",
    "load_profile",
    "load_topology",
    "read_catalog",
]
