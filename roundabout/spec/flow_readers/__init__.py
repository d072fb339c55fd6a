# SPDX-License-Identifier: Apache-2.0
"""Readers of the inputs of other packet simulators: lists of finite flows, and the topologies that they cross."""

from roundabout.spec.flow_readers.scene import Scene, read_scene

__all__ = ["Scene", "read_scene"]
