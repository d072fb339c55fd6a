# SPDX-License-Identifier: Apache-2.0
"""Servers made of files (tests/settings/stand_ins), as Ansible hosts of this machine."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.running import load_program

STAND_INS = Path(__file__).parents[1] / "settings" / "stand_ins" / "trees.py"


TREES = load_program(STAND_INS)


class Servers(NamedTuple):
    """An inventory, and the tree of each server in it."""

    inventory: Path
    roots: dict[str, Path]

    def snapshot(self) -> dict[str, Any]:
        return {name: TREES.snapshot(root) for name, root in self.roots.items()}


@pytest.fixture
def server(tmp_path: Path) -> Servers:
    """Return an inventory of a ConnectX-5 with OFED. A task of a playbook takes a host a quarter of a second."""
    return _build_servers(tmp_path, "connectx-5-ofed")


@pytest.fixture
def rails(tmp_path: Path) -> Servers:
    """Return an inventory of a server with two of these NICs."""
    return _build_servers(tmp_path, "connectx-5-ofed", nics=2)


@pytest.fixture
def servers(tmp_path: Path) -> Servers:
    """Return an inventory of a ConnectX-5 with OFED and one without."""
    return _build_servers(tmp_path, "connectx-5-ofed", "connectx-5-inbox")


def _build_servers(tmp_path: Path, *names: str, nics: int = 1) -> Servers:
    hosts, roots = {}, {}
    for name in names:
        root = roots[name] = tmp_path / name
        TREES.build(name, root, nics)
        for folder in ("etc/systemd/system", "etc/udev/rules.d"):
            (root / folder).mkdir(parents=True)
        document = {kind: each for kind, each in TREES.document(name).items() if kind != "transport"}
        by_nic = {f"eth{2 + number}": TREES.document_of_nic(document, number) for number in range(nics)}
        hosts[name] = {
            "ansible_connection": "local",
            "roundabout_prefix": str(tmp_path / f"{name}-prefix"),
            "roundabout_state": str(tmp_path / f"{name}-state"),
            "settings_root": str(root),
            "settings_by_nic": by_nic,
            "settings_document": TREES.merge(by_nic.values()),
        }
    groups = {"rack": {"hosts": {}}, "switches": {"hosts": {}}, "stand_ins": {"hosts": hosts}}
    inventory = tmp_path / "inventory.json"
    inventory.write_text(json.dumps({"all": {"children": groups}}))
    return Servers(inventory, roots)
