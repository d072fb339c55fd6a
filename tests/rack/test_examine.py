# SPDX-License-Identifier: Apache-2.0
"""doctor's question to a rack's hosts: on a machine with nothing, and on one with all."""

import os
import subprocess
from pathlib import Path

import pytest

from roundabout.cli.doctor import render
from roundabout.testbeds.rack.examine import SCRIPT, arguments, examine, parse
from roundabout.testbeds.rack.facility import RackFacility
from roundabout.testbeds.rack.inventory import read_inventory

PCI = "0000:3b:00.0"


def furnish(root: Path) -> None:
    """All files of an Ubuntu server with a ConnectX NIC and the inbox driver."""
    device = root / "sys/devices" / PCI
    debugfs = root / "sys/kernel/debug/mlx5" / PCI / "cc_params"
    for path in (device / "infiniband/mlx5_0", root / "sys/class/net/ens1f0np0", debugfs, root / "etc"):
        path.mkdir(parents=True)
    for name in ("sys/kernel/config/rdma_cm", "sys/kernel/btf", "sys/devices/system/cpu/cpu0/cpufreq"):
        (root / name).mkdir(parents=True)
    (root / "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").touch()
    (root / "sys/class/net/ens1f0np0/device").symlink_to(device)
    (root / "sys/kernel/btf/vmlinux").touch()
    (root / "etc/shadow").touch()
    (root / "etc/os-release").write_text("ID=ubuntu\nVERSION_ID=22.04\n")


def add_tool(path: Path, script: str = "") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def ask(inventory_file: Path, root: Path, path: str) -> subprocess.CompletedProcess[str]:
    inventory = read_inventory(inventory_file)
    words = arguments(inventory, inventory.servers["s0"], str(root))
    command = ["/bin/sh", "-s", "--", *words]
    return subprocess.run(command, input=SCRIPT, capture_output=True, text=True, env={"PATH": path})


@pytest.mark.parametrize("driver", ["ofed", "inbox"])
def test_a_machine_with_nothing(inventory_file: Path, tmp_path: Path, driver: str) -> None:
    inventory_file.write_text(inventory_file.read_text().replace("driver: inbox", f"driver: {driver}"))
    (tmp_path / "nothing").mkdir()
    done = ask(inventory_file, tmp_path / "nothing", "/nowhere")
    assert (done.returncode, done.stderr) == (0, "")
    findings = list(parse(done.stdout))
    names = {each.name for each in findings}
    assert {"system", "root", "python3", "ethtool", "CPU governor", "NIC ens1f0np0", "RDMA device", "DCQCN"} <= names
    assert "nvidia-smi" in names
    assert not any(each.good for each in findings)
    assert all(each.found and each.mend for each in findings)
    assert not list((tmp_path / "nothing").iterdir())


def test_a_machine_with_all(inventory_file: Path, tmp_path: Path) -> None:
    root, tools = tmp_path / "root", tmp_path / "tools"
    furnish(root)
    for name in ("python3", "apt-get", "ip", "tcpdump", "iperf3", "systemctl", "nvidia-smi"):
        add_tool(tools / name)
    for name in ("ethtool", "chronyc", "dcb"):
        add_tool(root / "usr/sbin" / name)  # which is not on the path of who is not root
    done = ask(inventory_file, root, str(tools))
    assert (done.returncode, done.stderr) == (0, "")
    assert [each for each in parse(done.stdout) if not each.good] == []


def test_another_nics_dcqcn_is_not_this_ones(inventory_file: Path, tmp_path: Path) -> None:
    furnish(tmp_path)
    debugfs = tmp_path / "sys/kernel/debug/mlx5"
    (debugfs / PCI).rename(debugfs / "0000:af:00.0")
    (found,) = (each for each in parse(ask(inventory_file, tmp_path, "/nowhere").stdout) if each.name == "DCQCN")
    assert (found.good, found.found) == (False, f"no /sys/kernel/debug/mlx5/{PCI}/cc_params")


@pytest.mark.parametrize("may_be_root", [True, False])
def test_hosts_are_asked_as_root_where_their_user_may_be(
    inventory_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, may_be_root: bool
) -> None:
    """ssh and sudo are stand-ins; so is the login's banner."""
    add_tool(tmp_path / "ssh", 'shift 8; echo "Welcome\tto $1"; shift; eval "$*"')
    add_tool(tmp_path / "sudo", 'shift; AS_ROOT=1 exec "$@"' if may_be_root else "exit 1")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr("roundabout.testbeds.rack.examine.SCRIPT", 'printf "%s\t%s\t$1,$2,$AS_ROOT\t\n" root yes')
    found = examine(read_inventory(inventory_file))["s0"]
    assert [each.name for each in found] == ["ssh", "root"]
    assert found[1].found == f",ens1f0np0,{1 if may_be_root else ''}"


@pytest.mark.parametrize(("system", "good"), [
    ("ubuntu 18.04", False), ("ubuntu 20.04", True), ("ubuntu 24.04", True), ("debian 10", False), ("debian 12", True),
    ("rhel 9.4", False),
])  # fmt: skip
def test_supported_systems(inventory_file: Path, tmp_path: Path, system: str, good: bool) -> None:
    name, version = system.split()
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/os-release").write_text(f'ID={name}\nVERSION_ID="{version}"\n')
    (found,) = (each for each in parse(ask(inventory_file, tmp_path, "/nowhere").stdout) if each.name == "system")
    assert found.good is good


def test_a_host_that_does_not_answer_is_one_line(inventory_file: Path) -> None:
    config = inventory_file.with_name("ssh_config")
    config.write_text("Host *\n  ProxyCommand false\n")
    text = inventory_file.read_text()
    inventory_file.write_text(text.replace("vars:", f"vars:\n    ssh_config: {config}", 1))
    checks = list(RackFacility(inventory_file).checks())
    assert [check.name for check in checks[:2]] == ["s0 ssh", "s1 ssh"]
    assert all("must work without a question" in render(check) for check in checks)
