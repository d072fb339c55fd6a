# SPDX-License-Identifier: Apache-2.0
"""NCCL's settings, and its log held against them. Nothing here ran NCCL: logs are made as its sources print them."""

import shlex
import struct
import subprocess
from dataclasses import replace
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from roundabout.core.errors import RoundaboutError
from roundabout.plan import make_plan
from roundabout.runner.hosts.host_group import DscpClasses, Host, Nccl, Nic
from roundabout.runner.trial import jobs, nccl
from roundabout.runner.trial.nccl import NcclReport
from roundabout.spec import load_experiment
from roundabout.spec.errors import SpecError
from roundabout.testbeds.rack.inventory import read_inventory
from roundabout.testbeds.rack.rack import host_of

pytestmark = pytest.mark.unit

HOST = Host("s0", "gpu0", "10.10.0.1", 24, "ens1f0np0", Path("/opt/roundabout"), nccl=Nccl("mlx5_0:1", "Ring", 3))
RDMA, SOCKETS = (nccl.environment(HOST, 26, rdma=rdma) for rdma in (True, False))
# NVIDIA/nccl's own words, by version: its prefix, how it gets its interface, what it says of a channel and of a GID.
PREFIX = "gpu0:2152176:2152299 [0] NCCL INFO "
CHANNELS = {
    "2.7.8": "Channel 00 : 0[1b000] -> 1[1b000] [{way}] via NET/{network}/0",
    "2.11.4": "Channel 00 : 0[1b000] -> 1[1b000] [{way}] via NET/{network}/0/GDRDMA/Shared",
    "2.30.7": "Channel 00/0 : 0[0] -> 1[0] [{way}] via NET/{network}/0(1)/GDRDMA(PCI)/Shared",
}
QUEUE_PAIRS = {
    "2.7.8": "NET/IB: Dev 0 Port 1 qpn 2361 mtu 3 GID {index} ({prefix:X}/{identifier:X})",
    "2.11.4": "NET/IB: Dev 0 Port 1 qpn 2361 mtu 3 GID {index} ({prefix:X}/{identifier:X})",
    "2.30.7": "NET/IB: ncclIbConnect: NCCL Dev 0 IbDev 0 Port 1 qp_num 2361 mtu 3 "
    "GID {index} ({prefix:X}/{identifier:X}) ctsFifoRkey=0x1 ctsFifoLkey=0x2",
}
DEVICES = {
    "2.7.8": "NET/IB : Using [0]{device}/RoCE ; OOB {interface}:{address}<0>",
    "2.11.4": "NET/IB : Using [0]{device}/RoCE ; OOB {interface}:{address}<0>",
    "2.30.7": "NET/IB : Using [0]{device}::2/RoCE [RO]; OOB {interface}:{address}<0>",
}
VERSIONS = st.sampled_from(sorted(CHANNELS))
NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,10}", fullmatch=True)


def halves(address: str) -> tuple[int, int]:
    """A GID's, as its 64-bit numbers lie in memory in network order and are printed by a little-endian machine."""
    return struct.unpack("<QQ", IPv6Address(f"::ffff:{address}").packed)


def by_rdma(version: str, device: str, interface: str, address: str, index: int, **parameters: Any) -> str:
    prefix, identifier = halves(address)
    lines = [
        f"NCCL_SOCKET_IFNAME set by environment to ={interface}",
        f"NCCL_IB_TC set by environment to {parameters.get('traffic_class', 106)}.",
        DEVICES[version].format(device=device, interface=interface, address=address),
        "Using network IB",
        "NCCL_ALGO set by environment to Ring",
        *(CHANNELS[version].format(way=way, network="IB") for way in ("receive", "send")),
        QUEUE_PAIRS[version].format(index=index, prefix=prefix, identifier=identifier),
    ]
    return "\n".join([f"NCCL version {version}+cuda11.4", *(PREFIX + line for line in lines), "another's line"])


def over_sockets(version: str, interface: str, network: str = "Socket") -> str:
    lines = [
        f"NET/Socket : Using [0]{interface}:10.10.0.1<0>",
        f"Using network {network}",
        "NCCL_ALGO set by environment to Ring",
        CHANNELS[version].format(way="send", network=network),
    ]
    return "\n".join(PREFIX + line for line in lines)


def test_nccl_environment_over_rdma():
    assert shlex.join(nccl.command_prefix(RDMA)) == (
        "env NCCL_SOCKET_IFNAME==ens1f0np0 NCCL_NET=IB NCCL_IB_HCA==mlx5_0:1 NCCL_IB_TC=106 NCCL_IB_GID_INDEX=3 "
        "NCCL_ALGO=Ring NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NET,ENV NCCL_DEBUG_FILE=/dev/stderr "
        "bash -c 'exec \"$@\" 2> >(exec cat >&2)' bash"
    )


def test_nccl_environment_over_sockets():
    parameters = nccl.command_prefix(nccl.environment(replace(HOST, nccl=Nccl()), 26, rdma=False))
    assert shlex.join(parameters).startswith(
        "env NCCL_SOCKET_IFNAME==ens1f0np0 NCCL_NET=Socket NCCL_IB_DISABLE=1 "
        "NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NET,ENV NCCL_DEBUG_FILE=/dev/stderr bash "
    )


def test_a_program_finds_its_environment_and_opens_its_log():
    script = 'echo "$NCCL_NET" > "$NCCL_DEBUG_FILE"; read line; echo "received $line"; exit 3'
    call = [*nccl.command_prefix(RDMA), "sh", "-c", script]
    done = subprocess.run(call, input="start 1\n", capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (3, "received start 1\n", "IB\n")


@given(VERSIONS, NAMES, NAMES, st.ip_addresses(v=4), st.integers(0, 15))
def test_a_log_is_read_as_it_was_written(
    version: str, device: str, interface: str, address: IPv4Address, index: int
) -> None:
    found = nccl.parse_log(by_rdma(version, f"{device}:1", interface, str(address), index))
    assert found == NcclReport(
        version=(version,),
        network=("IB",),
        interfaces=(interface,),
        devices=(f"{device}:1",),
        links=("RoCE",),
        channels=("NET/IB",),
        gid_indices=(str(index),),
        gid_addresses=(str(address),),
        traffic_class=("106",),
        algorithm=("Ring",),
    )


@given(st.text(max_size=300), VERSIONS)
def test_noise_between_nccl_log_lines_changes_nothing(noise: str, version: str) -> None:
    nccl.parse_log(f"{PREFIX}{noise}\n{noise}")
    good = over_sockets(version, "ens1f0np0")
    between = "\n".join(f"{line}\nx{noise.replace('NCCL', '')}" for line in good.splitlines())
    assert nccl.parse_log(between) == nccl.parse_log(good)


@pytest.mark.parametrize("version", CHANNELS)
def test_a_worker_with_the_requested_nccl_settings_has_no_differences(version):
    good = nccl.parse_log(by_rdma(version, "mlx5_0:1", "ens1f0np0", "10.10.0.1", 3))
    assert nccl.find_differences(RDMA, ["10.10.0.1"], good) == []
    assert nccl.find_differences(SOCKETS, ["10.10.0.1"], nccl.parse_log(over_sockets(version, "ens1f0np0"))) == []


def test_a_log_of_several_hosts_has_the_gids_of_all():
    logs = [by_rdma("2.30.7", "mlx5_0:1", "ens1f0np0", f"10.10.0.{host}", 3) for host in (1, 2)]
    found = nccl.parse_log("\n".join(logs))
    assert nccl.find_differences(RDMA, ["10.10.0.2", "10.10.0.1"], found) == []
    expected = ["gid addresses: found 10.10.0.1, 10.10.0.2, expected 10.10.0.1"]
    assert nccl.find_differences(RDMA, ["10.10.0.1"], found) == expected


@pytest.mark.parametrize(
    ("log", "said"),
    [
        (by_rdma("2.11.4", "mlx5_1:1", "ens1f0np0", "10.10.0.1", 3), "devices: found mlx5_1:1, expected mlx5_0:1"),
        (by_rdma("2.7.8", "mlx5_0:1", "eth0", "10.10.0.1", 3), "interfaces: found eth0, expected ens1f0np0"),
        (by_rdma("2.7.8", "mlx5_0:1", "ens1f0np0", "10.0.0.9", 3), "gid addresses: found 10.0.0.9, expected 10.10.0.1"),
        (by_rdma("2.30.7", "mlx5_0:1", "ens1f0np0", "10.10.0.1", 0), "gid indices: found 0, expected 3"),
        (
            by_rdma("2.30.7", "mlx5_0:1", "ens1f0np0", "10.10.0.1", 3, traffic_class=0),
            "traffic class: found 0, expected 106",
        ),
    ],
)
def test_each_difference_is_one_line(log, said):
    assert nccl.find_differences(RDMA, ["10.10.0.1"], nccl.parse_log(log)) == [said]


def test_sockets_for_rdma_and_a_plugin_for_nccls_own_are_reported():
    assert nccl.find_differences(
        SOCKETS, ["10.10.0.1"], nccl.parse_log(over_sockets("2.11.4", "ens1f0np0", "IBext_v8"))
    ) == [
        "network: found IBext_v8, expected Socket",
        "channels: found NET/IBext_v8, expected NET/Socket",
    ]
    said = nccl.find_differences(RDMA, ["10.10.0.1"], nccl.parse_log(over_sockets("2.11.4", "ens1f0np0")))
    assert said[:2] == ["network: found Socket, expected IB", "channels: found NET/Socket, expected NET/IB"]
    assert "devices: found none in its log, expected mlx5_0:1" in said


def test_nccl_gets_and_reports_all_nics_of_a_host():
    """One line lists all devices, as in the log of a DGX H100 with two (NVIDIA/nccl-tests, issue 185)."""
    host = replace(HOST, nccl=Nccl("mlx5_0:1,mlx5_1:1"), further_nics=(Nic("ens2f0np0", "10.10.1.1"),))
    addresses = [nic.address for nic in host.nics]
    environment = nccl.environment(host, 26, rdma=True)
    assert environment["NCCL_IB_HCA"] == "=mlx5_0:1,mlx5_1:1"
    assert environment["NCCL_SOCKET_IFNAME"] == "=ens1f0np0"
    log = by_rdma("2.11.4", "mlx5_0:1/RoCE [1]mlx5_1:1", "ens1f0np0", "10.10.1.1", 3)
    assert nccl.find_differences(environment, addresses, nccl.parse_log(log)) == []
    (said,) = nccl.find_differences(environment, addresses[:1], nccl.parse_log(log))
    assert said == "gid addresses: found 10.10.1.1, expected 10.10.0.1"
    alone = by_rdma("2.11.4", "mlx5_0:1", "ens1f0np0", "10.10.0.1", 3)
    (said,) = nccl.find_differences(environment, addresses, nccl.parse_log(alone))
    assert said == "devices: found mlx5_0:1, expected mlx5_0:1,mlx5_1:1"
    assert nccl.environment(host, 26, rdma=False)["NCCL_SOCKET_IFNAME"] == "=ens1f0np0,ens2f0np0"


def test_a_link_local_gid_is_reported_as_it_was_printed():
    assert nccl.parse_log(f"{PREFIX}NET/IB: Dev 0 Port 1 qpn 1 mtu 3 GID 0 (80FE/6A1E)").gid_addresses == ("80FE/6A1E",)


def test_logs_of_others_as_they_posted_them():
    """NVIDIA/nccl issues 676 (2.11.4) and 1052 (2.18.5), NVIDIA/nccl-tests issue 185 (2.19.3): lines of each."""
    posted = """
gpu01:124172:124172 [0] NCCL INFO NET/Socket : Using [0]enp225s0f1:10.10.10.2<0>
gpu01:124172:124172 [0] NCCL INFO Using network Socket
NCCL version 2.11.4+cuda11.4"""
    found = nccl.parse_log(posted)
    assert (found.version, found.network, found.interfaces) == (("2.11.4",), ("Socket",), ("enp225s0f1",))
    found = nccl.parse_log(
        "node2:14159:14168 [0] NCCL INFO NET/IB : Using [0]mlx5_4:1/RoCE [RO]; OOB enp24s0np0:10.10.10.1<0>\n"
        "node2:14159:14168 [0] NCCL INFO Using network IB\n"
    )
    assert (found.network, found.interfaces, found.devices) == (("IB",), ("enp24s0np0",), ("mlx5_4:1",))
    found = nccl.parse_log(
        "dgxh100-3:2152176:2152299 [0] NCCL INFO NET/IB : Using [0]mlx5_10:1/RoCE [1]mlx5_11:1/RoCE [RO]; "
        "OOB enp220s0np0:11.1.128.128<0>"
    )
    assert found.devices == ("mlx5_10:1", "mlx5_11:1")


class Servers:
    """As much of a site as workers are made of."""

    dscps = DscpClasses(26, 0)

    def __init__(self, host: Host, *, rdma: bool) -> None:
        self.hosts = {name: replace(host, name=name) for name in ("s0", "s1", "s2", "s3")}
        self._found = frozenset({"rdma"} if rdma else ())

    def capabilities(self):
        return self._found

    def ms_on_host(self, paper_ms):
        return paper_ms

    def bytes_on_host(self, paper_bytes):
        return paper_bytes


@pytest.fixture
def trial(tmp_path):
    path = tmp_path / "trained.yaml"
    path.write_text("""
schema: 1
name: trained
about: A job over NCCL beside one that is played
topology: dumbbell-2x2
profile: ddp-lab
iterations: 1
transport: {name: dcqcn}
jobs:
  j1: {workers: [s0, s2], trainer: {name: ddp, backend: nccl}}
  j2: {workers: [s1, s3]}
""")
    (found,) = make_plan(load_experiment(path), {}, {}).trials
    return found


@pytest.mark.parametrize(("rdma", "expected"), [(True, RDMA), (False, SOCKETS)])
def test_only_workers_over_nccl_get_nccl_settings(trial, rdma, expected):
    found = jobs.trial_workers(trial, Servers(HOST, rdma=rdma))
    assert [worker.environment for worker in found] == [expected, expected, {}, {}]
    assert len(set(found)) == 4
    assert jobs.datapaths(trial, Servers(HOST, rdma=rdma))["j1"] == ("RDMA" if rdma else "TCP")


def test_by_rdma_through_no_device_in_particular_is_refused(trial):
    bare = replace(HOST, nccl=Nccl())
    with pytest.raises(RoundaboutError, match=r"rack\.hosts\.s0\.hca: found none, expected a device and its port"):
        jobs.trial_workers(trial, Servers(bare, rdma=True))
    assert jobs.trial_workers(trial, Servers(bare, rdma=False))


def test_an_inventory_says_what_nccl_uses(tmp_path):
    text = (Path(__file__).parents[2] / "inventory.example").read_text()
    path = tmp_path / "inventory"
    path.write_text(text)
    inventory = read_inventory(path)
    assert host_of(inventory, "s0").nccl == Nccl("mlx5_0:1", None, None)
    assert inventory.all.vars.lossless.tos == 106
    path.write_text(text.replace("hca: mlx5_0:1", "hca: mlx5_0", 1))
    with pytest.raises(SpecError, match="expected an RDMA device and its port, as in mlx5_0:1"):
        read_inventory(path)
