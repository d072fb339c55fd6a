# SPDX-License-Identifier: Apache-2.0
"""Switches that are only compared: Cisco NX-OS, and Enterprise SONiC by Dell. Their answers are made of public samples.

- NX-OS: "Reference-TOR-QOS-Policy-Configuration" of Azure Local (policies, and their names), and show_version and
  show_interface of ntc-templates.
- Dell: the configuration of a Z9664f-O64 in AMD's guide to backend networks of GPU clusters (names, ranges of DSCPs),
  as the management framework's renderer indents it (a blank for each level), and `show interface status` of AMD's node
  scraper.
"""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from ansible.plugins.filter.core import FilterModule
from jinja2 import Environment, FileSystemLoader

from roundabout.runner.hosts.playbooks import run_playbook
from roundabout.spec.errors import SpecError
from tests.ansible.switches import COMPARED, facts, write_inventory

pytestmark = pytest.mark.unit

Compare = Callable[[str, str], list[str]]
TEMPLATES = Path(__file__).parents[2] / "ansible/roles/switches/templates"
NXOS = """\
class-map type qos match-all RDMA
  match dscp 26
class-map type qos match-any OTHER
  match dscp 0-7,af21
class-map type qos match-any CNP
  match dscp cs6
policy-map type qos AZLocal_SERVICES
  class OTHER
    set qos-group 1
  class RDMA
    set qos-group 3
  class CNP
    set qos-group 6
policy-map type network-qos QOS_NETWORK
  class type network-qos c-8q-nq3
    mtu 9216
    pause pfc-cos 3
  class type network-qos c-8q-nq-default
    mtu 9216
policy-map type queuing QOS_EGRESS_PORT
  class type queuing c-out-8q-q3
    bandwidth remaining percent 50
    random-detect minimum-threshold 80 kbytes maximum-threshold 160 kbytes drop-probability 100 weight 0 ecn
  class type queuing c-out-8q-q-default
    bandwidth remaining percent 48
  class type queuing c-out-8q-q6
    priority level 1
system qos
  service-policy type queuing output QOS_EGRESS_PORT
  service-policy type network-qos QOS_NETWORK
"""
NXOS_PORT = """
interface PORT
  switchport mode trunk
  priority-flow-control mode on send-tlv
  priority-flow-control watch-dog-interval on
  mtu 9216
  service-policy type qos input AZLocal_SERVICES

PORT is up
admin state is up, Dedicated Interface
  Hardware: 1000/10000 Ethernet, address: 5087.89a1.d8d6 (bia 5087.89a1.d8d6)
  MTU 9216 bytes, BW 50000000 Kbit , DLY 10 usec
  full-duplex, 50 Gb/s, media type is 50G
"""
NXOS_VERSION = "  NXOS: version 10.4(5) [Maintenance Release]\n  cisco Nexus9000 C93180YC-FX3 Chassis\n"
DELL = """\
qos wred-policy ROCE
 green minimum-threshold 80 maximum-threshold 160.0 drop-probability 100
 ecn green
!
qos scheduler-policy ROCE
 !
 queue 3
  type dwrr
  weight 50
 !
 queue 6
  type strict
!
qos map dscp-tc ROCE
 dscp 0-3,5-23,25,27-47,49-63 traffic-class 0
 dscp 24,26 traffic-class 3
 dscp 4 traffic-class 4
 dscp 48 traffic-class 6
!
qos map tc-queue ROCE
 traffic-class 3 queue 3
 traffic-class 6 queue 6
!
qos map tc-pg ROCE
 traffic-class 3 priority-group 3
 traffic-class 0-2,5-7 priority-group 7
!
qos map pfc-priority-queue ROCE
 pfc-priority 3 queue 3
"""
DELL_PORT = """!
interface PORT
 description server with  blanks
 mtu 9216
 speed 50000
 queue 3 wred-policy ROCE
 scheduler-policy ROCE
 qos-map dscp-tc ROCE
 qos-map tc-queue ROCE
 qos-map tc-pg ROCE
 qos-map pfc-priority-queue ROCE
 priority-flow-control priority 3
 priority-flow-control watchdog action drop
 priority-flow-control watchdog on detect-time 200
"""
DELL_STATUS = "PORT         server with  blanks       up      none        on       50000    9216     -\n"


def answer(system: str) -> str:
    """Return what a switch answers whose settings are the wanted ones."""
    if system == "nxos":
        ports = [NXOS_PORT.replace("PORT", f"Ethernet1/{number}") for number in (1, 2)]
        return NXOS + "".join(ports) + NXOS_VERSION
    ports = [DELL_PORT.replace("PORT", f"Eth1/{number}") for number in (1, 2)]
    return (
        DELL + "".join(ports) + "".join(DELL_STATUS.replace("PORT", f"Eth1/{number}") for number in (1, 2)) + "done\n"
    )


@pytest.fixture(scope="module")
def compare(tmp_path_factory: pytest.TempPathFactory) -> Compare:
    """Return a function that compares the answer of a system with the inventory."""
    environment = Environment(loader=FileSystemLoader(TEMPLATES), trim_blocks=True, autoescape=False)
    environment.filters.update(FilterModule().filters())
    environment.tests["search"] = lambda text, pattern: bool(re.search(pattern, text))
    environment.tests["match"] = lambda text, pattern: bool(re.match(pattern, text))
    variables = {system: facts(system, tmp_path_factory.mktemp(system)) for system in COMPARED}

    def lines(system: str, text: str) -> list[str]:
        answer = {"stdout": text}
        return (
            environment.get_template(f"{system}/differs.j2")
            .render(variables[system], switches_answer=answer)
            .splitlines()
        )

    return lines


@pytest.mark.parametrize("system", COMPARED)
def test_nothing_differs_where_names_are_the_sites(compare: Compare, system: str) -> None:
    ports = {"nxos": "Ethernet1", "dell": "Eth1"}[system]
    assert compare(system, answer(system)) == [f"has {ports}/{number}: speed 50G, mtu 9216" for number in (1, 2)]
    assert compare(system, answer(system).replace("\n", "\r\n")) == compare(system, answer(system))


def test_names_are_no_patterns(compare: Compare) -> None:
    for system, name in (("nxos", "AZLocal_SERVICES"), ("nxos", "QOS_EGRESS_PORT"), ("dell", "ROCE")):
        assert compare(system, answer(system).replace(name, "a+(b")) == compare(system, answer(system))


NXOS_DRIFT = [
    ("match dscp 26", "match dscp 24-25,27", "Ethernet1/1 dscp 26: found qos-group 0 in policy AZLocal_SERVICES"),
    ("match dscp 0-7,af21", "match dscp 20-30", "Ethernet1/1 dscp 26: found qos-group 1 in policy AZLocal_SERVICES"),
    ("match dscp cs6", "match dscp cs5", "Ethernet1/2 dscp 48: found qos-group 0 in policy AZLocal_SERVICES"),
    ("    pause pfc-cos 3\n", "", "type network-qos QOS_NETWORK: found none, expected c-8q-nq3 pause pfc-cos 3"),
    ("nq-default\n", "nq4\n    pause pfc-cos 4\n", "found c-8q-nq3 pause pfc-cos 3, c-8q-nq4 pause pfc-cos 4, "),
    ("minimum-threshold 80 k", "minimum-threshold 80 m", "Ethernet1/1 queue 3: found random-detect minimum-"),
    ("drop-probability 100", "drop-probability 50", "drop-probability 100 weight 0 ecn"),
    (" weight 0 ecn", " weight 0", "Ethernet1/2 queue 3: found random-detect minimum-threshold 80 kbytes"),
    ("  service-policy type queuing output QOS_EGRESS_PORT\n", "", "Ethernet1/1 queue 3: found none in policy none, "),
    ("    priority level 1\n", "", "Ethernet1/1 queue 6: found no priority level in policy QOS_EGRESS_PORT"),
    ("  priority-flow-control mode on send-tlv\n", "", "Ethernet1/2: found no `priority-flow-control mode on`"),
    ("watch-dog-interval on", "watch-dog-interval off", "Ethernet1/1: found no `priority-flow-control watch-dog-"),
]  # fmt: skip
DELL_DRIFT = [
    ("dscp 24,26 t", "dscp 24 t", "Eth1/1 qos-map dscp-tc: found 26 in none, expected 3"),
    ("dscp 48 traffic-class 6", "dscp 48 traffic-class 0", "Eth1/2 qos-map dscp-tc: found 48 in 0, expected 6"),
    ("traffic-class 6 queue 6", "traffic-class 6 queue 5", "Eth1/1 qos-map tc-queue: found 6 in 5, expected 6"),
    (" qos-map tc-pg ROCE\n", " qos-map tc-pg OTHER\n", "Eth1/1 qos-map tc-pg: found 3 in none, expected 3"),
    ("pfc-priority 3 queue 3", "pfc-priority 3 queue 4", "Eth1/1 qos-map pfc-priority-queue: found 3 in 4, expected 3"),
    ("control priority 3\n", "control priority 3\n priority-flow-control priority 4\n",
     "Eth1/1 priority-flow-control priority: found 3,4, expected 3 only"),
    ("minimum-threshold 80 ", "minimum-threshold 2048 ", "Eth1/1 queue 3 wred-policy ROCE: found green minimum-"),
    (" ecn green\n", "", "Eth1/2 queue 3 wred-policy ROCE: found green minimum-threshold 80 maximum-threshold 160.0"),
    (" queue 3 wred-policy ROCE\n", "", "Eth1/1 queue 3 wred-policy none: found none, expected green"),
    ("-policy ROCE\n qos-map", "-policy OTHER\n qos-map", "Eth1/1 scheduler-policy OTHER: found no strict"),
    ("  type strict\n", "  type dwrr\n", "Eth1/1 scheduler-policy ROCE: found no strict queue 6, expected one"),
    (" priority-flow-control watchdog on detect-time 200\n", "", "Eth1/2: found no `priority-flow-control watchdog`"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("system", "old", "new", "message"),
    [("nxos", *each) for each in NXOS_DRIFT] + [("dell", *each) for each in DELL_DRIFT],
)
def test_what_differs_is_named(compare: Compare, system: str, old: str, new: str, message: str) -> None:
    text = answer(system)
    assert old in text
    found = [line for line in compare(system, text.replace(old, new)) if line.startswith("differs ")]
    assert any(message in line for line in found), found
    assert len(found) in (1, 2, 4)  # one for all ports, or one or two for each


@pytest.mark.parametrize(("system", "old", "new", "lines"), [
    ("nxos", "MTU 9216 bytes, BW 50000000", "MTU 1500 bytes, BW 100000000", [
        "port Ethernet1/1 mtu: found 1500, expected 4200 or more: interface Ethernet1/1, mtu 9216",
        "port Ethernet1/1 speed: found 100G, expected 50G"]),
    ("dell", "on       50000    9216", "on       100000    1500", [
        "port Eth1/1 mtu: found 1500, expected 4200 or more: interface Eth1/1, mtu 9216",
        "port Eth1/1 speed: found 100G, expected 50G"]),
])  # fmt: skip
def test_ports_are_compared(compare: Compare, system: str, old: str, new: str, lines: list[str]) -> None:
    found = [line for line in compare(system, answer(system).replace(old, new, 1)) if line.startswith("port ")]
    assert found == lines


def test_playbooks_compare_and_change_nothing(tmp_path: Path) -> None:
    """A switch answers all commands at once, and notes them."""
    answers = {
        "nxos": answer("nxos").replace("level 1", "level"),
        "dell": "platform x\nrelease 4.2.1-Enterprise_Standard\n",
    }
    hosts = {}
    for system in COMPARED:
        (tmp_path / system).write_text(
            answers[system] + answer(system).replace("  type strict\n", "") * (system == "dell")
        )
        said = ["sh", "-c", f"cat >> {tmp_path / system}.said; cat {tmp_path / system}"]
        hosts[system] = facts(system, tmp_path) | {"switches_ssh": said}
    inventory = tmp_path / "hosts.json"
    inventory.write_text(json.dumps({"all": {"children": {"rack": {"hosts": {}}, "switches": {"hosts": hosts}}}}))
    shown: list[str] = []
    assert run_playbook("site", [inventory], show=shown.append).changed == {"dell": 0, "nxos": 0}
    text = " ".join(" ".join(shown).split())
    assert "differs Ethernet1/1 queue 6: found no priority level in policy QOS_EGRESS_PORT, expected one" in text
    assert "switch nxos is compared only: Roundabout changes no nxos" in text
    assert "differs Eth1/1 scheduler-policy ROCE: found no strict queue 6, expected one" in text
    said = (tmp_path / "nxos.said").read_text()
    assert not re.search(r"^(?!terminal length 0|show |exit|$)", said, re.MULTILINE)


@pytest.mark.parametrize("system", COMPARED)
def test_an_inventory_with_leave_to_change_one_is_refused(tmp_path: Path, system: str) -> None:
    with pytest.raises(SpecError, match=f"apply_on: found one, expected none, as {system} is compared only"):
        write_inventory(system, tmp_path, tried="{platform: a, release: '1'}")
