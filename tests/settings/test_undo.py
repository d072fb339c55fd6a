# SPDX-License-Identifier: Apache-2.0
"""A change that is not confirmed, or that fails, is undone."""

import json
import subprocess
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from roundabout.settings import settings
from roundabout.settings.settings_host import Host, SettingsError

pytestmark = pytest.mark.unit

Server = Callable[[str], Host]
MTU = {"link": {"eth2": {"mtu": 9000}}}
TIMER = "roundabout-undo-provision.timer"


def timers(host: Host) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((host.root / "systemd").read_text())
    return found


@pytest.fixture
def host(server: Server, trees: ModuleType) -> Host:
    """A server that systemd runs."""
    host = server("connectx-5-ofed")
    trees.add_tools(host.root, "systemd-run", "systemctl")
    trees.write(host.root, {"systemd": "{}"})
    (host.root / "run/systemd/system").mkdir(parents=True)
    return host


def test_a_confirmed_change_stays(host: Host) -> None:
    assert settings.apply(host, MTU, "provision", 300)["undo_after_s"] == 300
    assert timers(host)[TIMER]["after"] == "--on-active=300s"
    assert settings.confirm(host, "provision") == {"confirmed": "provision"}
    assert timers(host) == {}
    assert settings.read(host, MTU)["differs"] == []


def test_the_timer_restores_what_was_found_and_confirming_is_too_late(host: Host, trees: ModuleType) -> None:
    before = trees.snapshot(host.root)
    settings.apply(host, MTU, "provision", 300)
    command = timers(host)[TIMER]["command"]
    (host.root / "systemd").write_text("{}\n")  # elapsed, and not loaded any more
    subprocess.run(command, check=True)
    assert trees.snapshot(host.root) == before
    with pytest.raises(SettingsError, match="too late: no change of provision waits"):
        settings.confirm(host, "provision")


def test_the_timer_starts_before_the_first_write(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr(settings, "write_all", lambda host, _writes: seen.append(list(timers(host))))
    settings.apply(host, MTU, "provision", 300)
    assert seen == [[TIMER]]


def test_a_change_that_was_not_confirmed_waits_again_after_a_second_apply(host: Host) -> None:
    settings.apply(host, MTU, "provision", 300)
    again = settings.apply(host, MTU, "provision", 200)
    assert (again["changed"], again["undo_after_s"]) == ([], 200)
    assert timers(host)[TIMER]["after"] == "--on-active=200s"
    settings.confirm(host, "provision")
    assert settings.apply(host, MTU, "provision", 300)["undo_after_s"] is None
    assert timers(host) == {}


def test_a_failed_apply_leaves_no_timer_and_nothing_written(host: Host, trees: ModuleType) -> None:
    before = trees.snapshot(host.root)
    document = {**MTU, "route": {"10.0.2.0/24": {"congctl": "nothing"}}}
    with pytest.raises(SettingsError, match="Invalid argument; what was written is restored$"):
        settings.apply(host, document, "provision", 300)
    assert trees.snapshot(host.root) == before
    assert settings.show_journal(host)["outstanding"] == []


def test_a_failed_apply_goes_back_to_the_apply_before_it(host: Host) -> None:
    t_us = {"dcqcn": {"eth2": {"T_us": 100}}}
    settings.apply(host, t_us, "run")
    with pytest.raises(SettingsError):
        settings.apply(host, {"dcqcn": {"eth2": {"T_us": 55}}, "route": {"10.0.2.0/24": {"congctl": "nothing"}}}, "run")
    assert settings.read(host, t_us)["differs"] == []
    assert settings.drifted(host) == {"differs": []}
    assert settings.restore(host, "run")["overridden"] == []
    assert settings.read(host, {"dcqcn": {"eth2": {"T_us": 300}}})["differs"] == []


def test_without_systemd_there_is_no_timer(host: Host) -> None:
    (host.root / "run/systemd/system").rmdir()
    assert settings.apply(host, MTU, "provision", 300)["undo_after_s"] is None
    assert timers(host) == {}


def test_a_journal_that_cannot_be_written_starts_no_timer(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.apply(host, MTU, "provision", 300)
    settings.confirm(host, "provision")

    def fail(*_arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(settings.Journal, "append", fail)
    with pytest.raises(OSError, match="No space left"):
        settings.apply(host, {"link": {"eth2": {"mtu": 4200}}}, "provision", 300)
    assert timers(host) == {}
    assert settings.read(host, MTU)["differs"] == []
