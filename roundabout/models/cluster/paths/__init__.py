# SPDX-License-Identifier: Apache-2.0
"""Paths of placed jobs' flows, which source ports choose where switches hash flows (ECMP)."""

from roundabout.models.cluster.paths.path_loads import least_loaded_ports, with_crux_paths

__all__ = ["least_loaded_ports", "with_crux_paths"]
