# SPDX-License-Identifier: Apache-2.0
"""A link in use is not changed: every use is named before anything is written."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from roundabout.core.paths import ROOT
from roundabout.settings import settings
from roundabout.settings.settings_guard import uses_of
from roundabout.settings.settings_host import Host, SettingsError

pytestmark = pytest.mark.unit

Server = Callable[[str], Host]
MTU = {"link": {"eth2": {"mtu": 9000}}}
DATA = "10.0.2.0/24 dev eth2 proto kernel scope link src 10.0.2.1"
ELSEWHERE = "default via 192.0.2.1 dev eth0 metric 100"
MOUNTS = {
    "nfs4": "10.0.2.9:/export /data nfs4 rw,vers=4.2,proto=tcp,clientaddr=10.0.2.1,addr=10.0.2.9 0 0",
    "ceph": "10.0.2.7:6789,10.0.2.8:6789:/ /data ceph rw,name=admin,secret=<hidden>,acl 0 0",
    "lustre": "10.0.2.9@tcp:/scratch /data lustre rw,flock,lazystatfs 0 0",
}
# The text of iproute2 6.1 (rdma/link.c, res-qp.c, res.c): queue pairs of the kernel have no process.
RDMA_LINK = "link mlx5_0/1 state ACTIVE physical_state LINK_UP netdev eth2 \n"
KERNELS = "link mlx5_0/1 lqpn 1 type GSI state RTS sq-psn 0 comm [ib_core] \n"
OTHERS = "link mlx5_1/1 lqpn 9 type RC state RTS sq-psn 0 pid 77 comm storaged \n"
WRITER = "link mlx5_0/1 lqpn 277 rqpn 0 type RC state RTS rq-psn 0 sq-psn 0 pid 4711 comm ib_write_bw \n"


def by_ssh(root: Path) -> None:
    """A parent of this process was started over SSH, and this process by sudo."""
    for pid, parent, environment in (
        (os.getpid(), 2, "HOME=/root"),
        (2, 0, "SSH_CONNECTION=10.0.2.50 50000 10.0.2.1 22"),
    ):
        process = root / "proc" / str(pid)
        process.mkdir(parents=True)
        (process / "environ").write_text(f"LANG=C\0{environment}\0")
        (process / "status").write_text(f"Name:\tpython3\nPPid:\t{parent}\n")


def by_default_route(root: Path) -> None:
    (root / "routes").write_text(json.dumps([ELSEWHERE, "default via 10.0.2.254 dev eth2 metric 50", DATA]))


def by_a_vlan(root: Path) -> None:
    (root / "routes").write_text(json.dumps(["default via 10.5.0.254 dev eth2.5", DATA]))
    (root / "sys/class/net/eth2.5").mkdir()
    (root / "sys/class/net/eth2.5/lower_eth2").symlink_to("../eth2")


def by_a_bridge(root: Path) -> None:
    (root / "sys/class/net/br0").mkdir()
    (root / "sys/class/net/eth2/master").symlink_to("../br0")


def by_mount(kind: str) -> Callable[[Path], None]:
    def mount(root: Path) -> None:
        (root / "proc/mounts").write_text(f"proc /proc proc rw 0 0\n{MOUNTS[kind]}\n")

    return mount


USES = [
    (by_ssh, "this SSH connection from 10.0.2.50"),
    (by_default_route, "the default route"),
    (by_a_vlan, "the default route"),
    (by_a_bridge, "br0, of which it is a port"),
    *((by_mount(kind), "the file system /data") for kind in MOUNTS),
]


@pytest.mark.parametrize(("use", "name"), USES)
def test_a_nic_in_use_is_not_changed(server: Server, trees: ModuleType, use: Callable[[Path], None], name: str) -> None:
    host = server("connectx-5-ofed")
    use(host.root)
    before = trees.snapshot(host.root)
    with pytest.raises(SettingsError, match=f"^eth2 must not be changed: it carries {name}$") as error:
        settings.apply(host, MTU, "provision")
    assert "shared_nic" in error.value.hint
    assert trees.snapshot(host.root) == before
    assert settings.show_journal(host)["outstanding"] == []
    settings.apply(host, {"link": {"eth2": {"gso_max_size": 4600}}}, "provision")  # interrupts nothing
    settings.apply(host._replace(shared_nic=True), MTU, "provision")
    assert settings.read(host, MTU)["differs"] == []


def test_a_default_route_of_higher_metric_is_not_in_force(server: Server) -> None:
    host = server("connectx-5-ofed")
    shown = (ROOT / "tests/cases/rack/route-two-defaults.txt").read_text()
    routes = shown.replace("ens1np0", "eth0").replace("ens4np0", "eth2").splitlines()
    (host.root / "routes").write_text(json.dumps(routes))
    assert list(uses_of(host, "eth2")) == []
    assert list(uses_of(host, "eth0")) == ["the default route"]
    assert settings.apply(host, MTU, "provision")["changed"] == ["link eth2 mtu"]


def test_open_queue_pairs_of_programs_are_not_interrupted(server: Server, trees: ModuleType) -> None:
    host = server("connectx-5-ofed")
    trees.add_tools(host.root, "rdma")
    (host.root / "rdma-link").write_text(RDMA_LINK)
    (host.root / "rdma-resource").write_text(KERNELS + OTHERS + WRITER)
    before = trees.snapshot(host.root)
    with pytest.raises(SettingsError, match=r"open queue pairs of ib_write_bw \(process 4711\)$"):
        settings.apply(host._replace(shared_nic=True), {"qos": {"eth2": {"pfc": "-,-,-,1,-,-,-,-"}}}, "provision")
    assert trees.snapshot(host.root) == before
    (host.root / "rdma-resource").write_text(KERNELS + OTHERS)
    assert settings.apply(host, MTU, "provision")["changed"] == ["link eth2 mtu"]


@pytest.mark.skipif(os.geteuid() != 0, reason="makes links in a namespace of its own")
def test_uses_are_found_on_a_real_kernel(tmp_path: Path) -> None:
    script = f"""
        set -e
        mount -t sysfs sysfs /sys
        ip link add t0 type veth peer t1
        ip link add br0 type bridge
        ip link set t0 master br0 up
        ip link set t1 up
        ip link set br0 up
        ip addr add 10.9.0.1/24 dev br0
        ip route add default via 10.9.0.254 dev br0
        settings="{sys.executable} {settings.__file__} apply --owner t --state {tmp_path}"
        echo '{{"link": {{"t1": {{"mtu": 1400}}}}}}' | $settings
        echo '{{"link": {{"t0": {{"mtu": 1400}}}}}}' | $settings
    """
    done = subprocess.run(
        ["unshare", "--net", "--mount", "sh", "-c", script],
        capture_output=True,
        text=True,
        env={**os.environ, "SSH_CONNECTION": "192.0.2.9 50000 10.9.0.1 22"},
    )
    assert done.returncode == 1
    assert '"changed": ["link t1 mtu"]' in done.stdout
    uses = "br0, of which it is a port; this SSH connection from 192.0.2.9; the default route"
    assert f"t0 must not be changed: it carries {uses}\n" in done.stderr
