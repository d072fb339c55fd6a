# SPDX-License-Identifier: Apache-2.0
"""What an inventory becomes: settings documents that settings.py takes, and what switches get, as golden files."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from roundabout.settings.settings import flatten
from roundabout.spec import TrialSpec, load_profile, load_topology
from roundabout.spec.errors import SpecError
from roundabout.spec.tcp import Tcp
from roundabout.testbeds.rack.inventory import read_inventory
from roundabout.testbeds.rack.provider import RackProvider
from roundabout.testbeds.rack.rack import Rack, RackError
from roundabout.testbeds.rack.variables import (
    deployment,
    playbook_variables,
    server_variables,
    settings_document,
    trial_document,
)

pytestmark = pytest.mark.unit


def test_every_document_is_one_that_settings_takes(testbed_of_a_paper: tuple[str, Path]) -> None:
    inventory = read_inventory(testbed_of_a_paper[1])
    for server in inventory.servers.values():
        document = settings_document(inventory, server)
        flatten(document)
        assert document["roce"][server.nic]["tos"] == 106
        assert document["qos"][server.nic]["pfc"] == "-,-,-,1,-,-,-,-"
        assert document["dcqcn"][server.nic]["T_us"] == 125
        assert document["qos"][server.nic]["tc_schedule"] == "14,14,14,16,14,14,strict,14"
        assert document["qos"][server.nic]["prio_tc"] == "1,0,2,3,4,5,6,7"


def test_the_schedule_follows_the_map_of_priorities_to_classes(inventory_file: Path) -> None:
    text = inventory_file.read_text()
    inventory_file.write_text(text.replace("  vars:\n", "  vars:\n    lossless: {priority: 1}\n", 1))
    inventory = read_inventory(inventory_file)
    qos = settings_document(inventory, inventory.servers["s0"])["qos"]["ens1f0np0"]
    schedule = qos["tc_schedule"].split(",")
    service_of = [schedule[int(number)] for number in qos["prio_tc"].split(",")]
    assert service_of == ["14", "16", "14", "14", "14", "14", "strict", "14"]


def test_ofed_and_inbox_get_what_they_have(testbed_of_a_paper: tuple[str, Path]) -> None:
    inventory = read_inventory(testbed_of_a_paper[1])
    document = settings_document(inventory, inventory.servers["s0"])
    ofed = inventory.common.driver == "ofed"
    assert ("rp_enable_prio3" in document["dcqcn"]["ens1f0np0"]) == ofed
    assert ("traffic_class" in document["roce"]["ens1f0np0"]) == ofed
    assert ("trust" in document["qos"]["ens1f0np0"]) == ofed
    assert document["qos"]["ens1f0np0"]["dcbx"] == "os"
    compared = server_variables(inventory, inventory.servers["s0"])["settings_compared"]
    assert compared == {"link": {"ens1f0np0": {"speed_mbps": 25000 if testbed_of_a_paper[0] == "four" else 50000}}}
    assert "speed_mbps" not in document["link"]["ens1f0np0"]


def test_speeds_of_an_emulated_racks_links_are_not_compared(inventory_file: Path) -> None:
    emulated = "  vars:\n    emulated: {by: guests, scale: 1000, dilation: 20}\n    line"
    inventory_file.write_text(inventory_file.read_text().replace("  vars:\n    line", emulated, 1))
    inventory = read_inventory(inventory_file)
    assert server_variables(inventory, inventory.servers["s0"])["settings_compared"] == {}


def test_how_long_a_nic_may_pause_is_left_alone_unless_requested(inventory_file: Path) -> None:
    unasked = read_inventory(inventory_file)
    assert "pfc_prevention_ms" not in settings_document(unasked, unasked.servers["s0"])["link"]["ens1f0np0"]
    text = inventory_file.read_text()
    inventory_file.write_text(text.replace("driver: inbox", "driver: inbox, pfc_prevention_ms: 200"))
    requested = read_inventory(inventory_file)
    assert settings_document(requested, requested.servers["s0"])["link"]["ens1f0np0"]["pfc_prevention_ms"] == 200


def test_speed_and_other_priorities_are_changed_only_on_request(inventory_file: Path) -> None:
    default = read_inventory(inventory_file).model_dump_json()
    text = inventory_file.read_text()
    on_request = "driver: inbox, set_speed: true, pfc_only: true, link_timeout_s: 60, shared_nic: true"
    inventory_file.write_text(text.replace("driver: inbox", on_request))
    inventory = read_inventory(inventory_file)
    variables = server_variables(inventory, inventory.servers["s0"])
    assert variables["settings_document"]["link"]["ens1f0np0"]["speed_mbps"] == 50000
    assert variables["settings_document"]["qos"]["ens1f0np0"]["pfc"] == "0,0,0,1,0,0,0,0"
    assert variables["settings_compared"] == {}
    assert (variables["settings_link_timeout_s"], variables["settings_shared_nic"]) == (60, True)
    assert variables["settings_undo_after_s"] == 240 + 4 * 60
    assert "set_speed" not in default  # results keep their inventory's hash
    assert "set_speed" in inventory.model_dump_json()


def test_nv_config_only_on_request(inventory_file: Path) -> None:
    text = inventory_file.read_text()
    unasked = read_inventory(inventory_file)
    assert "nv" not in settings_document(unasked, unasked.servers["s0"])
    inventory_file.write_text(text.replace("driver: inbox", "driver: inbox, dcqcn_in_nv_config: true"))
    requested = read_inventory(inventory_file)
    assert settings_document(requested, requested.servers["s0"])["nv"] == {
        "ens1f0np0": {"ROCE_CC_LEGACY_DCQCN": 1, "T_us": 125}
    }


def test_variables_hold_no_secrets_and_are_json(inventory_file: Path) -> None:
    text = json.dumps(playbook_variables(read_inventory(inventory_file)))
    assert "pass" not in text
    assert json.loads(text)["all"]["children"]["rack"]["hosts"]["s0"]["ansible_host"] == "gpu0.example.org"


def trial(cross_traffic: dict[str, object] | None = None, /, **jobs: dict[str, object]) -> TrialSpec:
    profile = load_profile("vgg19-fig1").model_dump(by_alias=True)
    whole = {
        name: {"profile": profile, "flows": 1, "start_offset_ms": 0.0, "jitter": 0.0, **job}
        for name, job in jobs.items()
    }
    topology = load_topology("dumbbell-2x2").model_dump(by_alias=True)
    return TrialSpec.model_validate(
        {"topology": topology, "jobs": whole, "cross_traffic": cross_traffic or {}, "iterations": 1}
    )


def test_a_jobs_timer_reaches_its_own_servers_only(inventory_file: Path) -> None:
    inventory = read_inventory(inventory_file)
    spec = trial(
        j1={"workers": ["s0", "s2"], "transport": {"name": "dcqcn", "T_us": 100.0}},
        j2={"workers": ["s1", "s1"], "transport": {"name": "dcqcn", "T_us": 125.0}},
    )
    of = {host: trial_document(spec, host, inventory, rdma=True) for host in ("s0", "s1", "s2", "s3")}
    timers = {host: each["dcqcn"]["ens1f0np0"] for host, each in of.items() if each}
    assert timers == {"s0": {"T_us": 100}, "s1": {"T_us": 125}, "s2": {"T_us": 100}}
    assert of["s3"] == {}
    assert of["s0"]["route"] == {"10.10.0.0/24": {"congctl": "rb_dcqcn"}}
    for document in of.values():
        flatten(document)
    assert "dcqcn" not in trial_document(spec, "s0", inventory, rdma=False)
    assert "sysctl" not in of["s0"]  # a server's TCP stays as it was found
    requested = spec.model_copy(update={"tcp": Tcp(ecn=False, tail_loss_probes=True, delayed_acks=False)})
    document = trial_document(requested, "s0", inventory, rdma=True)
    assert document["sysctl"] == {"net.ipv4.tcp_ecn": 0, "net.ipv4.tcp_early_retrans": 3}
    assert document["route"] == {"10.10.0.0/24": {"congctl": "rb_dcqcn", "quickack": 1}}


def test_cross_traffic_hosts_get_its_transport_unless_they_run_a_worker(inventory_file: Path) -> None:
    inventory = read_inventory(inventory_file)
    cross = {"kind": "consistent", "from": "s1", "to": ["s0", "s3"], "load_gbps": 1.0,
             "transport": {"name": "dcqcn", "T_us": 90.0}}  # fmt: skip
    spec = trial({"cross": cross}, j1={"workers": ["s0", "s2"], "transport": {"name": "cubic"}})
    of = {host: trial_document(spec, host, inventory, rdma=True) for host in ("s0", "s1", "s2", "s3", "s4")}
    names = {host: each["route"]["10.10.0.0/24"]["congctl"] for host, each in of.items() if each}
    assert names == {"s0": "cubic", "s1": "rb_dcqcn", "s2": "cubic", "s3": "rb_dcqcn"}
    assert of["s1"]["dcqcn"] == {"ens1f0np0": {"T_us": 90}}


def test_machines_that_stand_for_others_say_so_and_send_less(inventory_file: Path) -> None:
    spec = trial(
        j1={"workers": ["s0", "s2"], "transport": {"name": "reno"}},
        j2={"workers": ["s1", "s3"], "transport": {"name": "dcqcn"}},
    )
    rack = Rack(read_inventory(inventory_file), spec.topology, "rack", frozenset())
    assert rack.fidelity.nature == "real"
    assert "sysctl" not in rack.settings_document(spec, "s0")
    text = inventory_file.read_text()
    emulated = "  vars:\n    emulated: {by: guests of one machine, scale: 1000, dilation: 20}\n    line"
    inventory_file.write_text(text.replace("  vars:\n    line", emulated, 1))
    slow = replace(rack, inventory=read_inventory(inventory_file))
    assert slow.fidelity.nature == "emulated"
    assert all(word in slow.fidelity.stamp for word in ("1:1000", "20 times", "guests of one machine"))
    assert (slow.bytes_on_host(1_000_000), slow.ms_on_host(5), slow.rate_on_host_bps(50)) == (20_000, 100, 50e6)
    assert RackProvider(inventory_file).dilation == 20
    reno, dcqcn = (slow.settings_document(spec, host) for host in ("s0", "s1"))
    assert reno["sysctl"] == {"net.ipv4.tcp_wmem": f"4096 16384 {round((4 << 20) / 50)}"}
    assert "sysctl" not in dcqcn  # paced: what it has under way is small
    assert {each["route"]["10.10.0.0/24"]["rto_min_ms"] for each in (reno, dcqcn)} == {4000}
    for document in (reno, dcqcn):
        flatten(document)


def test_a_dilation_above_the_scale_is_refused(inventory_file: Path) -> None:
    emulated = "  vars:\n    emulated: {by: guests, scale: 10, dilation: 20}\n    line"
    inventory_file.write_text(inventory_file.read_text().replace("  vars:\n    line", emulated, 1))
    with pytest.raises(SpecError, match="a dilation no higher than the scale"):
        read_inventory(inventory_file)


def test_a_run_deploys_programs_and_nothing_else(inventory_file: Path) -> None:
    groups = deployment(read_inventory(inventory_file), ["s0"])["all"]["children"]
    assert groups["rack"] == groups["switches"] == {"hosts": {}}
    assert "settings_document" not in groups["testbed"]["hosts"]["s0"]


def test_a_published_set_is_what_servers_get_and_switches_must_have(inventory_file: Path) -> None:
    text = inventory_file.read_text()
    parameters = {"T_us": 300.0, "byte_counter_bytes": 32767, "g": 0.0048828125, "clamp_target": 0}
    thresholds = {"Kmin_bytes": 80_000.0, "Kmax_bytes": 160_000.0, "Pmax": 1.0}
    transport = {"name": "dcqcn", "T_us": 100.0, "set": {"name": "a", "parameters": parameters, "ecn": thresholds}}
    spec = trial(j1={"workers": ["s0", "s2"], "transport": transport})
    rack = Rack(read_inventory(inventory_file), spec.topology, "rack", frozenset({"rdma"}))
    requested = rack.settings_document(spec, "s0")["dcqcn"]["ens1f0np0"]
    del parameters["g"], parameters["clamp_target"]  # which NICs keep by other names, and g as a code
    # What is given goes before the set.
    assert requested == {**parameters, "T_us": 100, "g_code": 1019, "clamp_target_rate": 0}
    inventory_file.write_text(text.replace("Kmin_cells: 1000", "Kmin_cells: 900"))
    other = replace(rack, inventory=read_inventory(inventory_file))
    with pytest.raises(RackError, match=r"switch tor0: ecn: found Kmin_bytes=72000 .*expected Kmin_bytes=80000"):
        other.prepare(spec)
    own = "ecn: {cell_bytes: 80, Kmin_cells: 1000, Kmax_cells: 1500, Pmax_percent: 100}"
    inventory_file.write_text(text.replace("ports: {s2:", f"{own}\n          ports: {{s2:"))
    with pytest.raises(RackError, match=r"switch tor1: ecn: found Kmin_bytes=80000 Kmax_bytes=120000"):
        replace(rack, inventory=read_inventory(inventory_file)).prepare(spec)


def test_queues_that_a_racks_ports_lack_are_refused(inventory_file: Path) -> None:
    spec = trial(j1={"workers": ["s0", "s2"], "transport": {"name": "reno"}})
    rack = Rack(read_inventory(inventory_file), spec.topology, "rack", frozenset({"rdma"}))
    rack.prepare(spec)
    for queue in ("drop-tail", "step"):
        with pytest.raises(RackError, match=f"queue: found {queue}, expected thresholds"):
            rack.prepare(spec.model_copy(update={"queue": queue}))
    ranked = {name: job.model_copy(update={"priority": 3}) for name, job in spec.jobs.items()}
    with pytest.raises(RackError, match=r"jobs.j1.priority: found 3, expected none"):
        rack.prepare(spec.model_copy(update={"jobs": ranked}))
