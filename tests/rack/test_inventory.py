# SPDX-License-Identifier: Apache-2.0
import re
import textwrap
from ipaddress import IPv4Address, IPv4Interface
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from roundabout.core.paths import ROOT
from roundabout.spec import SpecError, load_topology
from roundabout.spec.frames import payload_share
from roundabout.testbeds.rack.inventory import Inventory, check_topology, read_inventory
from roundabout.testbeds.rack.variables import switch_variables
from tests.ansible.switches import PORTS, write_inventory
from tests.rack.conftest import examples

pytestmark = pytest.mark.unit

EXAMPLE = ROOT / "inventory.example"


def test_the_example_is_an_inventory_as_it_is() -> None:
    inventory = read_inventory(EXAMPLE)
    assert list(inventory.servers) == ["s0", "s1", "s2", "s3"]
    assert inventory.all.vars.lossless.tos == 106  # as roce.md has it


def test_each_testbed_of_the_papers(testbed_of_a_paper: tuple[str, Path]) -> None:
    which, path = testbed_of_a_paper
    sizes = {"four": (4, 1, 4), "twelve": (12, 2, 13), "twenty-four": (24, 13, 36)}
    inventory = read_inventory(path)
    assert (len(inventory.servers), len(inventory.switches), len(inventory.ends)) == sizes[which]


def test_the_examples_payload_rate_follows_from_its_mtu() -> None:
    inventory = read_inventory(EXAMPLE)
    rates, mtu = inventory.all.vars, inventory.common.mtu_bytes
    assert rates.payload_rate_gbps == pytest.approx(rates.line_rate_gbps * payload_share(mtu), abs=0.05)


def test_a_topology_that_is_part_of_the_rack_fits(inventory_file: Path) -> None:
    check_topology(read_inventory(inventory_file), load_topology("dumbbell-2x2"), "inventory")


@pytest.mark.parametrize("topology", ["configuration-a", "configuration-b"])
def test_the_thesis_four_servers_are_both_of_its_configurations(topology: str) -> None:
    check_topology(read_inventory(EXAMPLE), load_topology(topology), "inventory")


def test_the_inventory_for_public_testbeds_has_its_topology(tmp_path: Path) -> None:
    page = (ROOT / "docs/how-to/public-testbeds.md").read_text()
    block = page.partition("## The inventory\n\n")[2].partition("\n\n")[0]
    (tmp_path / "inventory").write_text(textwrap.dedent(block))
    check_topology(read_inventory(tmp_path / "inventory"), load_topology("configuration-a"), "inventory")


MISTAKES = [
    ("nic: ens1f0np0", "nic: 'eth0; reboot'", "hosts.s0.nic: found 'eth0; reboot', expected a network interface"),
    ("nic: ens1f0np0", "nic: all", "hosts.s0.nic: found 'all', expected a network interface"),
    ("s1: {ansible_host", "all: {ansible_host", "hosts.all: found the name 'all', expected another name: the kernel"),
    ("tor1:\n", "rack:\n", "switches.hosts.rack: found the name 'rack', expected another name"),
    ("10.10.0.2/24", "10.10.0.1/24", "found '10.10.0.1' a second time (first in all.children.rack.hosts.s0.address)"),
    ("10.10.0.2/24", "10.10.0.2", "found '10.10.0.2', expected a host's IPv4 address with its prefix length"),
    ("10.10.0.2/24", "fd00::2/64", "as in 10.10.0.1/24; IPv6 is not supported: give the NIC an IPv4 address, too"),
    ("10.10.0.2/24", "10.10.0.0/30", "found '10.10.0.0/30', expected a host's IPv4 address"),
    ("driver: inbox", "driver: inbox, data_routes: [10.20.0.0/16]", "found 10.20.0.0/16 without 10.10.0.1 of s0"),
    ("driver: inbox", "driver: inbox, data_routes: [0.0.0.0/0]", "expected an IPv4 prefix (8 to 32) as `ip route`"),
    ("driver: inbox", "driver: inbox, data_routes: [10.10.0.1/16]", "data_routes[0]: found '10.10.0.1/16', expected"),
    ("gpu1.example.org", "gpu0.example.org", "hosts.s1.nic: found 'gpu0.example.org ens1f0np0' a second time"),
    ("link: s1}", "link: s0}", "hosts.s1.link: found 's0' a second time (first in"),
    ("link: s1}", "link: s77}", "hosts.s1.link: found 's77', which no switch has"),
    ("s1: Ethernet4", "s1: Ethernet0", "ports.s1: found 'sonic0.example.org Ethernet0' a second time"),
    ("L1: Ethernet48", "L2: Ethernet48", "ports.L2: found link 'L2' with 1 end(s): tor0, expected two: a server's"),
    ("driver: inbox", "driver: ofd", "vars.driver: found 'ofd', expected 'inbox' or 'ofed'"),
    ("driver: inbox, ", "", "vars.driver: found nothing, expected a value"),
    ("T_us: 125", "T_us: 125.5", "dcqcn.T_us: found 125.5, expected a whole number"),
    ("T_us: 125", "T_us: 131072", "dcqcn.T_us: found 131072, expected a whole number from 1 to 131071"),
    ("T_us: 125", "Gd_log2: 9", "dcqcn.Gd_log2: found 9, expected a whole number from 10 to 11"),
    ("T_us: 125", "t_us: 125", "dcqcn.t_us: found the unknown field 't_us', expected one of T_us"),
    ("Kmin_cells: 1000", "Kmin_cells: 3000", "expected Kmin_cells below Kmax_cells"),
    ("cable_length_m: 5", "pfc: false", "switches.vars: found no cable_length_m, expected one, as sonic needs it"),
    ("cable_length_m: 5", "cable_length_m: 5\n        pfc_watchdog: true", "found True, expected it left out"),
    ("cable_length_m: 5", "pfc: false\n        pfc_watchdog: true", "expected pfc_watchdog with PFC only"),
    ("driver: inbox", "driver: inbox, pfc_prevention_ms: 79", "pfc_prevention_ms: found 79, expected"),
    ("Pmax_percent: 100}", "Pmax_percent: 100, queue_cells: 3000}", "queue_cells: found 3000, expected it left out"),
    ("ports: {s0:", "apply_on: {platform: x}\n          ports: {s0:", "apply_on.release: found nothing, expected"),
    ("ports: {s2:", "addresses: [10.10.0.256]\n          ports: {s2:", "addresses[0]: found '10.10.0.256', expected a"),
    ("ports: {s2:", "addresses: [10.10.0.1]\n          ports: {s2:", "addresses[0]: found '10.10.0.1' a second time"),
    ("payload_rate_gbps: 43", "payload_rate_gbps: 51", "expected a payload rate no higher than the line rate"),
    ("payload_rate_gbps: 43", "cross_traffic_dscp: 27\n    payload_rate_gbps: 43", "expected a cross_traffic_dscp"),
    ("driver: inbox", "driver: inbox, ansible_password: x", "found the secret 'ansible_password', expected secrets"),
    ("ansible_host: sonic0.example.org\n", "addresses: []\n", "tor0: found no ansible_host, expected one, or"),
    ("ports: {s0:", "system: onyx\n          ports: {s0:", "tor0.system: found 'onyx', expected one of cumulus, dell,"),
    ("ports: {s0:", "system: junos\n          ports: {s0:", "vars.ecn: found no queue_cells, expected one, as junos"),
    ("ports: {s2:", "system: nxos\n          apply_on: {platform: x, release: '1'}\n          ports: {s2:",
     "tor1.apply_on: found one, expected none, as nxos is compared only"),
    ("system: sonic", "system: onyx", "vars.system: found 'onyx', expected one of cumulus, dell, eos, junos, nxos,"),
    ("versions: today", "versions: !vault x", "found the tag !vault, expected a value without a tag"),
]  # fmt: skip


@pytest.mark.parametrize(("right", "wrong", "message"), MISTAKES)
def test_a_mistake_is_one_message(inventory_file: Path, right: str, wrong: str, message: str) -> None:
    text = inventory_file.read_text()
    assert right in text
    inventory_file.write_text(text.replace(right, wrong, 1))
    with pytest.raises(SpecError) as error:
        read_inventory(inventory_file)
    assert message in error.value.message
    assert f"{inventory_file}:" in error.value.message
    assert "\n" not in error.value.message


NAMES = {  # a system's port names, those that it does not have, and how the message begins
    "cumulus": (["swp1", "swp1s0"], ["Ethernet0", "swp1/0", "eth0"], "swpN or"),
    "dell": (["Eth1/1", "Eth1/1/4", "Ethernet0"], ["swp1", "Eth1"], "as `show interface status` lists it"),
    "eos": (["Ethernet1", "Ethernet1/1", "Ethernet3/1/1"], ["Et1", "swp1", "Ethernet1/1/1/1"], "EthernetN, Ether"),
    "junos": (["et-0/0/0", "xe-0/0/1:3"], ["Ethernet0", "et-0/0", "et-0/0/0.0"], "TYPE-FPC/PIC/PORT"),
    "nxos": (["Ethernet1/1", "Ethernet1/1/4"], ["Ethernet0", "Eth1/1", "swp1"], "EthernetSLOT/PORT or"),
    "sonic": (["Ethernet0", "Ethernet124"], ["swp1", "Ethernet1/1", "etp1"], "EthernetN, such as Ethernet48"),
    "tofino": (["1/0", "65/0"], ["Ethernet0", "1/0/0"], "its connector and channel, such as 1/0"),
}
OWN = [(system, port) for system, (own, _, _) in NAMES.items() for port in own]
OTHERS = [(system, port) for system, (_, others, _) in NAMES.items() for port in others]


@pytest.mark.parametrize(("system", "port"), OWN)
def test_a_port_has_a_name_of_its_switchs_system(tmp_path: Path, system: str, port: str) -> None:
    """Sources of the forms: sonic-port.yang, NVUE's, Arista's, Cisco's, Dell's and Juniper's interface references."""
    assert read_inventory(with_port(tmp_path, system, port)).switches["tor"].ports["s0"] == port


@pytest.mark.parametrize(("system", "port"), OTHERS)
def test_a_port_of_another_system_is_one_message(tmp_path: Path, system: str, port: str) -> None:
    with pytest.raises(SpecError) as refused:
        read_inventory(with_port(tmp_path, system, port))
    message = f"tor.ports.s0: found '{port}', expected a port's name in {system}: {NAMES[system][2]}"
    assert message in refused.value.message


def with_port(folder: Path, system: str, port: str) -> Path:
    """Write an inventory whose switch has this system and this first port."""
    write_inventory(system, folder)
    path = folder / "inventory"
    path.write_text(path.read_text().replace(f"s0: {PORTS[system][0]},", f"s0: {port},"))
    return path


ECN = "ecn: {cell_bytes: 208, Kmin_cells: 500, Kmax_cells: 600, Pmax_percent: 10"


def test_a_switch_may_have_its_own_user_and_thresholds(inventory_file: Path) -> None:
    text = inventory_file.read_text()
    own = f"system: junos\n          ansible_user: netops\n          {ECN}, queue_cells: 3000}}\n          ports: {{"
    ports = text.partition("tor1:")[2]
    text = text.replace(ports, re.sub(r"Ethernet(\d+)", r"et-0/0/\1", ports).replace("ports: {", own))
    inventory_file.write_text(text)
    inventory = read_inventory(inventory_file)
    variables = {name: switch_variables(inventory, name) for name in ("tor0", "tor1")}
    assert [each["ansible_user"] for each in variables.values()] == ["admin", "netops"]
    assert [each["switches_facts"]["ecn"]["Kmin_bytes"] for each in variables.values()] == [80000, 104000]
    assert variables["tor1"]["switches_facts"]["ecn"]["queue_bytes"] == 3000 * 208


@pytest.mark.parametrize(("own", "message"), [
    (f"{ECN}, queue_cells: 3000}}", "tor1.ecn.queue_cells: found 3000, expected it left out: only junos has"),
    (f"system: tofino\n          {ECN}}}", "tor1.ecn: found no pfc_skid_cells, expected one, as tofino needs it"),
])  # fmt: skip
def test_a_switchs_own_thresholds_are_those_of_its_system(inventory_file: Path, own: str, message: str) -> None:
    inventory_file.write_text(inventory_file.read_text().replace("ports: {s2:", f"{own}\n          ports: {{s2:"))
    with pytest.raises(SpecError) as refused:
        read_inventory(inventory_file)
    assert message in str(refused.value)


def test_common_thresholds_may_be_left_out_if_each_switch_has_its_own(inventory_file: Path) -> None:
    text = re.sub(r" +ecn: .*\n", "", inventory_file.read_text())
    inventory_file.write_text(text.replace("ports: {s2:", f"{ECN}}}\n          ports: {{s2:"))
    with pytest.raises(SpecError, match="found no ecn, expected one, as sonic needs it"):
        read_inventory(inventory_file)
    inventory_file.write_text(text.replace("ports: {", f"{ECN}}}\n          ports: {{"))
    assert read_inventory(inventory_file).ecn_of("tor0")


def test_an_unmanaged_switch_needs_neither_machine_nor_thresholds(inventory_file: Path) -> None:
    text = inventory_file.read_text()
    inventory_file.write_text(re.sub(r"( +)ansible_host: sonic1\S+", r"\1system: unmanaged", text))
    inventory = read_inventory(inventory_file)
    assert inventory.machine_of("tor1") == "tor1"
    assert switch_variables(inventory, "tor1")["switches_facts"] == {"system": "unmanaged"}
    assert switch_variables(inventory, "tor0")["switches_facts"]["system"] == "sonic"

    switches = re.search(r" +system: sonic\n.*\n.*\n", text)
    assert switches and "cable_length_m" in switches[0]
    every = text.replace(switches[0], "        system: unmanaged\n")
    inventory_file.write_text(re.sub(r" +ansible_host: sonic\S+\n", "", every))
    inventory = read_inventory(inventory_file)
    assert {inventory.system_of(name) for name in inventory.switches} == {"unmanaged"}

    inventory_file.write_text(
        every.replace("ports: {s0:", "apply_on: {platform: x, release: '1'}\n          ports: {s0:")
    )
    with pytest.raises(SpecError, match=r"tor0\.apply_on: found one, expected none, as an unmanaged switch is never"):
        read_inventory(inventory_file)


def test_a_switch_can_have_another_system_than_the_others(inventory_file: Path) -> None:
    text = inventory_file.read_text()
    inventory_file.write_text(text.replace("ports: {s2:", "system: eos\n          ports: {s2:"))
    inventory = read_inventory(inventory_file)
    systems = [switch_variables(inventory, name)["switches_facts"]["system"] for name in ("tor0", "tor1")]
    assert systems == ["sonic", "eos"]


@pytest.mark.parametrize(("right", "wrong", "message"), [
    ("line_rate_gbps: 50", "line_rate_gbps: 100", "found link s0 of 100 Gbit/s, 43 of payload, expected 50 and 43"),
    ("s2: {ansible_host", "s20: {ansible_host", "found no s2, expected a machine for each host and switch"),
])  # fmt: skip
def test_another_topology_is_refused(inventory_file: Path, right: str, wrong: str, message: str) -> None:
    inventory_file.write_text(inventory_file.read_text().replace(right, wrong, 1))
    with pytest.raises(SpecError) as error:
        check_topology(read_inventory(inventory_file), load_topology("dumbbell-2x2"), str(inventory_file))
    assert message in error.value.message


def addressed(text: str, addresses: list[str], routes: str = "") -> str:
    given = iter(addresses)
    text = re.sub(r"(?<=address: )10\.10\.0\.\d+/24", lambda _: next(given), text)
    return text.replace("driver: inbox", f"driver: inbox{routes}")


PEERS = ["s0", "s1", "s2", "s3"]


def routes(inventory: Inventory, host: str) -> list[str]:
    """Return the routes of one of PEERS to the others."""
    own = inventory.nics[host].nic
    return inventory.data_routes(own, [inventory.nics[peer] for peer in PEERS if peer != host])


def test_links_of_two_addresses_are_reached_by_the_given_routes(inventory_file: Path) -> None:
    addresses = [f"10.10.{number}.1/31" for number in range(12)]
    text = inventory_file.read_text()
    inventory_file.write_text(addressed(text, addresses, ", data_routes: [10.10.0.0/16]"))
    assert routes(read_inventory(inventory_file), "s0") == ["10.10.0.0/16"]
    inventory_file.write_text(addressed(text, addresses))  # each link's subnet is a route of all other servers
    assert routes(read_inventory(inventory_file), "s0") == ["10.10.1.0/31", "10.10.2.0/31", "10.10.3.0/31"]


@given(numbers=st.lists(st.integers(0, 2**14 - 1), min_size=12, max_size=12, unique=True), length=st.integers(16, 32))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
def test_each_peer_is_behind_a_route(inventory_file: Path, numbers: list[int], length: int) -> None:
    """The longest prefix that contains a peer's address, of all routes of the servers, is one that a trial sets."""
    addresses = [IPv4Interface((IPv4Address("10.10.0.1") + 4 * number, length)) for number in numbers]
    example = examples()["twelve"]
    inventory_file.write_text(addressed(example, [str(each) for each in addresses]))
    inventory = read_inventory(inventory_file)
    own = {name: each.network for name, each in zip(inventory.servers, addresses, strict=True)}
    for host in PEERS:
        for peer in set(PEERS) - {host}:
            behind = [network for network in own.values() if IPv4Interface(inventory.servers[peer].address) in network]
            assert str(max(behind, key=lambda network: network.prefixlen)) in routes(inventory, host)
