# SPDX-License-Identifier: Apache-2.0
"""Checks of rails: the NICs that an inventory lists, and the NICs that a job uses.

A NIC that neither its server nor its switch lists is in no other check.
"""

from collections.abc import Iterator
from typing import NamedTuple

from roundabout.core.errors import UsageError
from roundabout.spec.trial_spec import TrialSpec
from roundabout.testbeds.rack.inventory import Inventory

MEND = "list the NIC in the server's `nics` and its link in the switch's `ports`, unless the server has no such NIC"


def refuse_first_nics(trial: TrialSpec) -> None:
    """Raise UsageError if a job's trainer would send by the first of several NICs of its hosts alone."""
    for name, job in trial.jobs.items() if trial.topology.has_rails else ():
        if not job.trainer.uses_rails:
            raise UsageError(
                f"jobs.{name}.trainer.name: found {job.trainer.name} without NCCL on topology {trial.topology.name}, "
                "allowed where hosts have several NICs are replay, program, and trainers over NCCL: others send by the "
                "first NIC alone",
                f"--set jobs.{name}.trainer.backend=nccl if it has one; or a topology with one NIC for each host",
            )


class RailGap(NamedTuple):
    """A server with fewer NICs than a server beside it, and both numbers in words."""

    host: str
    found: str


def find_rail_gaps(inventory: Inventory) -> Iterator[RailGap]:
    """Yield the servers that have fewer NICs than another server at one of their switches."""
    switches = {host: [*map(inventory.switch_of, inventory.nics_of(host))] for host in inventory.servers}
    for host, own in switches.items():
        beside = (each for each, others in switches.items() if not set(own).isdisjoint(others))
        fullest = max(beside, key=lambda each: len(switches[each]))
        if len(switches[fullest]) > len(own):
            missing = ", ".join(each for each in dict.fromkeys(switches[fullest]) if each not in own)
            where = f", none at switch {missing}" if missing else ""
            yield RailGap(host, f"found {len(own)} NICs{where}; {fullest} has {len(switches[fullest])}")
