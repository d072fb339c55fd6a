# SPDX-License-Identifier: Apache-2.0
"""Topologies for advice: this project's own, and the files in which schedulers describe a cluster's switches."""

import re
from collections.abc import Collection
from pathlib import Path
from typing import Literal

from analysis.advice.topologies import hypernodes, slurm
from analysis.advice.topologies.switch_tree import build_topology
from roundabout.spec import SpecError, Topology, load_topology
from roundabout.spec.loader import is_path
from roundabout.spec.reader.yaml_source import MAX_BYTES, read_text, shown_path

SLURM_YAML = re.compile(r"^\s*-\s+topology:", re.MULTILINE)
"""A topology in Slurm's topology.yaml(5), where `topology` is the first attribute."""


def scheduler_of(name: str) -> Literal["slurm", "volcano"] | None:
    """Return the scheduler whose file this is, or None for a topology of this project. Raises SpecError."""
    path = Path(name)
    if path.suffix.lower() == ".conf":
        return "slurm"
    if not is_path(name):
        return None
    text = read_text(path, shown_path(path), MAX_BYTES)
    if SLURM_YAML.search(text):
        hint = "write the switches of its tree as lines such as SwitchName=s0 Nodes=node[01-08]"
        raise SpecError(shown_path(path), "Slurm's topology.yaml", "a topology.conf", hint=hint)
    return "volcano" if hypernodes.API in text else None


def read_topology(name: str, hosts: Collection[str], capacity_gbps: float | None) -> tuple[Topology, tuple[str, ...]]:
    """Return a topology by its name or file, and notes on what a scheduler's file does not show.

    Args:
        name: a topology's name or file, a `topology.conf`, or a file of HyperNodes.
        hosts: the hosts of jobs, among which the patterns of HyperNodes select.
        capacity_gbps: the payload rate of each cable of a scheduler's file, which has none, in Gbit/s.

    Raises SpecError.
    """
    scheduler, path = scheduler_of(name), Path(name)
    if scheduler is None:
        return load_topology(name), ()
    assert capacity_gbps is not None
    switches, notes = slurm.read_switches(path) if scheduler == "slurm" else hypernodes.read_switches(path, hosts)
    note = (
        f"{path.name} has neither rates nor numbers of cables: each host and each switch is taken to have one cable "
        f"up, of --capacity ({capacity_gbps:g} Gbit/s); jobs meet less often where switches have several"
    )
    return build_topology(shown_path(path), switches, capacity_gbps), (note, *notes)
