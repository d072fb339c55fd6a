# SPDX-License-Identifier: Apache-2.0
"""Settings of a rack in an acceptance: each server or switch that differs or cannot be read has a verdict."""

from pathlib import Path
from typing import Any

import pytest

from roundabout.checks.acceptance.rack import settings_verdicts
from roundabout.checks.check import Verdict
from roundabout.runner.hosts.playbooks import ProvisionError

pytestmark = pytest.mark.unit

AS_PROVISIONED: dict[str, Any] = {"programs": [], "settings": []}
DIFFERS = {"programs": [], "settings": [{"setting": "link roce0 mtu", "expected": 4200, "found": 1500}]}
NO_RDMA = "error: roce roce0: found no RDMA device of this interface"


def refuse(monkeypatch: pytest.MonkeyPatch, reports: dict[str, Any], failures: dict[str, str]) -> None:
    def read(*_: object) -> None:
        raise ProvisionError("not done", None, reports, failures)

    monkeypatch.setattr("roundabout.checks.acceptance.rack.run_playbook", read)


@pytest.mark.parametrize("other", [AS_PROVISIONED, DIFFERS])
def test_a_server_that_cannot_be_read_fails_beside_those_that_differ(
    monkeypatch: pytest.MonkeyPatch, other: dict[str, Any]
) -> None:
    failures = {"s1": NO_RDMA} | ({"s0": "settings that differ: link roce0 mtu"} if other is DIFFERS else {})
    refuse(monkeypatch, {"s0": other}, failures)
    found = settings_verdicts(Path("inventory"))
    assert Verdict("s1", "settings", f"not read: {NO_RDMA}", "as provisioned", "fail") in found
    assert [each.name for each in found if each.of == "s0"] == ["link roce0 mtu"] * (other is DIFFERS)


def test_an_acceptance_ends_where_no_settings_can_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    refuse(monkeypatch, {}, {"s0": "unreachable"})
    with pytest.raises(ProvisionError):
        settings_verdicts(Path("inventory"))
