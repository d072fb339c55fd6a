# SPDX-License-Identifier: Apache-2.0
"""doctor's question to a rack's hosts: on a machine with nothing, and on one with all."""

import subprocess
from pathlib import Path

import pytest

from roundabout.cli import doctor
from roundabout.testbeds.rack.examine import SCRIPT, arguments, parse
from roundabout.testbeds.rack.inventory import read_inventory


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
    for name in ("sys/kernel/btf/vmlinux", "sys/class/net/ens1f0np0/device/infiniband/mlx5_0/x", "etc/shadow",
                 "sys/kernel/config/rdma_cm/x", "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
                 "sys/kernel/debug/mlx5/0000:3b:00.0/cc_params/x"):  # fmt: skip
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    (root / "etc/os-release").write_text("ID=ubuntu\nVERSION_ID=22.04\n")
    tools.mkdir()
    others = ("python3", "apt-get", "systemctl", "chronyc", "dcb", "nvidia-smi")
    for name in ("ip", "ethtool", "tcpdump", "iperf3", *others):
        (tools / name).write_text("#!/bin/sh\n")
        (tools / name).chmod(0o755)
    done = ask(inventory_file, root, str(tools))
    assert (done.returncode, done.stderr) == (0, "")
    assert [each for each in parse(done.stdout) if not each.good] == []


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
    checks = list(doctor.examine_rack(inventory_file))
    assert [check.name for check in checks[:2]] == ["s0 ssh", "s1 ssh"]
    assert all("must work without a question" in doctor.render(check) for check in checks)
