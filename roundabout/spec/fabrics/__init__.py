# SPDX-License-Identifier: Apache-2.0
"""Generators of topologies with several paths: leaf-spine, fat-tree and rail-optimized."""

from roundabout.spec.fabrics.generators import FABRICS, Fabric, fat_tree, leaf_spine, rail_optimized, write_topology

__all__ = ["FABRICS", "Fabric", "fat_tree", "leaf_spine", "rail_optimized", "write_topology"]
