# SPDX-License-Identifier: Apache-2.0
"""Systems of servers: names of packages for each family, and what the package managers are called with.

Programs that stand for rpm and zypper record their arguments. rpm answers as rpm 4.18 does: a line for each name. The
names were held against rdma-core's redhat and suse spec files, and the spec files of perftest and mstflint.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from roundabout.runner.hosts.playbooks import PLAYBOOKS

pytestmark = pytest.mark.unit

VARIABLES = PLAYBOOKS / "vars"
OF_THE_SITE = {"ofed_info", "mlnx_qos", "nvidia-smi"}
RPM = """
shift 2
for each; do case $each in iproute2 | tar) echo "$each-1-1.noarch" ;; *) echo "no package provides $each" ;; esac; done
exit 4
"""
PLAYS = """
- hosts: suse
  gather_facts: false
  vars_files: [VARS/systems/Suse.yml, VARS/server_programs.yml]
  tasks:
    - ansible.builtin.include_role: {name: base}
- hosts: redhat
  gather_facts: false
  vars_files: [VARS/systems/RedHat.yml]
  tasks:
    - ansible.builtin.include_role: {name: packages, tasks_from: rpm}
      vars: {packages_names: [tar, iproute]}
    - ansible.builtin.assert: {that: "packages_missing == ['iproute'] and system_manager == 'dnf'"}
- hosts: bare
  gather_facts: false
  vars_files: [VARS/systems/RedHat.yml, VARS/server_programs.yml]
  tasks:
    - ansible.builtin.include_role: {name: base}
    - block:
        - ansible.builtin.include_role: {name: base, tasks_from: programs}
      rescue:
        - ansible.builtin.copy: {dest: FOLDER/refusal, content: "{{ ansible_failed_result.msg }}", mode: "0600"}
"""


def variables(name: str) -> Any:
    return yaml.safe_load((VARIABLES / f"{name}.yml").read_text())


@pytest.mark.parametrize("family", sorted(path.stem for path in (VARIABLES / "systems").glob("*.yml")))
def test_each_program_has_a_package_in_each_family(family: str) -> None:
    programs = variables("server_programs")["server_programs"]
    chosen = [*programs["hosts"]]
    for choice in ("clock", "driver", "gpu"):
        chosen += [name for names in programs[choice].values() for name in names]
    system = variables(f"systems/{family}")
    assert set(chosen) - OF_THE_SITE == system["system_packages"].keys()
    assert system.keys() == variables("systems/Debian").keys()


def test_packages_are_requested_by_the_systems_own_names(tmp_path: Path) -> None:
    """A server without package mirrors installs nothing: what it lacks is named with its packages."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name, script in {"rpm": RPM, "zypper": f'echo "$@" >> {tmp_path}/zypper'}.items():
        (tools / name).write_text(f"#!/bin/sh\n{script}")
        (tools / name).chmod(0o755)
    for name in ("sh", "id", "tar", "ip"):
        (tools / name).symlink_to(f"/bin/{name}")
    inventory = {
        "ansible_connection": "local",
        "ansible_python_interpreter": sys.executable,
        "base_clock": "leave",
        "nic_driver_wanted": "inbox",
        "gpu_policy": "none",
    }
    hosts = {"suse": {}, "redhat": {}, "bare": {"packages_install": False}}
    (tmp_path / "inventory.json").write_text(json.dumps({"all": {"hosts": hosts, "vars": inventory}}))
    plays = PLAYS.replace("VARS", str(VARIABLES)).replace("FOLDER", str(tmp_path))
    (tmp_path / "plays.yml").write_text(plays.replace("  tasks:", f"  environment: {{PATH: {tools}}}\n  tasks:"))
    command = [str(Path(sys.executable).with_name("ansible-playbook")), "-i", str(tmp_path / "inventory.json")]
    own = {"ANSIBLE_CONFIG": str(PLAYBOOKS / "ansible.cfg"), "LC_ALL": "C.UTF-8"}
    done = subprocess.run([*command, str(tmp_path / "plays.yml")], capture_output=True, text=True, env=os.environ | own)
    assert done.returncode == 0, done.stdout
    assert (tmp_path / "zypper").read_text().splitlines() == [
        "--non-interactive install --no-recommends python3 ethtool tcpdump iperf iputils"
    ]
    assert (tmp_path / "refusal").read_text() == (
        "not found: python3, ethtool, tcpdump, iperf3, ping, modprobe, dcb, mstconfig "
        "(packages python3 ethtool tcpdump iperf3 iputils kmod iproute mstflint), expected in PATH with --no-packages: "
        "install them by the site's own means; nothing was changed"
    )
