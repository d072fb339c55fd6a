# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's mlnx_qos in five revisions: what its output means, and that settings are applied and restored by each.

The stand-in of stand_ins/tools.py is held against recordings of NVIDIA's own tool (recordings/mlnx_qos.json), and the
proofs against the tool itself: `make proof MLNX_TOOLS=DIR`, where DIR is a clone of github.com/Mellanox/mlnx-tools.
"""

import contextlib
import io
import json
import os
import runpy
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings as hypothesis_settings, strategies as st

from roundabout.settings import settings, settings_qos
from roundabout.settings.settings_host import Host, SettingsError, ToolError
from tests.running import load_program
from tests.settings.conftest import STAND_INS, TOOLS, TREES

pytestmark = pytest.mark.unit

Server = Callable[[str], Host]
CASES = Path(__file__).parents[1] / "cases/rack"
RECORDINGS = Path(__file__).with_name("recordings") / "mlnx_qos.json"
DCBNL = load_program(STAND_INS / "dcbnl.py")
PRIORITY_3, PRIORITY_5, NONE = "0,0,0,1,0,0,0,0", "0,0,0,0,0,1,0,0", "0,0,0,0,0,0,0,0"
BY_EIGHT = {f"dscp{dscp}_prio": dscp // 8 for dscp in range(64)}  # firmware's default

WANTED = {
    "cx7-23.10-3fs": {
        "tc_schedule": "9,1,80,10,strict,strict,strict,strict",
        "prio_tc": "0,1,2,3,4,5,6,7",
        "dscp40_prio": 5,
        "dscp48_prio": 6,
        "cable_length_m": 30,
        "pfc": PRIORITY_5,
        "buffer_size_bytes": "19872,220896,0,0,0,0,0,0",
    },
    "pcp-default": {
        "tc_schedule": ",".join(["vendor"] * 8),
        "prio_tc": "1,0,2,3,4,5,6,7",
        "trust": "pcp",
        "pfc": NONE,
        **dict.fromkeys(BY_EIGHT, "none"),
    },
    "split-dscp-lines": {
        "dscp30_prio": 6,
        "dscp48_prio": 6,
        "prio2buffer": "0,2,5,7,1,2,3,6",
        "prio_tc": "1,0,2,3,4,5,6,7",
    },
    "4.2-doc2792": {
        "tc_schedule": "10,10,10,10,10,10,strict,40",
        "prio_tc": "1,0,2,3,4,5,6,7",
        "pfc": "1,0,1,0,0,0,1,1",
        "cable_length_m": 10,
        **BY_EIGHT,
    },
    "switch-driven-dcbx": {"dcbx": "fw", "prio_tc": "0,0,0,3,0,0,6,0", "pfc": PRIORITY_3, **BY_EIGHT},
    "unsorted-tcs": {"tc_schedule": "16,14,14,14,14,14,strict,14", "prio_tc": "1,0,2,3,4,5,6,7"},
}


@pytest.mark.parametrize("name", WANTED)
def test_outputs_of_real_servers_are_read(name: str) -> None:
    found = settings_qos.parse_mlnx_qos((CASES / f"mlnx_qos-{name}.txt").read_text())
    assert {key: found.get(key) for key in WANTED[name]} == WANTED[name]
    assert ("tc_schedule" in found) == (name != "switch-driven-dcbx")


@pytest.mark.parametrize(
    ("lacks", "wanted", "hint"),
    [
        ("trust", {"trust": "dscp"}, "mlnx_qos prints: Priority trust state is not supported on your system"),
        ("trust", {"dscp26_prio": 3}, "mlnx_qos prints: Priority trust state is not supported on your system"),
        ("maxrate", {"tc_schedule": None}, "mlnx_qos prints: Rate limit is not supported on your system!"),
        ("maxrate", {"prio_tc": None}, "mlnx_qos prints: Rate limit is not supported on your system!"),
        ("buffers", {"prio2buffer": None}, "mlnx_qos prints: Buffers commands are not supported on your system"),
    ],
)
def test_settings_that_a_driver_lacks_are_refused_before_any_write(
    server: Server, lacks: str, wanted: dict[str, Any], hint: str
) -> None:
    host = server("connectx-5-ofed")
    change_state(host, lacks=[lacks], lldpad=True)
    before = TREES.snapshot(host.root)
    act = settings.read if None in wanted.values() else lambda *words: settings.apply(*words, "run")
    with pytest.raises(SettingsError, match=r"^qos eth2 \w+: mlnx_qos does not report it$") as error:
        act(host, {"qos": {"eth2": wanted}})
    assert error.value.hint == hint
    assert TREES.snapshot(host.root) == before


def test_the_command_that_separates_merged_classes_is_named(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings read with -a, so this is the output of a tool that has no such option."""
    output = (CASES / "mlnx_qos-switch-driven-dcbx.txt").read_text()
    host = server("connectx-5-ofed")
    monkeypatch.setattr(Host, "run", lambda *_words: output)
    with pytest.raises(SettingsError, match="qos eth2 tc_schedule: mlnx_qos does not report it") as error:
        settings.read(host, {"qos": {"eth2": {"prio_tc": None, "tc_schedule": None}}})
    assert error.value.hint.endswith("mlnx_qos -i eth2 -d os -p 1,0,2,3,4,5,6,7")


@pytest.mark.parametrize("name", ["connectx-5-ofed", "connectx-5-inbox"])
def test_merged_classes_are_separated_and_restored(server: Server, name: str) -> None:
    host = server(name)
    change_state(host, prio_tc=[0, 0, 0, 3, 0, 0, 6, 0], schedule=["50", *["0"] * 2, "50", *["0"] * 2, "vendor", "0"])
    before = TREES.snapshot(host.root)
    document = {"qos": {"eth2": {"prio_tc": "1,0,2,3,4,5,6,7"}}}
    assert settings.apply(host, document, "run")["applied"] == document
    assert settings.restore(host, "run")["failed"] == []
    assert TREES.snapshot(host.root) == before


# --- Any state that a NIC may be found in


def change_state(host: Host, **changes: Any) -> None:
    path = host.root / "qos-eth2"
    path.write_text(json.dumps({**TREES.QOS, **changes}))


def eight(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    return st.lists(strategy, min_size=8, max_size=8)


@st.composite
def schedules(draw: st.DrawFn) -> list[str]:
    words: list[str] = draw(eight(st.sampled_from(["strict", "vendor", "0"])))
    with_share = [number for number, word in enumerate(words) if word == "0"]
    for number in draw(st.lists(st.sampled_from(with_share), min_size=10, max_size=10)) if with_share else []:
        words[number] = str(int(words[number]) + 10)
    return words


STATES = st.fixed_dictionaries(
    {
        "dcbx": st.sampled_from(["os", "fw"]),
        "dscp": st.dictionaries(st.integers(0, 63).map(str), st.integers(0, 7), max_size=5),
        "prio_tc": eight(st.integers(0, 7)),
        "schedule": schedules(),
        "pfc": eight(st.integers(0, 1)),
        "delay": st.integers(1, 999),
        "prio2buffer": eight(st.integers(0, 7)),
        "buffer_size": eight(st.integers(0, 200).map(lambda cells: cells * 128)),
        "lldpad": st.booleans(),
    }
)


def check_any_state(host: Host, examples: int) -> None:
    """Apply a rack's document to any state twice, and restore it."""

    @given(state=STATES, lossless=st.integers(0, 7), metres=st.integers(1, 999))
    @hypothesis_settings(max_examples=examples, deadline=None)
    def check(state: dict[str, Any], lossless: int, metres: int) -> None:
        change_state(host, **state)
        before = TREES.snapshot(host.root)
        pfc = ",".join(str(int(priority == lossless)) for priority in range(8))
        document = {"qos": {"eth2": {**TREES.QOS_WANTED, "pfc": pfc, "cable_length_m": metres}}}
        assert settings.apply(host, document, "run")["applied"] == document
        applied = TREES.snapshot(host.root)
        assert settings.apply(host, document, "run")["changed"] == []
        assert TREES.snapshot(host.root) == applied
        assert settings.restore(host, "run")["failed"] == []
        assert TREES.snapshot(host.root) == before

    check()


@pytest.mark.parametrize("revision", TOOLS.REVISIONS)
def test_any_state_is_changed_once_and_restored(server: Server, revision: str) -> None:
    host = server("connectx-5-ofed")
    (host.root / "mlnx_qos-revision").write_text(revision)
    check_any_state(host, 10)


# --- Recordings

FOUND = {
    "mlx5's default": {},
    "a site's own": {
        "dcbx": "os",
        "dscp": {"26": 3, "48": 6, "10": 3},
        "prio_tc": [0, 1, 2, 3, 4, 5, 6, 7],
        "schedule": ["10", "10", "10", "40", "10", "10", "strict", "10"],
        "pfc": [0, 0, 0, 1, 0, 1, 0, 0],
        "lldpad": True,
    },
    "merged by a switch": {
        "dscp": {str(dscp): dscp >> 3 for dscp in range(64)},
        "prio_tc": [0, 0, 0, 3, 0, 0, 6, 0],
        "schedule": ["50", "0", "0", "50", "0", "0", "vendor", "0"],
    },
    "without trust": {"lacks": ["trust"]},
    "without rate limits": {"lacks": ["maxrate"]},
    "without buffers": {"lacks": ["buffers"]},
}
WRITES = (
    "--cable_len 30",
    f"--pfc {PRIORITY_3}",
    f"--pfc {PRIORITY_3} --cable_len 30",
    "-p 1,0,2,3,4,5,6,7",
    "-s ets,ets,ets,ets,ets,ets,strict,ets -t 14,14,14,16,14,14,0,14",
    "-p 1,0,2,3,4,5,6,7 -s ets,ets,ets,ets,ets,ets,strict,ets -t 14,14,14,16,14,14,0,14",
    "-s ets,ets,ets,ets,ets,ets,strict,ets -t 14,14,14,15,14,14,0,14",
    "--trust=pcp",
    "--dscp2prio set,26,5",
    "--dscp2prio del,26,3",
    "-d fw",
)

Run = Callable[[Path, list[str]], str]


def record(run: Run, host: Host) -> dict[str, Any]:
    """Return the output of mlnx_qos for each state of FOUND, and what each of WRITES changes in "a site's own"."""
    path, options = host.root / "qos-eth2", ["-i", "eth2"]
    reads = {}
    for name, state in FOUND.items():
        change_state(host, **state)
        reads[name] = run(host.root, [*options, "-a"]).splitlines()
    for name in ("mlx5's default", "merged by a switch"):
        change_state(host, **FOUND[name])
        reads[f"{name}, without -a"] = run(host.root, options).splitlines()
    writes: dict[str, Any] = {}
    for words in WRITES:
        change_state(host, **FOUND["a site's own"])
        before = json.loads(path.read_text())
        try:
            run(host.root, [*options, *words.split()])
            writes[words] = {name: each for name, each in json.loads(path.read_text()).items() if before[name] != each}
        except TOOLS.RefusedError as error:
            writes[words] = str(error).splitlines()[-1]
    return {"reads": reads, "writes": writes}


def recorded(revision: str) -> dict[str, Any]:
    """Return the recording of a revision. The file has of each revision what differs from the one before."""
    changes = json.loads(RECORDINGS.read_text())
    until = [changes[each] for each in TOOLS.REVISIONS[: TOOLS.REVISIONS.index(revision) + 1]]
    return {part: {name: each for change in until for name, each in change.get(part, {}).items()} for part in until[0]}


@pytest.mark.parametrize("revision", TOOLS.REVISIONS)
def test_the_stand_in_answers_as_nvidias_tool(server: Server, revision: str) -> None:
    host = server("connectx-5-ofed")
    (host.root / "mlnx_qos-revision").write_text(revision)
    assert record(TOOLS.mlnx_qos, host) == recorded(revision)


# --- NVIDIA's own tool


@pytest.fixture(params=TOOLS.REVISIONS)
def nvidias(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, Run]:
    """A revision of mlnx-tools, and its mlnx_qos on the stand-in of the kernel's DCB."""
    clone = os.environ.get("MLNX_TOOLS")
    if not clone:
        pytest.skip("found no MLNX_TOOLS, expected a clone of github.com/Mellanox/mlnx-tools")
    tool = tmp_path / "mlnx_qos"
    show = ["git", "-C", clone, "show", f"{request.param}:python/mlnx_qos"]
    tool.write_bytes(subprocess.run(show, capture_output=True, check=True).stdout)
    listing = tmp_path / "path/ps"  # mlnx_qos looks for lldpad in the list of processes
    listing.parent.mkdir()
    monkeypatch.setenv("PATH", f"{listing.parent}:{os.environ['PATH']}")

    def run(root: Path, words: list[str]) -> str:
        lldpad = json.loads((root / "qos-eth2").read_text()).get("lldpad")
        listing.write_text(f"#!/bin/sh\necho {'lldpad' if lldpad else 'init'}\n")
        listing.chmod(0o755)
        return run_in_process(tool, words, {"dcbnetlink": DCBNL.module(TOOLS, root)})

    return request.param, run


def run_in_process(tool: Path, words: list[str], modules: Mapping[str, ModuleType]) -> str:
    """Return the output of a Python program that finds `modules`. Raises RefusedError if it fails."""
    output = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(output):
        patch.setattr(sys, "argv", [str(tool), *words])
        for name, module in modules.items():
            patch.setitem(sys.modules, name, module)
        try:
            runpy.run_path(str(tool), run_name="__main__")
        except SystemExit as error:
            if error.code:
                raise TOOLS.RefusedError(output.getvalue().strip()) from error
    return output.getvalue()


@pytest.mark.proof
def test_the_recordings_are_what_nvidias_tool_answers(server: Server, nvidias: tuple[str, Run]) -> None:
    revision, run = nvidias
    assert record(run, server("connectx-5-ofed")) == recorded(revision)


@pytest.mark.proof
def test_any_state_is_changed_once_and_restored_by_nvidias_tool(
    server: Server, nvidias: tuple[str, Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, run = nvidias
    host, other = server("connectx-5-ofed"), Host.run

    def run_tool(host: Host, tool: str, *words: str) -> str:
        if tool != "mlnx_qos":
            return other(host, tool, *words)
        try:
            return run(host.root, list(words))
        except TOOLS.RefusedError as error:
            raise ToolError(f"mlnx_qos {' '.join(words)}: {error}") from error

    monkeypatch.setattr(Host, "run", run_tool)
    check_any_state(host, 40)
