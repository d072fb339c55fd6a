# SPDX-License-Identifier: Apache-2.0
"""Hosts made of files; their tools are programs that keep state there (stand_ins/)."""

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from roundabout.settings import settings_linux
from roundabout.settings.settings_host import Host, ToolError
from tests.running import load_program

STAND_INS = Path(__file__).with_name("stand_ins")


TOOLS, TREES = (load_program(STAND_INS / f"{name}.py") for name in ("tools", "trees"))

FILES = {
    "proc/sys/kernel/random/boot_id": "b001",
    "proc/sys/net/ipv4/tcp_congestion_control": "cubic",
    "proc/sys/net/ipv4/tcp_available_congestion_control": "reno cubic",
    "proc/sys/net/ipv4/tcp_ecn": "2",
    "proc/sys/net/ipv4/tcp_rmem": "4096\t131072\t6291456",
    "link-eth0": '{"mtu": 1500, "gso_max_size": 65536}',
    "routes": "[]",
    "transport-dcqcn": '{"T_us": 125.0, "F": 1.0, "g": 0.0625}',
}


@pytest.fixture
def host(tmp_path: Path) -> Host:
    root = tmp_path / "root"
    TREES.write(root, FILES)
    TREES.add_tools(root, "ip", "transport")
    return Host(root, tmp_path / "state")


@pytest.fixture(scope="session")
def tools() -> ModuleType:
    return TOOLS


@pytest.fixture(scope="session")
def trees() -> ModuleType:
    return TREES


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Host]:
    """A server by its name in stand_ins/trees.py; its tools run in this process, which is faster."""

    def build(name: str) -> Host:
        root = tmp_path / name
        TREES.build(name, root)
        return Host(root, tmp_path / f"{name}-state")

    monkeypatch.setattr(settings_linux, "LOOK_S", 0)
    monkeypatch.setattr(Host, "run", run_here)
    return build


def run_here(host: Host, tool: str, *words: str) -> str:
    assert host.has(tool), tool
    try:
        answer: Any = TOOLS.TOOLS[tool](host.root, list(words))
    except TOOLS.RefusedError as refusal:
        raise ToolError(f"{tool} {' '.join(words)}: {refusal}") from refusal
    return str(answer)
