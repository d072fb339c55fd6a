# SPDX-License-Identifier: Apache-2.0
"""Routing in topologies with several paths."""

from roundabout.spec.routing.five_tuple import FIRST_PORT, PORTS, FiveTuple, Flow, source_port
from roundabout.spec.routing.flow_ports import FlowPort
from roundabout.spec.routing.rules import Routing

__all__ = ["FIRST_PORT", "PORTS", "FiveTuple", "Flow", "FlowPort", "Routing", "source_port"]
