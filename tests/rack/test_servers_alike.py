# SPDX-License-Identifier: Apache-2.0
"""What doctor finds only by comparing servers, or by one server trying to reach another."""

import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from roundabout.testbeds.rack import port_check
from roundabout.testbeds.rack.examination import Finding, examine_hosts, mark_differences, parse
from roundabout.testbeds.rack.inventory import Inventory, read_inventory
from roundabout.testbeds.rack.port_check import PORTS, check_ports
from roundabout.testbeds.rack.rack import common_capabilities, host_of
from roundabout.testbeds.rack.variables import server_variables
from tests.rack.examined_hosts import CASES, add_ethtool, add_tool, examine, furnish

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(("name", "change", "found"), [
    ("NIC driver", ("5.10.0+", "23.10-1.1.9"), "mlx5_core 23.10-1.1.9, elsewhere mlx5_core 5.10.0+"),
    ("NIC firmware", ("14.21.2328", "14.32.1010"), "14.32.1010 (MT_2470112034), elsewhere 14.21.2328 (MT_2470112034)"),
    ("NIC firmware", ("MT_2470112034", "MT_0000000012"), "14.21.2328 (MT_0000000012), elsewhere 14.21.2328 (MT_247"),
    ("FEC", ("encoding: RS", "encoding: BaseR"), "BaseR, elsewhere RS"),
    ("module", ("0x11 (QSFP28)", "0x0d (QSFP+)"), "0x0d (QSFP+) Mellanox, elsewhere 0x11 (QSFP28) Mellanox"),
    ("module", (": Mellanox", ": Other"), "0x11 (QSFP28) Other, elsewhere 0x11 (QSFP28) Mellanox"),
    (None, ("MT1834VS04288", "MT1834VS04289"), ""),
])  # fmt: skip
def test_the_server_that_differs_is_named(
    inventory_file: Path, tmp_path: Path, name: str | None, change: tuple[str, str], found: str
) -> None:
    furnish(tmp_path / "root")
    findings = {}
    for host, changes in (("s0", ()), ("s1", (change,)), ("s2", ())):
        add_ethtool(tmp_path / "tools/ethtool", *changes)
        findings[host] = list(parse(examine(inventory_file, tmp_path / "root", str(tmp_path / "tools")).stdout))
    marked = mark_differences(findings)
    assert (marked["s0"], marked["s2"]) == (findings["s0"], findings["s2"])
    changed = [new for new, old in zip(marked["s1"], findings["s1"], strict=True) if new.good != old.good]
    assert [each.name for each in changed] == ([name] if name else [])
    assert all(each.found.startswith(found) and each.mend for each in changed)


# --- Connections between servers. ssh is a stand-in; servers are addresses of the loopback interface.

ABLE = [Finding(name, True, "", "") for name in ("ssh", "address", "python3")]
SSH = """shift 8; echo Welcome to $1; host=$1; shift; [ $host = {moved} ] || eval "exec $*"
eval "exec $(printf '%s' "$*" | sed 's/listen 127.77.0.2/listen 127.77.0.77/')"
"""


@pytest.fixture
def three(inventory_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Inventory]:
    """Three servers, on ports that no other test uses."""
    monkeypatch.setattr(port_check, "PORTS", tuple(port - 7 for port in PORTS))
    add_tool(tmp_path / "ssh", SSH.format(moved="nobody"))
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    inventory_file.write_text(inventory_file.read_text().replace("10.10.0.", "127.77.0."))
    inventory = read_inventory(inventory_file)
    for name in list(inventory.nics)[3:]:
        del inventory.nics[name]
    yield inventory
    for port in port_check.PORTS:  # no program listens any more
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.77.0.1", port), 1)


def test_servers_that_reach_each_other(three: Inventory) -> None:
    found = check_ports(three, dict.fromkeys(three.nics, ABLE))
    assert [(host, each.good) for host, (each,) in found.items()] == [("s0", True), ("s1", True), ("s2", True)]
    assert found["s1"][0].found == "reached: 29393 29493 18508"


def test_a_server_that_refuses_connections_is_named(three: Inventory, tmp_path: Path) -> None:
    add_tool(tmp_path / "ssh", SSH.format(moved="gpu1.example.org"))
    found = check_ports(three, dict.fromkeys(three.nics, ABLE))
    assert [host for host, (each,) in found.items() if not each.good] == ["s1"]
    expected = "no connection to 29393 (Connection refused), 29493 (Connection refused), 18508 (Connection refused)"
    assert found["s1"][0].found == expected
    assert "ufw allow from 127.77.0.0/24" in found["s1"][0].mend


def test_a_port_that_a_trial_uses_is_left_alone(three: Inventory) -> None:
    with socket.socket() as worker:
        worker.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # earlier connections are in TIME_WAIT
        worker.bind(("127.77.0.2", 29493))
        worker.listen()
        worker.settimeout(0)
        found = check_ports(three, dict.fromkeys(three.nics, ABLE))
        assert found["s1"][0].found == "reached: 29393 18508"
        with pytest.raises(BlockingIOError):
            worker.accept()


def test_a_server_without_its_address_is_left_out(three: Inventory) -> None:
    lacking = [each if each.name != "address" else each._replace(good=False) for each in ABLE]
    assert set(check_ports(three, {"s0": ABLE, "s1": lacking, "s2": ABLE})) == {"s0", "s2"}
    assert check_ports(three, {"s0": ABLE, "s1": lacking, "s2": lacking}) == {}


# --- The RDMA device


def nics(name: str) -> list[tuple[str, str]]:
    """The RDMA devices of a tool's output, each with its interface."""
    text = (CASES / name).read_text()
    if name.endswith(".json"):
        return [(each["ifname"], each["netdev"]) for each in json.loads(text)]
    return [(words[0], words[4]) for words in map(str.split, text.splitlines())]


@pytest.mark.parametrize("name", ["rdma-link-j.json", "ibdev2netdev.txt"])
def test_the_rdma_device_of_a_nic_is_the_one_that_the_tools_name(
    name: str, inventory_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """sysfs has the devices of a real server, whose tools printed the file."""
    text = inventory_file.read_text()
    for device, nic in nics(name):
        (tmp_path / "root/sys/class/net" / nic / "device/infiniband" / device).mkdir(parents=True)
    add_tool(tmp_path / "bin/ssh", f'shift 9; eval "set -- $*"; shift 5; exec /bin/sh -s -- {tmp_path}/root "$@"')
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    for device, nic in nics(name):
        inventory_file.write_text(text.replace("ens1f0np0", nic))
        inventory = read_inventory(inventory_file)
        findings = examine_hosts(inventory)["s0"]
        assert [each.found for each in findings if each.name == "RDMA device"] == [device]
        assert host_of(inventory, "s0", devices={"s0": device}).nccl.hca == f"{device}:1"
        inventory_file.write_text(inventory_file.read_text().replace("link: s0}", "link: s0, hca: mlx5_9:1}"))
        inventory = read_inventory(inventory_file)
        assert host_of(inventory, "s0", devices={"s0": device}).nccl.hca == "mlx5_9:1"
        (wrong,) = (each for each in examine_hosts(inventory)["s0"] if each.name == "hca")
        assert (wrong.found, wrong.mend) == (f"mlx5_9:1 in the inventory, {device} of {nic}", f"hca: {device}:1")


def test_the_gid_of_a_real_server(inventory_file: Path, tmp_path: Path) -> None:
    furnish(tmp_path)
    port = tmp_path / "sys/class/infiniband/mlx5_0/ports/1"
    for index, gid, kind in (line.split(" ", 2) for line in (CASES / "gids.txt").read_text().splitlines()):
        (port / "gids" / index).write_text(f"{gid}\n")
        (port / "gid_attrs/types" / index).write_text(f"{kind}\n")
    text = inventory_file.read_text().replace("10.10.0.1/24", "10.10.0.56/24")
    inventory_file.write_text(text.replace("10.10.0.", "172.17.242."))
    (found,) = (each for each in parse(examine(inventory_file, tmp_path, "/nowhere").stdout) if each.name == "GID")
    assert found.found == "3 is 172.17.242.56 by RoCE v2"


def test_a_host_whose_address_has_no_gid_has_no_rdma() -> None:
    names = ("RDMA device", "GID", "RDMA glibc", "DCQCN")
    findings = {host: [Finding(name, True, "", "") for name in names] for host in ("s0", "s1")}
    assert "rdma" in common_capabilities(findings)
    findings["s1"][1] = Finding("GID", False, "none is 10.10.0.2 by RoCE v2", "")
    assert "rdma" not in common_capabilities(findings)


@pytest.mark.parametrize(("gpu", "good", "found"), [
    ("none", True, "not needed by jobs that replay a profile; one that computes needs 570.26 (gpu: check)"),
    ("check", False, "535.183.01"),
])  # fmt: skip
def test_only_trainers_that_compute_need_a_recent_gpu_driver(
    gpu: str, good: bool, found: str, inventory_file: Path, tmp_path: Path
) -> None:
    add_tool(tmp_path / "tools/nvidia-smi", f"exec /bin/cat {CASES}/nvidia-smi-query.txt")
    done = examine(inventory_file, tmp_path / "root", str(tmp_path / "tools"), gpu=gpu)
    (driver,) = (each for each in parse(done.stdout) if each.name == "GPU driver")
    assert (driver.good, driver.found) == (good, found)


def test_provision_leaves_gpus_and_clocks_alone_unless_the_inventory_names_them(inventory_file: Path) -> None:
    inventory = read_inventory(inventory_file)
    variables = server_variables(inventory, inventory.servers["s0"])
    assert (variables["gpu_policy"], variables["training_policy"], variables["base_clock"]) == ("none", "none", "leave")
