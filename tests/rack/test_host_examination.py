# SPDX-License-Identifier: Apache-2.0
"""doctor's question to a rack's hosts: on a machine with nothing, and on one with all."""

import os
import subprocess
from pathlib import Path

import pytest

from roundabout.cli.tools.doctor import fold_hosts, format_check
from roundabout.runner.testbed import Check
from roundabout.testbeds.rack.examination import SCRIPT, examine_hosts, glibc_needed, parse, script_arguments
from roundabout.testbeds.rack.inventory import read_inventory
from roundabout.testbeds.rack.provider import RackProvider
from roundabout.testbeds.rack.rack import common_capabilities
from tests.rack.examined_hosts import (
    CASES,
    GPU,
    NV,
    PCI,
    add_all,
    add_ethtool,
    add_new_nic,
    add_pci,
    add_tool,
    examine,
    furnish,
)

pytestmark = pytest.mark.unit

TCPDUMP_D = Path(__file__).parents[1] / "cases/rack/tcpdump-D-debian-12.txt"  # of a libpcap without RDMA support
ROUTES = (
    'case "$*" in *0.0.0.1) echo "$4 via 10.10.0.254 dev bond0";; *) echo "2: ens1f0np0    inet 10.10.0.1/24";; esac'
)
MOUNT = "10.0.2.9:/export /data nfs4 rw,clientaddr=10.10.0.1,addr=0.0.0.1 0 0"
ON_P2 = NV.format("True(1)").replace("_P1", "_P2")


@pytest.mark.parametrize("driver", ["ofed", "inbox"])
def test_a_machine_with_nothing(inventory_file: Path, tmp_path: Path, driver: str) -> None:
    inventory_file.write_text(inventory_file.read_text().replace("driver: inbox", f"driver: {driver}"))
    (tmp_path / "nothing").mkdir()
    done = examine(inventory_file, tmp_path / "nothing", "/nowhere")
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
    add_all(tools)
    add_ethtool(root / "usr/sbin/ethtool")
    for name in ("chronyc", "dcb"):
        add_tool(root / "usr/sbin" / name)  # which is not on the path of who is not root
    done = examine(inventory_file, root, str(tools))
    assert (done.returncode, done.stderr) == (0, "")
    assert [each for each in parse(done.stdout) if not each.good] == []
    assert (tmp_path / "pinged").read_text().split().count("1472") == 11  # the others of twelve; of an MTU of 1500


def test_a_run_queries_capabilities_alone(inventory_file: Path, tmp_path: Path) -> None:
    """It neither pings the other servers, nor runs tools that can take seconds."""
    root, tools = tmp_path / "root", tmp_path / "tools"
    furnish(root)
    add_all(tools)
    add_tool(tools / "dcb")
    for slow in ("nvidia-smi", "tcpdump", "mstconfig", "ethtool", "nmcli", "netplan", "setpci"):
        add_tool(tools / slow, f"echo {slow} >> {tmp_path}/pinged")
    inventory = read_inventory(inventory_file)
    words = script_arguments(inventory, inventory.nics["s0"], str(root), "capabilities")
    command = ["/bin/sh", "-s", "--", *words]
    done = subprocess.run(command, input=SCRIPT, capture_output=True, text=True, env={"PATH": str(tools)})
    assert (done.returncode, done.stderr) == (0, "")
    assert common_capabilities({"s0": list(parse(done.stdout))}) == {"own clock", "rdma", "pfc", "priorities"}
    assert not (tmp_path / "pinged").exists()


DEVICE = "sys/class/net/ens1f0np0/device"
NMCLI = "case $3 in device) echo 0f7 ;; connection) [ $5 != 0f7 ] || echo {} ;; esac"
MISSING = [
    (
        "NIC for data",
        "ens1f0np0 carries the default route, the file system /data",
        {"proc/mounts": MOUNT, "sys/class/net/bond0/lower_ens1f0np0": ""},
        {"ip": ROUTES},
    ),
    ("path MTU", "no answer to 1500 bytes from 10.10.0.3", {}, {"ping": 'case "$*" in *.3) exit 1;; esac'}),
    ("address", "not 10.10.0.1", {}, {"ip": "echo 2: ens1f0np0 inet 10.10.0.11/24"}),
    ("GID", "none is 10.10.0.1 by", {"sys/class/infiniband/mlx5_0/ports/1/gid_attrs/types/2": "IB/RoCE v1"}, {}),
    ("firmware's DCBX", "on and willing", {}, {"mstconfig": f"echo '{NV.format('True(1)')}'"}),
    ("irqbalance", "runs", {"proc/77/comm": "irqbalance"}, {}),
    ("NIC ens1f0np0", "a VLAN", {"sys/class/net/ens1f0np0/uevent": "DEVTYPE=vlan\nINTERFACE=ens1f0np0"}, {}),
    ("NIC ens1f0np0", "a bond", {"sys/class/net/ens1f0np0/bonding": ""}, {}),
    ("NIC ens1f0np0", "a port of a bond", {"sys/class/net/ens1f0np0/master": ""}, {}),
    ("NIC ens1f0np0", "a virtual function", {"sys/class/net/ens1f0np0/device/physfn": ""}, {}),
    ("NIC ens1f0np0", "a virtual function", {f"{DEVICE}/device": "0x1018"}, {}),  # of a ConnectX-5, in a guest
    ("GPUDirect IOMMU", f"translates {PCI} (DMA-FQ)",
     {"sys/class/net/ens1f0np0/device/iommu_group/type": "DMA-FQ"}, {}),
    ("GPUDirect ACS", "redirects at 0000:41:00.0 0000:41:01.0",
     {}, {"setpci": 'case $2 in *:41:*) echo 001d;; *:40:*) echo 0001;; *) exit 1;; esac'}),
    ("RDMA capture", "tcpdump does not list mlx5_0", {}, {"tcpdump": f"/bin/cat {TCPDUMP_D}"}),
    ("PCIe link", "x8 at 16.0 GT/s PCIe; the NIC can x16 at", {f"{DEVICE}/current_link_width": "8"}, {}),
    ("PCIe link", "x16 at 8.0 GT/s PCIe; the", {f"{DEVICE}/current_link_speed": "8.0 GT/s PCIe"}, {}),
    ("carrier changes", "37 since the driver", {"sys/class/net/ens1f0np0/carrier_changes": "37"}, {}),
    ("kernel lockdown", "integrity: closes debugfs",
     {"sys/kernel/security/lockdown": "none [integrity] confidentiality"}, {}),
    ("kernel lockdown", "confidentiality: closes debugfs (DCQCN of driver: inbox) and registers of PCI devices "
     "(mstconfig, setpci), and BPF's", {"sys/kernel/security/lockdown": "none integrity [confidentiality]"}, {}),
    ("irq_cpus", "4 CPUs, such as 3, are not on the NIC's NUMA node 0", {f"{DEVICE}/local_cpulist": "4-31,64"}, {}),
    ("boot MTU", "netplan sets 9000", {}, {"netplan": "[ $2 != ethernets.ens1f0np0.mtu ] || echo 9000"}),
    ("boot MTU", "NetworkManager sets 9000", {}, {"nmcli": NMCLI.format(9000)}),
    ("NIC operator", "Kubernetes runs nic-configuration-daemon,",
     {"var/lib/kubelet/pods/93b/containers/nic-configuration-daemon/6ac": ""}, {}),
    ("GPU driver", "535.183.01", {}, {"nvidia-smi": f"exec /bin/cat {CASES}/nvidia-smi-query.txt"}),
    ("RDMA glibc", "2.3", {}, {"getconf": "echo glibc 2.3"}),
    ("RDMA glibc", "1.99", {}, {"getconf": "echo glibc 1.99"}),
    ("traffic classes", "priorities share classes: 0 3 6", {}, {"dcb": "echo prio-tc 0:0 1:0 2:0 3:3 4:0 5:0 6:6 7:0"}),
    ("dcb", "no `dcb app`", {}, {"dcb": 'echo Object "$1" is unknown >&2; exit 1'}),
]  # fmt: skip


@pytest.mark.parametrize("missing", MISSING, ids=lambda each: each[1])
def test_doctor_names_conditions_that_would_spoil_a_trial(
    inventory_file: Path, tmp_path: Path, missing: tuple[str, str, dict[str, str], dict[str, str]]
) -> None:
    name, found, files, programs = missing
    root, tools = tmp_path / "root", tmp_path / "tools"
    furnish(root)
    add_all(tools)
    add_ethtool(tools / "ethtool")
    for tool in ("chronyc", "dcb"):
        add_tool(tools / tool)
    for path, content in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(f"{content}\n")
    for tool, script in programs.items():
        add_tool(tools / tool, script)
    done = examine(inventory_file, root, str(tools))
    assert (done.returncode, done.stderr) == (0, "")
    (wrong,) = (each for each in parse(done.stdout) if not each.good)
    assert wrong.name == name
    assert found in wrong.found
    assert wrong.mend


@pytest.mark.parametrize("shared_nic", [True, False])
def test_other_uses_of_a_nic_are_found_unless_the_inventory_permits_them(
    inventory_file: Path, tmp_path: Path, shared_nic: bool
) -> None:
    text = inventory_file.read_text()
    inventory_file.write_text(text.replace("mtu_bytes: 4200,", f"mtu_bytes: 4200, shared_nic: {shared_nic},"))
    add_tool(tmp_path / "tools/ip", "echo 0.0.0.1 dev ens1f0np0")
    done = examine(inventory_file, tmp_path / "root", str(tmp_path / "tools"))
    assert ("NIC for data" in {each.name for each in parse(done.stdout)}) == (not shared_nic)


def test_the_command_that_separates_merged_classes_is_named(inventory_file: Path, tmp_path: Path) -> None:
    inventory_file.write_text(inventory_file.read_text().replace("driver: inbox", "driver: ofed"))
    output = Path(__file__).parents[1] / "cases/rack/mlnx_qos-switch-driven-dcbx.txt"
    add_tool(tmp_path / "tools/mlnx_qos", f"exec /bin/cat {output}")
    furnish(tmp_path / "root")
    done = examine(inventory_file, tmp_path / "root", str(tmp_path / "tools"))
    found = {each.name: each for each in parse(done.stdout)}["traffic classes"]
    assert found.found == "priorities share classes: 0 3 6"
    assert found.mend.endswith("mlnx_qos -i ens1f0np0 -d os -p 1,0,2,3,4,5,6,7")


@pytest.mark.parametrize(("legacy", "user", "found"), [
    ("True(1) True(1)", "False(0) False(0)", None),
    ("", "False(0) False(0)", None),
    ("", "", None),
    ("False(0) False(0)", "", "ignored: ROCE_CC_LEGACY_DCQCN False(0) False(0), USER_PROGRAMMABLE_CC absent"),
    ("", "True(1) True(1)", "ignored: ROCE_CC_LEGACY_DCQCN absent, USER_PROGRAMMABLE_CC True(1) True(1)"),
    ("False(0) True(1)", "", "ignored until the next boot: "),
    ("True(1) False(0)", "", "acts, but not after the next boot: "),
    ("-E- Failed to open the device", "", "not reported: ? -E- Failed to open the device"),
])  # fmt: skip
def test_doctor_names_firmware_that_ignores_dcqcn_now_or_after_a_boot(
    inventory_file: Path, tmp_path: Path, legacy: str, user: str, found: str | None
) -> None:
    add_new_nic(tmp_path / "root", tmp_path / "tools", legacy, user)
    said = parse(examine(inventory_file, tmp_path / "root", str(tmp_path / "tools")).stdout)
    (line,) = (each for each in said if each.name == "DCQCN in firmware")
    assert line.good == (found is None)
    assert line.found.startswith(found or "acts")
    assert bool(line.mend) == (found is not None)


def test_the_second_port_has_names_of_its_own(inventory_file: Path, tmp_path: Path) -> None:
    furnish(tmp_path / "root")
    (device,) = tmp_path.glob(f"root/sys/devices/**/{PCI}")
    second = device.rename(device.with_name("0000:3b:00.1"))
    (tmp_path / "root/sys/class/net/ens1f0np0/device").unlink()
    (tmp_path / "root/sys/class/net/ens1f0np0/device").symlink_to(second)
    add_tool(tmp_path / "tools/mstconfig", f'[ "$4 $5" != "LLDP_NB_DCBX_P2 DCBX_WILLING_P2" ] || echo "{ON_P2}"')
    said = parse(examine(inventory_file, tmp_path / "root", str(tmp_path / "tools")).stdout)
    (line,) = (each for each in said if each.name == "firmware's DCBX")
    assert (line.good, line.mend) == (False, "mstconfig -d 0000:3b:00.1 set LLDP_NB_DCBX_P2=0, and a reset of firmware")


@pytest.mark.parametrize("closed", [True, False])
def test_debugfs_that_is_closed_or_empty_is_no_dcqcn(inventory_file: Path, tmp_path: Path, closed: bool) -> None:
    furnish(tmp_path)
    file = tmp_path / "sys/kernel/debug/mlx5" / PCI / "cc_params/rp_time_reset"
    file.unlink()
    if closed:
        file.symlink_to(file.name)  # open fails with ELOOP, for root, too
    (found,) = (each for each in parse(examine(inventory_file, tmp_path, "/nowhere").stdout) if each.name == "DCQCN")
    assert (found.good, found.found) == (False, f"/sys/kernel/debug/mlx5/{PCI}/cc_params is closed or empty")
    assert "lockdown off" in found.mend


def test_firmware_that_is_not_willing_changes_nothing(inventory_file: Path, tmp_path: Path) -> None:
    furnish(tmp_path / "root")
    add_tool(tmp_path / "tools/mlxconfig", f"echo '{NV.format('False(0)')}'")
    answers = {
        each.name: each for each in parse(examine(inventory_file, tmp_path / "root", str(tmp_path / "tools")).stdout)
    }
    assert answers["firmware's DCBX"].good


@pytest.mark.parametrize(("of", "found"), [("ens1f0np0", "rxe0"), ("ens2", "none of ens1f0np0")])
def test_soft_roce_is_an_rdma_device_of_the_nic_that_it_names(
    inventory_file: Path, tmp_path: Path, of: str, found: str
) -> None:
    furnish(tmp_path)
    (device,) = tmp_path.glob(f"sys/devices/**/{PCI}/infiniband/mlx5_0")
    device.rmdir()
    (tmp_path / "sys/class/infiniband/mlx5_0").rename(tmp_path / "sys/class/infiniband/rxe0")
    (tmp_path / "sys/class/infiniband/rxe0/parent").write_text(f"{of}\n")
    answers = {each.name: each for each in parse(examine(inventory_file, tmp_path, "/nowhere").stdout)}
    assert answers["RDMA device"].found == found
    assert ("GID" in answers) == (found == "rxe0")


def test_the_glibc_that_a_program_needs_is_the_newest_that_it_names(tmp_path: Path) -> None:
    (tmp_path / "program").write_bytes(b"\0GLIBC_2.9\0GLIBC_2.2.5\0GLIBC_2.34\0MYGLIBC_2.99\0GLIBC_PRIVATE\0")
    assert glibc_needed(tmp_path / "program") == "2.34"
    assert glibc_needed(tmp_path / "not built") == "2.0"


def test_dcqcn_of_another_nic_does_not_count(inventory_file: Path, tmp_path: Path) -> None:
    furnish(tmp_path)
    debugfs = tmp_path / "sys/kernel/debug/mlx5"
    (debugfs / PCI).rename(debugfs / "0000:af:00.0")
    (found,) = (each for each in parse(examine(inventory_file, tmp_path, "/nowhere").stdout) if each.name == "DCQCN")
    assert (found.good, found.found) == (False, f"no /sys/kernel/debug/mlx5/{PCI}/cc_params")


@pytest.mark.parametrize(("gpus", "good", "found"), [
    (["pci0000:3a/0000:3a:01.0/0000:43:00.0"], True, "0000:43:00.0 by the same host bridge"),
    (["pci0000:5a/0000:5a:01.0/0000:5b:00.0"], False, "0000:5b:00.0 by several host bridges of a CPU, and none"),
    (["pci0000:ba/0000:ba:01.0/0000:bb:00.0"], False, "0000:bb:00.0 by way of another CPU, and none is nearer"),
    (["pci0000:ba/0000:ba:01.0/0000:bb:00.0", "pci0000:3a/0000:3a:01.0/0000:43:00.0"], True, "0000:43:00.0 by the"),
    ([], False, "no GPU of NVIDIA's on PCI"),
])  # fmt: skip
def test_how_far_the_nearest_gpu_is(
    inventory_file: Path, tmp_path: Path, gpus: list[str], good: bool, found: str
) -> None:
    furnish(tmp_path)
    (tmp_path / "sys/bus/pci/devices" / GPU).unlink()
    (tmp_path / "sys/class/net/ens1f0np0/device/numa_node").write_text("0\n")
    for gpu in gpus:
        node = str(int("pci0000:b" in gpu))
        add_pci(tmp_path, tmp_path / "sys/devices" / gpu, vendor="0x10de", numa_node=node, **{"class": "0x030000"})
    (way,) = (
        each for each in parse(examine(inventory_file, tmp_path, "/nowhere").stdout) if each.name == "GPUDirect way"
    )
    assert (way.good, way.found[: len(found)]) == (good, found)


OPEN = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  560.35.03  Release Build"


@pytest.mark.parametrize(("kernel", "version", "found"), [
    ("5.12.0-generic", OPEN, "by DMA-BUF"), ("6.1.0-13-amd64", OPEN, "by DMA-BUF"),
    ("5.4.0-150-generic", OPEN, "neither nvidia-peermem nor DMA-BUF"),
    ("6.1.0-13-amd64", OPEN.replace("Open ", ""), "neither nvidia-peermem nor DMA-BUF"),
])  # fmt: skip
def test_how_a_nic_gets_at_a_gpus_memory(
    inventory_file: Path, tmp_path: Path, kernel: str, version: str, found: str
) -> None:
    furnish(tmp_path)
    (tmp_path / "sys/module/nvidia_peermem").rmdir()
    for path, content in (("proc/sys/kernel/osrelease", kernel), ("proc/driver/nvidia/version", version)):
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).write_text(f"{content}\n")
    (memory,) = (
        each for each in parse(examine(inventory_file, tmp_path, "/nowhere").stdout) if each.name == "GPUDirect memory"
    )
    assert memory.found == found


@pytest.mark.parametrize("may_be_root", [True, False])
def test_hosts_are_examined_as_root_where_their_user_may_be(
    inventory_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, may_be_root: bool
) -> None:
    """ssh and sudo are stand-ins; so is the login's banner."""
    add_tool(tmp_path / "ssh", 'shift 8; echo "Welcome\tto $1"; shift; eval "$*"')
    add_tool(tmp_path / "sudo", 'shift; AS_ROOT=1 exec "$@"' if may_be_root else "exit 1")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr("roundabout.testbeds.rack.examination.SCRIPT", 'printf "%s\t%s\t$1,$2,$AS_ROOT\t\n" root yes')
    found = examine_hosts(read_inventory(inventory_file))["s0"]
    assert [each.name for each in found] == ["ssh", "root"]
    assert found[1].found == f",ens1f0np0,{1 if may_be_root else ''}"


@pytest.mark.parametrize(("system", "good"), [
    ("ubuntu 18.04", False), ("ubuntu 20.04", True), ("ubuntu 24.04", True), ("debian 10", False), ("debian 12", True),
    ("rhel 9.4", True), ("rocky 9.6", True), ("almalinux 9.2", True), ("rocky 8.10", False), ("rhel 10.0", False),
    ("sles 16.0", True), ("sles 15.6", False), ("fedora 42", False),
])  # fmt: skip
def test_supported_systems(inventory_file: Path, tmp_path: Path, system: str, good: bool) -> None:
    name, version = system.split()
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/os-release").write_text(f'ID={name}\nVERSION_ID="{version}"\n')
    (found,) = (each for each in parse(examine(inventory_file, tmp_path, "/nowhere").stdout) if each.name == "system")
    assert found.good is good


@pytest.mark.parametrize(("system", "manager"), [("rocky", "dnf"), ("sles", "zypper"), ("ubuntu", "apt-get")])
def test_a_systems_own_package_manager_is_named(
    inventory_file: Path, tmp_path: Path, system: str, manager: str
) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/os-release").write_text(f"ID={system}\n")
    found = {each.name: each for each in parse(examine(inventory_file, tmp_path, "/nowhere").stdout)}
    assert {"apt-get", "dnf", "zypper"} & found.keys() == {manager}
    assert found["python3"].mend == f"{manager} install python3"


def test_a_program_that_sudos_path_lacks_is_named_with_its_folder(inventory_file: Path, tmp_path: Path) -> None:
    """RHEL's sudoers has secure_path = /sbin:/bin:/usr/sbin:/usr/bin."""
    add_tool(tmp_path / "usr/local/bin/iperf3")
    found = {each.name: each for each in parse(examine(inventory_file, tmp_path, "/nowhere").stdout)}
    assert found["iperf3"].found == "in /usr/local/bin, which is not in PATH"
    assert "secure_path" in found["iperf3"].mend


def test_a_host_that_does_not_answer_is_one_line(inventory_file: Path) -> None:
    config = inventory_file.with_name("ssh_config")
    config.write_text("Host *\n  ProxyCommand false\n")
    text = inventory_file.read_text()
    inventory_file.write_text(text.replace("vars:", f"vars:\n    ssh_config: {config}", 1))
    checks = list(RackProvider(inventory_file).checks())
    assert [check.name for check in checks[:2]] == ["s0 ssh", "s1 ssh"]
    assert all("must work without a question" in format_check(check) for check in checks)


def test_hosts_with_the_same_result_share_a_line() -> None:
    checks = [
        Check("s0 ssh", True, "answers"),
        Check("s0 address", True, "10.10.0.1"),
        Check("s0 chronyc", False, "not found", "provision"),
        Check("s1 ssh", True, "answers"),
        Check("s1 address", False, "not 10.10.0.2", "the inventory"),
        Check("s1 chronyc", False, "not found", "provision"),
    ]
    assert [format_check(check) for check in fold_hosts(checks)] == [
        "ok       ssh                          answers (all 2 hosts)",
        "ok       address                      10.10.0.1 (s0)",
        "MISSING  address                      not 10.10.0.2 (s1); to get it: the inventory",
        "MISSING  chronyc                      not found (all 2 hosts); to get it: provision",
    ]
