# SPDX-License-Identifier: Apache-2.0
"""Whichever write fails, however, on whichever server: `restore` brings all of it back, or names what it could not."""

import contextlib
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import example, given, settings as hypothesis_settings, strategies as st

from roundabout.settings import settings, settings_nic, settings_qos
from roundabout.settings.settings_host import Host, SettingsError

pytestmark = pytest.mark.unit

Server = Callable[[str], Host]
SERVERS = ("connectx-5-ofed", "connectx-5-inbox")


class Faults:
    """A count of all that changes anything: writes of files and of a tool's state.

    Number `at` goes wrong in its `way`. A `cursed` file, or tool's state, cannot be written at all.
    """

    def __init__(self, tools: ModuleType, at: int = 0, way: str = "before", cursed: str = "") -> None:
        self.tools, self.at, self.way, self.cursed = tools, at, way, cursed
        self.count = 0
        self.seen: list[str] = []
        self.real_open, self.real_write, self.real_save = os.open, os.write, tools.State.save

    @contextlib.contextmanager
    def active(self) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(os, "open", self.open)
            patch.setattr(os, "write", self.write)
            patch.setattr(self.tools.State, "save", lambda state: self.save(state))  # noqa: PLW0108 (to be bound to the state)
            yield

    def fails(self, what: str) -> bool:
        self.count += 1
        self.seen.append(what)
        return self.count == self.at or what == self.cursed

    def open(self, path: Path, flags: int, mode: int = 0o777) -> int:
        if str(path) == self.cursed:
            raise PermissionError(13, "Permission denied")
        return self.real_open(path, flags, mode)

    def write(self, descriptor: int, content: bytes) -> int:
        if not self.fails(os.readlink(f"/proc/self/fd/{descriptor}")):
            return self.real_write(descriptor, content)
        if self.way != "before":
            self.real_write(descriptor, content if self.way == "after" else content[: len(content) // 2])
        if self.way == "death":
            os._exit(9)
        raise OSError(5, "Input/output error")

    def save(self, state: Any) -> str:
        if not self.fails(state.path.name):
            answer: str = self.real_save(state)
            return answer
        if self.way == "after":
            self.real_save(state)
        if self.way == "death":
            os._exit(9)
        raise self.tools.RefusedError("Device or resource busy")


def count_writes(tools: ModuleType, act: Callable[[], object]) -> list[str]:
    faults = Faults(tools)
    with faults.active():
        act()
    return faults.seen


@pytest.mark.parametrize(
    "way", [pytest.param("before", marks=pytest.mark.proof), "half", pytest.param("after", marks=pytest.mark.proof)]
)
@pytest.mark.parametrize("name", [SERVERS[0], pytest.param(SERVERS[1], marks=pytest.mark.proof)])
def test_each_write_of_apply_fails_in_turn(
    server: Server, trees: ModuleType, tools: ModuleType, name: str, way: str
) -> None:
    host, document = server(name), trees.document(name)
    before = trees.snapshot(host.root)
    writes = count_writes(tools, lambda: settings.apply(host, document, "run"))
    settings.restore(host, "run")
    assert len(writes) > 30
    for at in range(1, len(writes) + 1):
        with Faults(tools, at, way).active(), pytest.raises((OSError, SettingsError)):
            settings.apply(host, document, "run")
        assert trees.snapshot(host.root) == before, f"write {at}: {writes[at - 1]}"
        assert settings.restore(host, "run")["failed"] == []
        assert trees.snapshot(host.root) == before, f"write {at}: {writes[at - 1]}"
        assert settings.show_journal(host)["outstanding"] == []


@pytest.mark.proof
@pytest.mark.parametrize("name", SERVERS)
def test_death_at_each_write_of_apply(server: Server, trees: ModuleType, tools: ModuleType, name: str) -> None:
    host, document = server(name), trees.document(name)
    before = trees.snapshot(host.root)
    writes = count_writes(tools, lambda: settings.apply(host, document, "run"))
    settings.restore(host, "run")
    for at in range(1, len(writes) + 1):
        child = os.fork()
        if child == 0:
            with Faults(tools, at, "death").active():
                settings.apply(host, document, "run")
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
        assert settings.restore(host, "run")["failed"] == []
        assert trees.snapshot(host.root) == before, f"write {at}: {writes[at - 1]}"


@pytest.mark.proof
@pytest.mark.parametrize("name", SERVERS)
def test_settings_that_cannot_be_restored_are_named_and_others_restored(
    server: Server, trees: ModuleType, tools: ModuleType, name: str
) -> None:
    """Each file and each tool's state in turn refuses every write from now on, until it is mended."""
    host, document = server(name), trees.document(name)
    before = trees.snapshot(host.root)
    settings.apply(host, document, "run")
    writes = count_writes(tools, lambda: settings.restore(host, "run"))
    for place in sorted({write for write in writes if "journal" not in write}):
        settings.apply(host, document, "run")
        with Faults(tools, cursed=place).active():
            failed = settings.restore(host, "run")["failed"]
        assert failed, place
        assert all(each["reason"] for each in failed)
        now = trees.snapshot(host.root)
        wrong = {path for path in before if now[path] != before[path]}
        assert {str(host.root / path) for path in wrong} in ({place}, {str(host.root / place)})
        assert settings.show_journal(host)["outstanding"]
        assert settings.restore(host, "run")["failed"] == []
        assert trees.snapshot(host.root) == before


PIECES = (
    {"dcqcn": {"eth2": {"T_us": 100, "cnp_prio": 5}}},
    {"dcqcn": {"eth2": {"T_us": 55, "g_code": 960}}},
    {"qos": {"eth2": {"trust": "dscp", "dscp26_prio": 3}}},
    {"qos": {"eth2": {"dscp26_prio": 5, "dscp10_prio": 1}}},
    {"qos": {"eth2": {"trust": "pcp"}}},
    {"qos": {"eth2": {"tc_schedule": "50,0,0,50,0,0,strict,0"}}},
    {"qos": {"eth2": {"prio_tc": "0,0,0,3,0,0,6,0"}}},
    {"qos": {"eth2": {"pfc": "0,0,0,1,0,0,0,0"}}},
    {"qos": {"eth2": {"buffer_size_bytes": "65536,65536,0,0,0,0,0,0", "cable_length_m": 5}}},
    {"link": {"eth2": {"speed_mbps": 25000, "pause_rx": 0}}},
    {"link": {"eth2": {"autoneg": 0}}},
    {"link": {"eth2": {"autoneg": 1}}},
    {"nv": {"eth2": {"T_us": 100, "ROCE_CC_PRIO_MASK_P1": 8}}},
    {"roce": {"eth2": {"traffic_class": 106, "mode": "RoCE v2"}}},
    {"irq": {"eth2": {"cpus": "0 1"}}, "cpu": {"governor": "performance"}},
    {"route": {"10.0.2.0/24": {"congctl": "reno"}}},
)
steps = st.lists(st.tuples(st.sampled_from("abc"), st.none() | st.sampled_from(PIECES)), max_size=10)


@pytest.fixture
def ofed(server: Server) -> Host:
    return server("connectx-5-ofed")


def test_owners_in_any_order_leave_a_server_as_they_found_it(ofed: Host, trees: ModuleType) -> None:
    before = trees.snapshot(ofed.root)

    @given(steps=steps)
    @example(steps=[("a", PIECES[2]), ("a", PIECES[4])])  # a map that came and went with trust
    @hypothesis_settings(max_examples=60)
    def check(steps: list[tuple[str, dict[str, Any] | None]]) -> None:
        for owner, document in steps:
            if document is None:
                settings.restore(ofed, owner)
            else:
                settings.apply(ofed, document, owner)
        for owner in "abc":
            assert settings.restore(ofed, owner)["failed"] == []
        assert trees.snapshot(ofed.root) == before
        assert settings.show_journal(ofed)["outstanding"] == []

    check()


names = st.sampled_from([*settings.KINDS, "eth2", "T_us", "g_code", "pfc", "trust"]) | st.text(max_size=5)
values = st.none() | st.booleans() | st.integers() | st.floats() | names | st.lists(st.integers(), max_size=2)
documents = st.recursive(values, lambda inner: st.dictionaries(names, inner, max_size=3), max_leaves=8)


@given(document=documents)
@hypothesis_settings(max_examples=500)
def test_any_document_is_settings_or_one_message(document: Any) -> None:
    with contextlib.suppress(SettingsError):
        settings.flatten(document)


SUBJECTS = ("app", "dcbx", "ets", "pfc", "buffer")


def eight(highest: int) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(0, highest), min_size=8, max_size=8)


@given(
    state=st.fixed_dictionaries(
        {
            "dcbx": st.sampled_from(["os", "fw"]),
            "dscp": st.dictionaries(st.integers(0, 63).map(str), st.integers(0, 7)),
            "prio2buffer": eight(7),
            "pfc": eight(1),
            "buffer_size": eight(10**6),
            "max_buffer_size": st.just(262016),
            "delay": st.integers(0, 65535),
            "prio_tc": eight(7),
            "schedule": st.lists(st.sampled_from(["strict", "vendor", "25"]), min_size=8, max_size=8),
        }
    )
)
@hypothesis_settings(max_examples=200)
def test_mlnx_qos_and_dcb_are_parsed_to_the_same_state(tools: ModuleType, state: dict[str, Any]) -> None:
    by_mlnx_qos = settings_qos.parse_mlnx_qos(tools.show_mlnx_qos(state, every=True))
    for three in (False, True):
        shown = [json.dumps(tools.show_dcb(state, each, three=three)) for each in SUBJECTS]
        assert settings_qos.parse_dcb(shown) == by_mlnx_qos


def test_every_code_of_the_nic_survives_its_unit() -> None:
    for unit in (settings_nic.ALPHA, settings_nic.COUNT):
        for code in range(1, 1024):
            value = unit.from_nic(code)
            assert unit.rule.accepts(value)
            assert unit.to_nic(float(value)) == code
