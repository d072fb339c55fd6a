# SPDX-License-Identifier: Apache-2.0
"""The verification of the host keys of a rack's servers."""

from pathlib import Path
from threading import Barrier

import pytest

from roundabout.runner.hosts.connections import LostHostError
from roundabout.spec import load_topology
from roundabout.testbeds.rack import rack
from roundabout.testbeds.rack.examination import Finding
from roundabout.testbeds.rack.inventory import read_inventory

pytestmark = pytest.mark.unit


def test_the_host_keys_of_a_run_are_verified_at_once(inventory_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    topology = load_topology("dumbbell-2x2")
    all_at_once = Barrier(len(topology.hosts))

    def connect(_inventory: object, host: str, alias: str) -> None:
        all_at_once.wait(10)
        if host == "s2":
            raise LostHostError(host, f"{alias}: Host key verification failed")

    answers = [Finding("ssh", True, "answers", "")]
    monkeypatch.setattr(rack, "query_capabilities", lambda _, hosts: dict.fromkeys(hosts, answers))
    monkeypatch.setattr(rack, "connect_machine", connect)
    with pytest.raises(LostHostError, match="s2: .*: Host key verification failed"):
        rack.Rack.reach(read_inventory(inventory_file), topology, "run1")
