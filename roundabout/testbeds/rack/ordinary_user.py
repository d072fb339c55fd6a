# SPDX-License-Identifier: Apache-2.0
"""Runs of an ordinary user on a rack: the parts of a trial that need root, and the findings that matter."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from roundabout.core.errors import UsageError
from roundabout.runner.machine.undo_journal import JOURNALS, Entry
from roundabout.settings.settings_nic import NIC_TRANSPORTS
from roundabout.spec.transports import Transport
from roundabout.spec.trial_spec import TrialSpec
from roundabout.testbeds.rack.examination import ADDRESS, DEVICE, GID, MEMLOCK, PYTHON, SSH
from roundabout.testbeds.rack.inventory import Inventory

NEEDED = (
    SSH,
    PYTHON,
    "ip",
    "iperf3",
    "NIC ",
    ADDRESS,
    DEVICE,
    GID,
    MEMLOCK,
    "hca",
    "path MTU",
    "TCP ports",
    "GPU driver",
)
"""Beginnings of findings' names that matter to a run which changes no settings."""


def is_needed(name: str) -> bool:
    """Return True if the finding `name` matters to a run of an ordinary user."""
    return name.startswith(NEEDED)


def refuse_root(inventory: Inventory, what: str) -> None:
    """Raise UsageError if `what` would need root on servers that the inventory does not give."""
    if not inventory.common.ansible_become:
        raise UsageError(
            f"all.children.rack.vars.ansible_become: found false, allowed for {what} is true, because they need root "
            "on servers",
            "let an administrator do it, with an inventory whose ansible_user is root or has sudo",
        )


def refuse_undo(inventory: Inventory, entry: Entry, path: Path) -> None:
    """Raise UsageError if the inventory at `path` gives no root, with which a run made the change of `entry`."""
    if not inventory.common.ansible_become:
        owner = entry["owner"]
        raise UsageError(
            f"cannot undo the {entry['kind']} of {owner} on {', '.join(entry['hosts'])}: {path}: "
            "all.children.rack.vars.ansible_become: found false, expected true, as when that run changed them",
            "set ansible_become: true and an ansible_user that is root or has sudo, then `roundabout clean`; or have "
            f"an administrator `roundabout rollback INVENTORY --owner {owner}`, and remove its file in {JOURNALS}",
        )


class RootNeed(NamedTuple):
    """A part of a trial that needs root on servers, and the option that leaves it out."""

    part: str
    option: str


def refuse_without_root(trial: TrialSpec) -> None:
    """Raise UsageError that names all parts of the trial that need root on every rack."""
    if found := list(_root_needs(trial)):
        parts, options = "; ".join(each.part for each in found), dict.fromkeys(each.option for each in found)
        raise UsageError(
            f"all.children.rack.vars.ansible_become: found false, but root is needed by: {parts}",
            f"{' '.join(options)}; or a user with sudo, and ansible_become: true",
        )


def _root_needs(trial: TrialSpec) -> Iterator[RootNeed]:
    if trial.capture:
        yield RootNeed(f"capture (tcpdump on {', '.join(trial.capture.hosts)})", "--set capture=null")
    for name, job in trial.jobs.items():
        by_rdma = job.transport.name in NIC_TRANSPORTS and (job.trainer.rdma_program or job.trainer.nccl)
        if not by_rdma and _is_loaded(job.transport):
            part = f"jobs.{name}.transport (eBPF program {job.transport.name})"
            yield RootNeed(part, "--set transport.name=cubic")
    for name, traffic in trial.cross_traffic.items():
        if _is_loaded(traffic.transport):
            part = f"cross_traffic.{name}.transport (eBPF program {traffic.transport.name})"
            yield RootNeed(part, f"--set cross_traffic.{name}.transport.name=cubic")


def _is_loaded(transport: Transport) -> bool:
    """Return True if the transport over TCP is an eBPF program, and not one of Linux's own."""
    return transport.declaration is not None
