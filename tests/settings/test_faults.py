# SPDX-License-Identifier: Apache-2.0
"""Whatever write fails, or is the last before SIGKILL: `restore` brings back exactly what was there."""

import contextlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings as hypothesis_settings, strategies as st

from roundabout.settings import settings
from roundabout.settings.settings import Host, Value

pytestmark = pytest.mark.unit

NAMES = ("net.a.one", "net.a.two", "net.b.three")
FIRST = {"sysctl": dict(zip(NAMES, (10, 20, 30), strict=True))}
SECOND = {"sysctl": {"net.a.two": 21, "net.a.one": 11}}


def make_host(folder: Path) -> Host:
    """A host with nothing but sysctls, so that each write is a call of os.write in this process."""
    root = folder / "root"
    (root / "proc/sys/kernel/random").mkdir(parents=True)
    (root / "proc/sys/kernel/random/boot_id").write_text("b001\n")
    for number, name in enumerate(NAMES):
        path = root / "proc/sys" / name.replace(".", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{number}\n")
    return Host(root, folder / "state")


def snapshot(host: Host) -> dict[str, str]:
    return {name: (host.root / "proc/sys" / name.replace(".", "/")).read_text().strip() for name in NAMES}


class Faults:
    """Counts writes, and lets number `at` fail after half of its bytes."""

    def __init__(self, at: int, fail: Callable[[], None]) -> None:
        self.at, self.fail, self.count = at, fail, 0
        self.real_write = os.write

    def write(self, descriptor: int, content: bytes) -> int:
        self.count += 1
        if self.count == self.at:
            self.real_write(descriptor, content[: len(content) // 2])
            self.fail()
        return self.real_write(descriptor, content)


def disk_error() -> None:
    raise OSError(5, "Input/output error")


def die() -> None:
    os._exit(9)


def two_trials(host: Host) -> None:
    settings.apply(host, FIRST, "run")
    settings.apply(host, SECOND, "run")
    settings.restore(host, "run")


@pytest.fixture
def writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many writes two trials and their restore make."""
    faults = Faults(0, disk_error)
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", faults.write)
        two_trials(make_host(tmp_path / "count"))
    assert faults.count >= 10
    return faults.count


def test_an_error_at_each_write_in_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, writes: int) -> None:
    for at in range(1, writes + 1):
        host = make_host(tmp_path / str(at))
        before = snapshot(host)
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", Faults(at, disk_error).write)
            # An error while restoring is not even noticed: what failed with others is tried again alone.
            with contextlib.suppress(OSError, settings.SettingsError):
                two_trials(host)
        settings.restore(host, "run")
        assert snapshot(host) == before, f"after an error at write {at}"
        assert settings.show_journal(host)["outstanding"] == []


def test_death_at_each_write_in_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, writes: int) -> None:
    for at in range(1, writes + 1):
        host = make_host(tmp_path / str(at))
        before = snapshot(host)
        child = os.fork()
        if child == 0:
            os.write = Faults(at, die).write  # type: ignore[assignment]
            two_trials(host)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
        settings.restore(host, "run")
        assert snapshot(host) == before, f"after death at write {at}"
        assert settings.show_journal(host)["outstanding"] == []


OWNERS = ("a", "b", "c")
documents = st.dictionaries(st.sampled_from(NAMES), st.integers(0, 5), min_size=1)
steps = st.lists(st.tuples(st.sampled_from(OWNERS), st.none() | documents), max_size=12)


@given(steps=steps)
@hypothesis_settings(max_examples=60)
def test_owners_in_any_order_leave_what_they_found(
    steps: list[tuple[str, dict[str, Value] | None]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    host = make_host(tmp_path_factory.mktemp("host"))
    before = snapshot(host)
    for owner, document in steps:
        if document is None:
            settings.restore(host, owner)
        else:
            assert settings.apply(host, {"sysctl": document}, owner)["differs"] == []
    for owner in OWNERS:
        settings.restore(host, owner)
    assert snapshot(host) == before
    assert (host.state / "journal.jsonl").read_bytes() == b""
