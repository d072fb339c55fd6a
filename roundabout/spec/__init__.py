# SPDX-License-Identifier: Apache-2.0
"""Specifications: models, readers and checks of experiment, profile and topology files."""

from roundabout.spec.assembly.library import EXPERIMENTS
from roundabout.spec.errors import SpecError
from roundabout.spec.experiment import Cell, Experiment
from roundabout.spec.job import InputValue, ResolvedJob
from roundabout.spec.loader import Summary, load_catalog, load_experiment, load_profile, load_topology, read_catalog
from roundabout.spec.profile import Phase, Profile
from roundabout.spec.study_choice import StudyChoice
from roundabout.spec.topology import Hop, Link, Topology
from roundabout.spec.transports import Transport
from roundabout.spec.trial_spec import TrialSpec

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
