# SPDX-License-Identifier: Apache-2.0
"""The playbooks on servers made of files: applied, checked, drifted, rolled back."""

import json
from typing import Any

import pytest

from roundabout.cli.rack.rollback import show_exceptions as show_rollback
from roundabout.cli.rack.verify import find_drift, show_drift
from roundabout.runner.hosts import playbooks
from tests.ansible.conftest import TREES

pytestmark = pytest.mark.unit

OURS = ("etc/", "bin/")


def found(servers: Any) -> dict[str, Any]:
    """All that NICs and the kernel have, without what we deploy."""
    return {
        name: {path: value for path, value in tree.items() if not path.startswith(OURS)}
        for name, tree in servers.snapshot().items()
    }


@pytest.mark.proof
def test_apply_again_check_and_roll_back(rails: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """On a server with two NICs."""
    before, root = found(rails), rails.roots["connectx-5-ofed"]
    checked = playbooks.run_playbook("site", [rails.inventory], check=True)
    assert min(checked.changed.values()) > 0
    assert found(rails) == before
    playbooks.run_playbook("site", [rails.inventory])
    for nic in ("eth2", "eth3"):
        assert (root / f"sys/class/net/{nic}/ecn/roce_rp/rpg_time_reset").read_text() == "100\n"
    again = playbooks.run_playbook("site", [rails.inventory])
    assert set(again.changed.values()) == {0}
    unit = (root / "etc/systemd/system/roundabout-settings@.service").read_text()
    assert "StandardInput=file:/etc/roundabout/settings/%i.json" in unit
    for nic in ("eth2", "eth3"):
        rule = (root / f"etc/udev/rules.d/90-roundabout-{nic}.rules").read_text()
        assert f'KERNEL=="{nic}", TAG+="systemd", ENV{{SYSTEMD_WANTS}}+="roundabout-settings@{nic}.service"' in rule
        document = json.loads((root / f"etc/roundabout/settings/{nic}.json").read_text())
        assert document["dcqcn"][nic]["T_us"] == 100
        assert list(document["link"]) == [nic]

    (root / "sys/class/net/eth3/ecn/roce_rp/rpg_time_reset").write_text("300\n")
    with pytest.raises(playbooks.ProvisionError) as error:
        playbooks.run_playbook("verify", [rails.inventory])
    drift = list(find_drift(error.value.reports))
    assert drift == [("connectx-5-ofed", "dcqcn eth3 T_us", "100", "300")]
    show_drift(drift, error.value.reports)
    assert "dcqcn eth3 T_us" in capsys.readouterr().out

    undone = playbooks.run_playbook("rollback", [rails.inventory])
    assert found(rails) == before
    assert not list(root.glob("etc/*/*/*roundabout*"))
    assert not list(root.glob("etc/roundabout/settings/*"))
    assert set(undone.reports) == set(rails.roots)


@pytest.mark.proof
def test_a_change_is_confirmed_over_a_new_connection(server: Any) -> None:
    root = server.roots["connectx-5-ofed"]
    TREES.add_tools(root, "systemd-run", "systemctl")
    TREES.write(root, {"systemd": "{}", "run/systemd/system/.keep": ""})
    inventory = json.loads(server.inventory.read_text())
    inventory["all"]["vars"] = {"settings_undo_after_s": 300}
    server.inventory.write_text(json.dumps(inventory))
    playbooks.run_playbook("site", [server.inventory])
    assert json.loads((root / "systemd").read_text()) == {}
    assert json.loads((root / "link-eth2").read_text())["mtu"] == 9000
    # A timer that has elapsed cannot be confirmed, and nothing is written for the next boot.
    playbooks.run_playbook("rollback", [server.inventory])
    (root / "bin/systemd-run").write_text("#!/bin/sh\n")
    with pytest.raises(playbooks.ProvisionError):
        playbooks.run_playbook("site", [server.inventory])
    assert not list(root.glob("etc/systemd/system/*"))


@pytest.mark.proof
def test_rollback_names_what_it_could_not_restore(servers: Any, capsys: pytest.CaptureFixture[str]) -> None:
    playbooks.run_playbook("site", [servers.inventory])
    tool = servers.roots["connectx-5-ofed"] / "bin/mlnx_qos"
    tool.write_text("#!/bin/sh\necho 'mlnx_qos: broken' >&2\nexit 1\n")
    with pytest.raises(playbooks.ProvisionError) as error:
        playbooks.run_playbook("rollback", [servers.inventory])
    failed = [each["setting"] for each in error.value.reports["connectx-5-ofed"]["not_restored"]]
    assert failed
    assert all(setting.startswith("qos eth2 ") for setting in failed)
    assert error.value.reports["connectx-5-inbox"]["changed"]
    show_rollback(error.value.reports)
    assert "NOT restored" in capsys.readouterr().out


@pytest.mark.proof
def test_before_anything_is_deployed(server: Any) -> None:
    assert set(playbooks.run_playbook("rollback", [server.inventory]).changed.values()) == {0}
    with pytest.raises(playbooks.ProvisionError):
        playbooks.run_playbook("verify", [server.inventory])


def test_hosts_with_the_same_drift_share_a_row(capsys: pytest.CaptureFixture[str]) -> None:
    everywhere = [(host, "mtu", "4200", "1500") for host in ("s0", "s1")]
    apart = [(host, "configuration", "as rendered", "differs") for host in ("tor0", "tor1")]
    show_drift([*everywhere, ("s0", "governor", "performance", "schedutil"), *apart], ["s0", "s1"])
    _, *rows = capsys.readouterr().out.splitlines()
    assert [row.split("  ")[0] for row in rows] == ["all 2 hosts", "s0", "tor0, tor1"]
