# SPDX-License-Identifier: Apache-2.0
"""Paths of placed jobs' flows, which source ports choose where switches hash flows (ECMP)."""

from roundabout.models.cluster.paths.candidates import PlacedFlow, placed_flows, ports_without_choice
from roundabout.models.cluster.paths.foresight import PathSearch, with_foresight
from roundabout.models.cluster.paths.path_loads import least_loaded_ports, with_crux_paths

__all__ = [
    "PathSearch",
    "PlacedFlow",
    "least_loaded_ports",
    "placed_flows",
    "ports_without_choice",
    "with_crux_paths",
    "with_foresight",
]
