# SPDX-License-Identifier: Apache-2.0
"""Pictures of topologies of the library, as `roundabout draw` makes them."""

from analysis.render.page import svg_of
from analysis.render.topology_picture import draw_topology
from roundabout.spec.loader import load_topology


def draw(name: str) -> str:
    """Return the picture of a topology as SVG."""
    return svg_of(draw_topology(load_topology(name)))
