# SPDX-License-Identifier: Apache-2.0
"""Faults of PFC in a trial that was played packet by packet: a deadlock, and drops of lossless queues."""

from roundabout.models.packets import PlayedTrial
from roundabout.spec.pfc import largest_required_headroom
from roundabout.spec.trial_spec import TrialSpec


def pfc_faults(spec: TrialSpec, played: PlayedTrial) -> list[str]:
    """Return the reasons why lossless links were none, so that the trial is invalid."""
    found = [f"PFC deadlock: {played.deadlock}"] if played.deadlock else []
    if spec.may_drop:
        return found
    drops = zip(played.ports.directions, played.samples.ports["drops"][-1], strict=True)
    return found + [
        f"the lossless queue of {link.name} dropped {count} packets towards {receiver}{_cause(spec)}"
        for ((_, receiver), link), count in drops
        if count
    ]


def _cause(spec: TrialSpec) -> str:
    """Return the cause of drops of lossless queues, if the topology's headroom is one."""
    buffer = spec.topology.buffer
    needed, link = largest_required_headroom(spec.topology)
    if not buffer or buffer.headroom_bytes is None or buffer.headroom_bytes >= needed:
        return ""
    return f": the headroom of {buffer.headroom_bytes} bytes is less than the {needed} that {link} needs"
