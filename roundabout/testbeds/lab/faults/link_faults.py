# SPDX-License-Identifier: Apache-2.0
"""Losses on a lab's links, by the eBPF program `fault` where a link's packets arrive.

The sender does not notice them, as on a cable. A link that has failed loses all packets. The port that feeds it still
sends, so its queue empties at the port's rate.
"""

import json
from collections.abc import Mapping

from roundabout.testbeds.lab.ecn.marking import call_switchport
from roundabout.testbeds.lab.network import paths
from roundabout.testbeds.lab.network.layout import Layout

CERTAIN = 65_536
"""A probability of 1 (fault.h)."""


def attach(lab: paths.LabPaths, layout: Layout, pids: Mapping[str, int]) -> None:
    """Let all links of a lab lose packets, once in the lab's life. None does before `set_loss`."""
    if lab.faults_map.exists():
        return
    lines = [f"{pids[end.node]} {end.ifindex}" for cable in layout.cables for end in cable.ends]
    call_switchport(["faults", str(paths.bpf_object_path("fault")), str(lab.pins)], lines)


def clear(lab: paths.LabPaths, layout: Layout) -> None:
    """Let no link of a lab lose packets."""
    if lab.faults_map.exists():
        lines = [f"{end.ifindex} 0" for cable in layout.cables for end in cable.ends]
        call_switchport(["set-faults", str(lab.pins)], lines)


def set_loss(lab: paths.LabPaths, layout: Layout, link: str, loss: float) -> None:
    """Lose a share of the packets that arrive over a link in both directions."""
    lines = [f"{ifindex} {round(loss * CERTAIN)}" for ifindex in _devices(layout, link)]
    call_switchport(["set-faults", str(lab.pins)], lines)


def count_lost(lab: paths.LabPaths, layout: Layout, link: str) -> int:
    """Return how many wire segments a link has lost so far, in both directions."""
    lost = {each["ifindex"]: each["lost"] for each in json.loads(call_switchport(["show-faults", str(lab.pins)], []))}
    return sum(lost.get(ifindex, 0) for ifindex in _devices(layout, link))


def _devices(layout: Layout, link: str) -> list[int]:
    return [end.ifindex for cable in layout.cables if cable.link.name == link for end in cable.ends]
