# SPDX-License-Identifier: Apache-2.0
"""Failures of some machines do not hide the others: each playbook lists every server and switch as done or not done."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from roundabout.runner.hosts import playbooks
from roundabout.runner.hosts.playbooks import Playbook, ProvisionError, run_playbook
from tests.ansible.switches import FAKE, facts

pytestmark = pytest.mark.unit

OFF = {"ansible_connection": "ssh", "ansible_ssh_common_args": "-o ProxyCommand=false -o BatchMode=yes"}
SWITCHES = ("tor0", "tor1")


class Rack:
    """Two servers made of files, and two fake switches with SONiC."""

    def __init__(self, servers: Any, folder: Path) -> None:
        self.groups = json.loads(servers.inventory.read_text())["all"]["children"]
        self.servers, self.roots = self.groups["stand_ins"]["hosts"], servers.roots
        self.switches = self.groups["switches"]["hosts"]
        for name in SWITCHES:
            said = [*FAKE, str(folder / name / "sonic")]
            self.switches[name] = facts("sonic", folder) | {"switches_ssh": said}
        self.inventory = folder / "rack.json"

    def turn_off(self, *servers: str) -> None:
        for name in servers:
            self.servers[name] |= OFF

    def break_journal(self, *servers: str) -> None:
        for name in servers:
            journal = Path(self.servers[name]["roundabout_state"]) / "journal.jsonl"
            journal.parent.mkdir(exist_ok=True)
            journal.write_text("no JSON\n")

    def silence(self, *switches: str) -> None:
        for name in switches:
            self.switches[name]["switches_ssh"] = [sys.executable, "-c", "import sys; sys.exit('no route to host')"]

    def failures(self, playbook: Playbook) -> dict[str, str]:
        """Run a playbook. Return the reason for each machine that is not done."""
        self.inventory.write_text(json.dumps({"all": {"children": self.groups}}))
        try:
            run_playbook(playbook, [self.inventory])
        except ProvisionError as error:
            failed = error
        else:
            return {}
        done = [name for name in (*self.servers, *self.switches) if name not in failed.failures]
        assert str(failed.hint).splitlines()[-1] == f"done: {', '.join(sorted(done)) or 'none'}"
        return dict(failed.failures)


@pytest.fixture
def rack(servers: Any, tmp_path: Path) -> Rack:
    rack = Rack(servers, tmp_path)
    for name in SWITCHES:
        subprocess.run([*rack.switches[name]["switches_ssh"], "--minutes", "0"], check=True)
    return rack


RECAP = """
PLAY RECAP ****
localhost  : ok=1    changed=0    unreachable=0    failed=0    skipped=0    rescued=0    ignored=0
s0         : ok=5    changed=1    unreachable=0    failed=0    skipped=0    rescued=0    ignored=1
s1         : ok=6    changed=1    unreachable=0    failed=0    skipped=0    rescued=0    ignored=0
"""


def test_a_connection_that_was_lost_for_a_task_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(playbooks, "run_ansible", lambda *_arguments: (0, RECAP))
    with pytest.raises(ProvisionError) as error:
        run_playbook("rollback", [tmp_path])
    assert error.value.failures.keys() == {"s0"}
    assert "the connection was lost" in error.value.failures["s0"]


FIRST, SECOND = "connectx-5-ofed", "connectx-5-inbox"


def test_one_server_off_one_journal_broken_one_switch_silent(rack: Rack) -> None:
    assert rack.failures("site") == {}
    rack.turn_off(FIRST)
    rack.break_journal(SECOND)
    rack.silence("tor0")
    failures = rack.failures("rollback")
    assert failures[FIRST].startswith("unreachable: ")
    assert "journal.jsonl: line 1 is not JSON" in failures[SECOND]
    assert failures["tor0"] == "switch tor0, rollback: no route to host (exit status 1)"
    assert failures.keys() == {FIRST, SECOND, "tor0"}
    assert rack.failures("verify").keys() == {FIRST, "tor0", "tor1"}  # tor1 was rolled back


@pytest.mark.proof
def test_all_servers_off(rack: Rack) -> None:
    assert rack.failures("site") == {}
    rack.turn_off(FIRST, SECOND)
    assert rack.failures("verify").keys() == {FIRST, SECOND}
    assert rack.failures("rollback").keys() == {FIRST, SECOND}
    assert "differs" in rack.failures("verify")["tor0"]
    assert rack.failures("site").keys() == {FIRST, SECOND}
    assert rack.failures("verify").keys() == {FIRST, SECOND}


@pytest.mark.proof
def test_all_switches_fail(rack: Rack) -> None:
    rack.silence(*SWITCHES)
    for playbook in ("site", "verify", "rollback"):
        assert rack.failures(playbook).keys() == set(SWITCHES)


@pytest.mark.proof
def test_a_failure_on_the_first_server_leaves_the_others_as_they_are(rack: Rack) -> None:
    tool = rack.roots[FIRST] / "bin/mlnx_qos"
    tool.write_text("#!/bin/sh\necho 'mlnx_qos: broken' >&2\nexit 1\n")
    failures = rack.failures("site")
    assert failures[SECOND] == f"not begun, because {FIRST} failed, which is changed first"
    assert "mlnx_qos: broken" in failures[FIRST]
    assert failures.keys() == {FIRST, SECOND}


@pytest.mark.proof
def test_a_drifted_server_is_listed_with_its_settings(rack: Rack) -> None:
    assert rack.failures("site") == {}
    (rack.roots[FIRST] / "sys/class/net/eth2/ecn/roce_rp/rpg_time_reset").write_text("300\n")
    assert rack.failures("verify") == {
        FIRST: "programs that differ: none; settings that differ: dcqcn eth2 T_us",
    }
