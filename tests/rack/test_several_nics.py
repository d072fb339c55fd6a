# SPDX-License-Identifier: Apache-2.0
"""Servers with several NICs: their inventory, settings, leases, commands and checks, with two and with eight rails."""

import json
import os
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import typer

from roundabout.cli.rack import verify
from roundabout.core.errors import UsageError
from roundabout.runner.hosts.host_group import Nic
from roundabout.runner.hosts.playbooks import Result
from roundabout.runner.trial.jobs import job_description
from roundabout.runner.trial.sampler import host_sampler
from roundabout.settings import settings
from roundabout.settings.settings_host import Host
from roundabout.spec import SpecError, TrialSpec
from roundabout.spec.topology import Topology
from roundabout.testbeds.rack import examination, provider as rack_provider, rack_lease
from roundabout.testbeds.rack.dcqcn_check import Owner
from roundabout.testbeds.rack.examination import Finding, query_capabilities, script_arguments
from roundabout.testbeds.rack.inventory import Inventory, read_inventory
from roundabout.testbeds.rack.provider import RackProvider
from roundabout.testbeds.rack.rack import Rack, host_of
from roundabout.testbeds.rack.rail_check import find_rail_gaps
from roundabout.testbeds.rack.rdma_class_check import RdmaEnd, Row
from roundabout.testbeds.rack.variables import server_variables, trial_document
from tests.rack.examined_hosts import add_tool
from tests.settings.conftest import TREES, run_here
from tests.several_paths.fabrics import rails
from tests.several_paths.trials import build_rails, planned

pytestmark = pytest.mark.unit

INVENTORY = """
all:
  vars: {{line_rate_gbps: 50, payload_rate_gbps: 43}}
  children:
    rack:
      vars: {{driver: ofed, mtu_bytes: 4200, irq_cpus: "0-1"{variables}}}
      hosts:
{servers}
    switches:
      vars: {{system: unmanaged}}
      hosts:
{switches}
"""
SERVER = """
        s{host}:
          ansible_host: gpu{host}
          nics:
"""
NIC = "            - {{nic: eth{device}, address: 10.0.{device}.{address}/24, link: s{host}-{rail}}}\n"


def text_of(nics: int, servers: int = 2, variables: str = "") -> str:
    """Return the inventory of `rails`, whose server s0 has the NICs eth2 and so on of the stand-in servers."""
    hosts = "".join(
        SERVER.format(host=host)
        + "".join(NIC.format(device=2 + rail, address=1 + host, host=host, rail=rail) for rail in range(nics))
        for host in range(servers)
    )
    ports = [[f"s{host}-{rail}: p{host}" for host in range(servers)] + [f"up{rail}: p99"] for rail in range(nics)]
    switches = [f"        rail{rail}: {{ports: {{{', '.join(each)}}}}}\n" for rail, each in enumerate(ports)]
    spine = ", ".join(f"up{rail}: p{rail}" for rail in range(nics))
    switches.append(f"        spine: {{ports: {{{spine}}}}}\n")
    return INVENTORY.format(servers=hosts, switches="".join(switches), variables=variables)


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    def write_text(*arguments: Any, change: tuple[str, str] = ("", ""), **others: Any) -> Path:
        text = text_of(*arguments, **others)
        assert change[0] in text
        (tmp_path / "inventory").write_text(text.replace(*change, 1))
        return tmp_path / "inventory"

    return write_text


MISTAKES = [
    ("nic: eth3", "nic: eth2", "hosts.s0.nics[1].nic: found 'gpu0 eth2' a second time (first in all.children"),
    ("nic: eth3", "nci: eth3", "hosts.s0.nics[1].nci: found the unknown field 'nci', expected one of"),
    ("nic: eth3, ", "", "hosts.s0.nics[1].nic: found nothing, expected a value"),
    ("10.0.3.1/24", "10.0.2.1/24", "hosts.s0.nics[1].address: found '10.0.2.1' a second time (first in"),
    ("10.0.3.1/24", "10.0.2.9/24", "s0.nics[1].address: found '10.0.2.9/24', in the subnet of another NIC, expected"),
    ("link: s0-1", "link: s0-0", "hosts.s0.nics[1].link: found 's0-0' a second time (first in"),
    ("link: s0-1", "link: s7-1", "hosts.s0.nics[1].link: found 's7-1', which no switch has, expected a link in a port"),
    ("link: s0-1}", "link: s0-1, table: 0}", "hosts.s0.nics[1].table: found 0, expected at least 1"),
    ("ansible_host: gpu0", "ansible_host: gpu0\n          nic: eth0", "s0.nic: found the unknown field 'nic'"),
]  # fmt: skip


@pytest.mark.parametrize(("right", "wrong", "message"), MISTAKES)
def test_a_mistake_about_a_nic_is_one_message(write: Callable[..., Path], right: str, wrong: str, message: str) -> None:
    path = write(2, change=(right, wrong))
    with pytest.raises(SpecError) as error:
        read_inventory(path)
    assert message in error.value.message
    assert f"{path}:" in error.value.message


@pytest.fixture
def without_rail(write: Callable[..., Path]) -> Path:
    """Return an inventory without rail 2 of s1, which neither the server nor the switch lists."""
    path = write(3, change=("            - {nic: eth4, address: 10.0.4.2/24, link: s1-2}\n", ""))
    path.write_text(path.read_text().replace("s1-2: p1, ", ""))
    return path


def test_doctor_and_verify_name_a_rail_that_server_and_switch_lack(
    without_rail: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    nics = read_inventory(without_rail).nics
    monkeypatch.setattr(rack_provider, "examine_hosts", lambda _: dict.fromkeys(nics, ()))
    monkeypatch.setattr(rack_provider, "check_ports", lambda *_: {})
    (check,) = RackProvider(without_rail).checks()
    found = "found 2 NICs, none at switch rail2; s0 has 3"
    assert (check.name, check.good, check.found) == ("s1 nics", False, found)
    monkeypatch.setattr(verify, "run", lambda *_: Result({}, {"s0": {}, "s1": {}}, 1.0))
    with pytest.raises(typer.Exit) as ended:
        verify.command(str(without_rail))
    assert ended.value.exit_code == 0
    assert f"s1 nics: {found}; list the NIC in the server's `nics`" in capsys.readouterr().err


@pytest.mark.parametrize("nics", [1, 3])
def test_servers_with_the_same_rails_have_no_gap(write: Callable[..., Path], nics: int) -> None:
    assert list(find_rail_gaps(read_inventory(write(nics)))) == []


def test_servers_at_switches_of_their_own_may_have_more_nics(write: Callable[..., Path]) -> None:
    """As storage servers beside GPU servers."""
    path = write(3)
    alone = "        apart: {ports: {s2: p1}}\n        spine:"
    text = (
        path.read_text()
        .replace("        spine:", alone)
        .replace(
            "    switches:",
            "        s2: {ansible_host: disk0, nic: eth9, address: 10.9.0.1/24, link: s2}\n    switches:",
        )
    )
    path.write_text(text)
    assert list(find_rail_gaps(read_inventory(path))) == []


def test_one_nic_in_a_list_is_a_server_with_one_nic(write: Callable[..., Path]) -> None:
    inventory = read_inventory(write(1))
    (nic,) = inventory.nics_of("s0")
    assert (nic.name, nic.nic.nic, nic.address) == ("s0 eth2", "eth2", "10.0.2.1")
    again = Inventory.model_validate_json(inventory.model_dump_json())
    assert again == inventory


def rack_of(path: Path, topology: Topology, *capabilities: Any) -> Rack:
    devices = {f"s{host} eth{2 + rail}": f"mlx5_{rail}" for host in range(2) for rail in range(8)}
    return Rack(read_inventory(path), topology, "rack", frozenset(capabilities), devices)


def ring(nics: int, *, pxn: bool = False) -> TrialSpec:
    return build_rails(rails(2, nics, pxn), ["s0", "s1"], "ring", nics, 0.5 / nics)


@pytest.mark.parametrize("nics", [2, 8])
def test_the_links_of_a_topology_choose_nics_in_its_order(write: Callable[..., Path], nics: int) -> None:
    path, topology = write(nics), rails(2, nics)
    host = rack_of(path, topology).hosts["s0"]
    assert host.nics == tuple(Nic(f"eth{2 + rail}", f"10.0.{2 + rail}.1") for rail in range(nics))
    assert host.nccl.hca == ",".join(f"mlx5_{rail}:1" for rail in range(nics))
    turned = Topology.model_validate(topology.model_dump() | {"links": topology.links[::-1]})
    assert rack_of(path, turned).hosts["s0"].nics == host.nics[::-1]
    RackProvider(path).check_trial(ring(nics))
    workers = job_description(planned(ring(nics)), "j", rack_of(path, topology))["workers"]
    assert [worker["nics"] for worker in workers] == [
        [f"10.0.{2 + rail}.{1 + number}" for rail in range(nics)] for number in range(2)
    ]
    assert host_sampler(host, {"rdma"})[4] == ",".join(nic.interface for nic in host.nics)


@pytest.mark.parametrize(("trainer", "is_refused"), [
    ({"name": "ddp", "backend": "gloo"}, True),
    ({"name": "ddp", "backend": "nccl"}, False),
    ({"name": "program", "command": "train", "pattern": "nccl-tests"}, False),
])  # fmt: skip
def test_a_trainer_that_sends_by_the_first_nic_alone_is_refused(
    write: Callable[..., Path], trainer: dict[str, Any], is_refused: bool
) -> None:
    spec = ring(2)
    job = spec.jobs["j"].model_dump(by_alias=True) | {"trainer": trainer}
    trial = TrialSpec.model_validate(spec.model_dump(by_alias=True) | {"jobs": {"j": job}})
    message = "jobs.j.trainer.name: found ddp without NCCL on topology rails, allowed where hosts have several NICs"
    with pytest.raises(UsageError, match=message) if is_refused else nullcontext():
        RackProvider(write(2)).check_trial(trial)


def test_a_topology_may_have_some_of_the_nics(write: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    requested: list[str] = []

    def query(_inventory: object, names: list[str]) -> dict[str, list[Finding]]:
        requested.extend(names)
        return {name: [Finding("ssh", True, "", ""), Finding("RDMA device", True, name[-1], "")] for name in names}

    monkeypatch.setattr("roundabout.testbeds.rack.rack.query_capabilities", query)
    monkeypatch.setattr("roundabout.testbeds.rack.rack.verify_host_keys", lambda *_: None)
    rack = Rack.reach(read_inventory(write(8)), rails(2, 2), "rack")
    assert requested == ["s0 eth2", "s0 eth3", "s1 eth2", "s1 eth3"]
    assert rack.hosts["s1"].nccl.hca == "2:1,3:1"
    assert list(rack.settings_document(ring(2), "s0")["route"]) == ["10.0.2.0/24", "10.0.3.0/24"]


@pytest.mark.parametrize("nics", [2, 8])
def test_a_machine_is_leased_once(write: Callable[..., Path], nics: int) -> None:
    inventory, topology = read_inventory(write(nics)), rails(2, nics)
    names = rack_lease.lease_names(inventory, topology.hosts, [link.name for link in topology.links], ())
    assert [name for name in names if name.startswith("host")] == ["host gpu0", "host gpu1"]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("nics", [2, 8])
def test_settings_between_trials_are_applied_journaled_and_restored_on_every_nic(
    write: Callable[..., Path], nics: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Host, "run", run_here)
    TREES.build("connectx-5-ofed", tmp_path / "s0", nics)
    host, before = Host(tmp_path / "s0", tmp_path / "state"), TREES.snapshot(tmp_path / "s0")
    inventory = read_inventory(write(nics))
    variables = server_variables(inventory, inventory.servers["s0"])
    document, by_nic = variables["settings_document"], variables["settings_by_nic"]
    interfaces = [f"eth{2 + rail}" for rail in range(nics)]
    assert list(by_nic) == list(document["dcqcn"]) == interfaces
    assert variables["settings_undo_after_s"] == 240 + nics * 4 * 15  # a wait for each NIC's link
    assert variables["settings_compared"] == {"link": {nic: {"speed_mbps": 50000} for nic in interfaces}}
    answer = settings.apply(host, document, "provision")
    assert answer["differs"] == []
    assert {change.split()[1] for change in answer["changed"] if change.startswith("qos")} == {*interfaces}
    assert settings.read(host, by_nic[interfaces[-1]])["differs"] == []  # what that NIC's appearance applies
    link = tmp_path / f"s0/link-{interfaces[-1]}"
    link.write_text(json.dumps(json.loads(link.read_text()) | {"mtu": 1500}))
    (drift,) = settings.drifted(host)["differs"]
    assert drift["setting"] == f"link {interfaces[-1]} mtu"
    assert settings.restore(host, "provision")["failed"] == []
    assert TREES.snapshot(tmp_path / "s0") == before


def test_a_trial_sets_the_routes_and_parameters_of_the_nics_of_its_topology(write: Callable[..., Path]) -> None:
    inventory = read_inventory(write(2))
    fields = ring(2).model_dump(mode="json", by_alias=True)
    fields["jobs"]["j"]["transport"] = {"name": "dcqcn", "T_us": 100.0}
    document = trial_document(TrialSpec.model_validate(fields), "s0", inventory, rdma=True)
    assert document["dcqcn"] == {"eth2": {"T_us": 100}, "eth3": {"T_us": 100}}
    assert list(document["route"]) == ["10.0.2.0/24", "10.0.3.0/24"]


@pytest.mark.parametrize(("pxn", "routes"), [
    (True, ["10.0.2.0/24", "10.0.3.0/24 table 103"]),
    (False, ["10.0.2.0/24", "10.0.3.0/24", "10.0.2.0/24 table 103", "10.0.3.0/24 table 103"]),
])  # fmt: skip
def test_routes_are_those_of_the_table_of_each_nic(write: Callable[..., Path], pxn: bool, routes: list[str]) -> None:
    """Only with PXN do flows between two rails leave by the receiver's."""
    inventory = read_inventory(write(2, change=("link: s0-1}", "link: s0-1, table: 103}")))
    document = trial_document(ring(2, pxn=pxn), "s0", inventory, rdma=False)
    assert list(document["route"]) == routes
    settings.flatten(document)


def test_an_exporter_names_the_links_of_all_nics(write: Callable[..., Path]) -> None:
    target = next(iter(RackProvider(write(2)).exporter_targets()))
    assert {name: each["out"] for name, each in target.facts["interfaces"].items()} == {
        "eth2": "s0 to rail0",
        "eth3": "s0 to rail1",
    }
    assert len([metric for metric, *_ in target.facts["series"] if "capacity" in metric]) == 4


# --- Checks


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Every host has the RDMA devices of eth2 and eth3, and a tool `ip`, whose script is given."""

    def build(ip: str) -> None:
        for number in range(2):
            (tmp_path / f"root/sys/class/net/eth{2 + number}/device/infiniband/mlx5_{number}").mkdir(parents=True)
        add_tool(tmp_path / "bin/ssh", f'shift 9; eval "set -- $*"; shift 5; exec /bin/sh -s -- {tmp_path}/root "$@"')
        add_tool(tmp_path / "bin/ip", ip)
        monkeypatch.setenv("PATH", str(tmp_path / "bin"))

    return build


def test_doctor_examines_every_nic(write: Callable[..., Path], machine: Callable[[str], None]) -> None:
    machine("exit 1")
    path = write(2, change=("link: s1-1}", "link: s1-1, hca: mlx5_7:1}"))
    checks = {check.name: check for check in RackProvider(path).checks()}
    assert checks["s0 eth2 RDMA device"].found == "mlx5_0"
    assert checks["s0 eth3 RDMA device"].found == "mlx5_1"
    assert checks["s1 eth3 hca"].found == "mlx5_7:1 in the inventory, mlx5_1 of eth3"
    assert "s0 system" in checks  # what all NICs of a host share is one line
    assert not [name for name in checks if "eth" in name and name.endswith("system")]


def test_a_nic_is_examined_with_the_peers_of_its_rail(write: Callable[..., Path]) -> None:
    inventory = read_inventory(write(8, servers=3))
    words = script_arguments(inventory, inventory.nics["s1 eth9"])
    assert words[1] == "eth9"
    assert words[-2:] == ["10.0.9.1", "10.0.9.3"]


def test_a_host_that_does_not_answer_is_contacted_once(
    write: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_tool(tmp_path / "bin/ssh", f"echo x >> {tmp_path}/calls; exit 255")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=os.pathsep)
    inventory = read_inventory(write(8))
    found = query_capabilities(inventory, inventory.nics)
    assert len(found) == 16
    assert not any(each.good for each in found["s1 eth9"])
    assert (tmp_path / "calls").read_text().split() == ["x", "x"]


@pytest.mark.parametrize(("shown", "table", "expected"), [
    ("dev eth3 uid 0", None, []),
    ("dev eth3 table 103 uid 0", 103, []),
    ("dev eth2 uid 0", None, ["packets from 10.0.3.1 to 10.0.3.2 leave by eth2"]),
    ("dev eth3 table 103 uid 0", None, ["main in the inventory, 103 of packets from it"]),
    ("dev eth3 uid 0", 103, ["103 in the inventory, main of packets from it"]),
])  # fmt: skip
def test_doctor_names_a_route_by_another_nic_or_table(
    write: Callable[..., Path], machine: Callable[[str], None], shown: str, table: int | None, expected: list[str]
) -> None:
    """`ip route get` answers as iproute2 6.1 does, where a rule for the address may name a table."""
    machine(f'case "$*" in *" get 10.0.3.2 from 10.0.3.1") echo 10.0.3.2 from 10.0.3.1 {shown} ;; esac')
    given = "link: s0-1}" if table is None else f"link: s0-1, table: {table}}}"
    inventory = read_inventory(write(2, change=("link: s0-1}", given)))
    found = examination.examine_hosts(inventory)["s0 eth3"]
    wrong = [each for each in found if each.name in ("route", "routing table") and not each.good]
    assert [each.found for each in wrong] == expected
    assert all(each.mend for each in wrong)


def test_traffic_stays_on_its_rail(write: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(2, servers=3)
    inventory = read_inventory(path)
    tested: list[Sequence[RdmaEnd]] = []
    timed: list[list[str]] = []

    def check(rails: list[list[RdmaEnd]], _lossless: object) -> list[Row]:
        tested.extend(rails)
        return []

    def check_timers(rail: list[RdmaEnd], rates: dict[str, float], *_: object) -> list[Row]:
        timed.append([end.host.name for end in rail if rates[end.host.name] == 50])
        return []

    findings = [("ssh", ""), ("RDMA device", "mlx5_0"), ("GID", "3 is it"), ("ib_write_bw", "")]
    found = {nic: [Finding(name, True, text, "") for name, text in findings] for nic in inventory.nics}
    hosts = {host_of(inventory, name): None for name in inventory.servers}
    monkeypatch.setattr(rack_provider, "query_capabilities", lambda *_: found)
    monkeypatch.setattr("roundabout.runner.machine.machine_lease.hold", lambda *_: nullcontext())
    monkeypatch.setattr(RackProvider, "read_only_session", lambda *_: nullcontext(hosts))
    monkeypatch.setattr(Owner, "restore", lambda *_: None)
    monkeypatch.setattr(rack_provider, "JOURNALS", tmp_path / "journals")
    monkeypatch.setattr(rack_provider, "check_traffic", check)
    monkeypatch.setattr(rack_provider, "check_timers", check_timers)
    assert list(RackProvider(path).check_traffic("o")) == []
    assert [[(end.host.name, end.host.interface, end.host.address) for end in rail] for rail in tested] == [
        [(f"s{host} eth{2 + rail}", f"eth{2 + rail}", f"10.0.{2 + rail}.{1 + host}") for host in range(3)]
        for rail in range(2)
    ]
    assert timed == [["s0 eth2", "s1 eth2", "s2 eth2"], ["s0 eth3", "s1 eth3", "s2 eth3"]]
