# SPDX-License-Identifier: Apache-2.0
"""Probes of flows' routes: their packets, and what routers' answers say of a route."""

import json
import os
import socket
import struct
import sys
import time
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from roundabout.core.paths import ROOT
from roundabout.runner.hosts.connections import LocalConnection
from roundabout.runner.session.connectivity_check import PINGER
from roundabout.runner.trial.routes import flow_probes
from roundabout.runner.trial.routes.flow_probes import FlowProbe, list_probes, probe_request, probe_routes
from roundabout.runner.trial.routes.route_readback import FoundRoute, describe_differences, find_route
from roundabout.spec import TrialSpec, load_topology
from roundabout.spec.routing import Routing
from roundabout.spec.topology import Topology
from roundabout.testbeds.lab.forwarding.switch_routes import list_entries
from roundabout.testbeds.lab.network.layout import lay_out
from tests.running import load_program
from tests.several_paths.fabrics import leaf_spine, rails
from tests.several_paths.trials import build_leaf_spine, build_rails, plan_lab, planned, trained_by_ddp

pytestmark = pytest.mark.unit

PROGRAM = ROOT / "collectors/route_probe.py"
ADDRESSES = st.ip_addresses(v=4).map(str)
PORTS = st.integers(1, 65535)
FLOWS = st.fixed_dictionaries(
    {"source": ADDRESSES, "source_port": PORTS, "destination": ADDRESSES, "destination_port": PORTS}
)


route_probe = load_program(PROGRAM)


def answer_to(packet: bytes, kind: int = 11, options: int = 0, kept: int = 28) -> bytes:
    """Return a router's answer: an IPv4 header with so many words of options, ICMP, and the begin of `packet`."""
    header = struct.pack("!B19x", 4 << 4 | 5 + options) + bytes(4 * options)
    return header + struct.pack("!BBHI", kind, 0, 0, 0) + packet[:kept]


@given(FLOWS, st.integers(1, 64), st.integers(0, 10), st.integers(28, 40))
def test_an_answer_gives_its_flow_and_hop(flow: dict[str, Any], hop: int, options: int, kept: int) -> None:
    packet = route_probe.build_packet(flow, hop)
    assert packet[8] == hop  # the time to live
    assert route_probe.parse_answer(answer_to(packet, options=options, kept=kept)) == (route_probe.flow_key(flow), hop)


@given(FLOWS, st.integers(1, 64), st.integers(0, 27))
def test_other_and_cut_packets_are_no_answer(flow: dict[str, Any], hop: int, kept: int) -> None:
    packet = route_probe.build_packet(flow, hop)
    assert route_probe.parse_answer(answer_to(packet, kind=3)) is None
    assert route_probe.parse_answer(answer_to(packet, kept=kept if kept < 24 else 23)) is None
    datagram = packet[:9] + bytes([socket.IPPROTO_UDP]) + packet[10:]
    assert route_probe.parse_answer(answer_to(datagram)) is None


@given(st.binary(max_size=80))
def test_no_packet_breaks_the_parser(packet: bytes) -> None:
    route_probe.parse_answer(packet)


SWITCHES = ("leaf0", "leaf1", "spine0", "spine1")
SWITCH_OF = {f"10.0.255.{number}": name for number, name in enumerate(SWITCHES, start=1)}
ADDRESS_OF = {name: address for address, name in SWITCH_OF.items()}


def a_probe(topology: Topology, sender: str = "s0", receiver: str = "s2", hidden: str | None = None) -> FlowProbe:
    ports = (None, None) if hidden else (61000, 29500)
    ends = ("10.0.0.1", ports[0], "10.0.0.2", ports[1])
    return FlowProbe("j", sender, receiver, 0, *ends, topology.path(sender, receiver), hidden)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.sampled_from([*ADDRESS_OF.values(), "192.0.2.1", None]), min_size=3, max_size=3), st.integers(0, 9))
def test_a_route_is_as_planned_only_if_each_hop_answered_so(answers: list[str | None], seed: int) -> None:
    topology = leaf_spine(routing=Routing(name="ecmp", seed=seed))
    probe = a_probe(topology)
    route = find_route(probe, answers, SWITCH_OF, topology)
    names = tuple(SWITCH_OF.get(answer or "") for answer in answers)
    assert route.switches == names
    planned = tuple(hop.link.name for hop in probe.planned)
    if names == probe.planned_switches:
        assert (route.as_planned, route.cables, route.unknown) == (True, planned, None)
        assert describe_differences([route]) is None
        return
    assert route.as_planned is not True
    assert (route.as_planned is False) == any(
        name not in (None, plan) for name, plan in zip(names, probe.planned_switches, strict=True)
    )
    assert route.unknown or None not in (*names, *route.cables)
    if route.as_planned is None:
        assert all(cable in (None, plan) for cable, plan in zip(route.cables, planned, strict=True))


@pytest.mark.parametrize(("answers", "unknown"), [
    (["10.0.255.1", None, "10.0.255.2"], "no router answered at hop 2"),
    ([None, None, None], "no router answered at hop 1"),
    (["10.0.255.1", "192.0.2.1", None], "192.0.2.1 answered at hop 2, which the inventory gives to no switch"),
    (["10.0.255.1", "10.0.255.2", "10.0.255.3"], "0 cables of the topology join leaf0 and leaf1"),
    ("the probe failed on s0: not permitted", "the probe failed on s0: not permitted"),
])  # fmt: skip
def test_what_is_not_known_of_a_route_is_said(answers: Any, unknown: str) -> None:
    topology = leaf_spine()
    route = find_route(a_probe(topology), answers, SWITCH_OF, topology)
    assert route.unknown == unknown
    assert unknown in str(describe_differences([route])) or route.as_planned is False


def test_parallel_cables_are_not_distinguished() -> None:
    topology = load_topology("cluster-24-48links")
    probe = a_probe(topology, "s0", "s23")
    address_of = {name: f"10.1.0.{number}" for number, name in enumerate(topology.switches)}
    answers = [address_of[name] for name in probe.planned_switches]
    route = find_route(probe, answers, {address: name for name, address in address_of.items()}, topology)
    assert route.switches == probe.planned_switches
    assert route.as_planned is None
    assert "2 cables of the topology join" in str(route.unknown)


def test_differences_are_one_text() -> None:
    other = FoundRoute("j", "s0", "s2", 1, 61001, 29500, ("leaf0", "spine1", "leaf1"), (), None, False)
    unknown = other._replace(number=2, as_planned=None, unknown="no router answered at hop 1")
    planned_ = other._replace(as_planned=True)
    text = str(describe_differences([planned_, other, unknown]))
    assert "1 of 3 flows take other switches than planned, as j flow 1, s0 to s2: leaf0, spine1, leaf1." in text
    assert "1 of 3 flows are not known, as j flow 2, s0 to s2: no router answered at hop 1" in text
    assert describe_differences([planned_]) is describe_differences([]) is None


def ends_of(probe: FlowProbe) -> tuple[str, str, int | None, int | None]:
    return probe.source, probe.destination, probe.source_port, probe.destination_port


@pytest.mark.parametrize("spec", [
    build_leaf_spine({"name": "ecmp", "seed": 5}, "dctcp", 3),
    build_rails(rails(2, 2), ["s0", "s0", "s1", "s1"], "all-to-all", 1, 0.3),
    build_rails(rails(2, 2, pxn=True), ["s0", "s0", "s1", "s1"], "all-to-all", 2, 0.3),
], ids=["leaf-spine", "rails", "pxn"])  # fmt: skip
def test_probes_have_the_addresses_and_ports_that_a_lab_routes(spec: TrialSpec) -> None:
    probes = list_probes(planned(spec), plan_lab(spec.topology))
    routed = {entry[1:5] for entry in list_entries(lay_out(spec.topology), spec) if entry.sender_port}
    found = {ends_of(probe) for probe in probes}
    assert len(found) == len(probes)
    assert routed == found | {(other, own, there, here) for own, other, here, there in found}


def test_a_trial_of_one_job_probes_its_flows_alone() -> None:
    trial = replace(planned(build_leaf_spine({"name": "ecmp"}, "dctcp")), job="j1")
    assert {probe.user for probe in list_probes(trial, plan_lab(trial.spec.topology))} == {"j1"}


def test_flows_whose_ports_are_not_known_are_not_probed() -> None:
    spec = build_leaf_spine({"name": "ecmp"}, "dctcp")
    trainers = list_probes(planned(trained_by_ddp(spec, "ecmp")), plan_lab(spec.topology))
    assert {probe.hidden for probe in trainers} == {"the trainer ddp leaves source ports to the kernel"}
    static = build_leaf_spine({"name": "static"}, "dctcp")
    (hidden,) = {probe.hidden for probe in list_probes(planned(static), plan_lab(static.topology))}
    assert hidden == "with static routing trainers leave source ports to the kernel"
    host = plan_lab(spec.topology).hosts["s0"]
    assert probe_routes(LocalConnection("s0"), host, trainers) == {}
    route = find_route(trainers[0], (), {}, spec.topology)
    assert (route.switches, route.source_port, route.as_planned) == ((), None, None)


def test_a_host_that_cannot_probe_says_why(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = build_leaf_spine({"name": "ecmp"}, "dctcp")
    lab = plan_lab(spec.topology)
    probes = [probe for probe in list_probes(planned(spec), lab) if probe.sender == "s0"]
    monkeypatch.setattr(flow_probes, "PYTHON", "false")
    (reason,) = set(map(str, probe_routes(LocalConnection("s0"), lab.hosts["s0"], probes).values()))
    assert reason == "the probe failed on s0: exit status 1"


def test_a_request_probes_as_many_routers_as_there_are_switches() -> None:
    (request,) = json.loads(json.dumps([probe_request(a_probe(leaf_spine()))]))
    assert request == {
        "source": "10.0.0.1", "source_port": 61000, "destination": "10.0.0.2", "destination_port": 29500, "hops": 3,
    }  # fmt: skip


class SteadyIcmp:
    """A raw socket that always has a packet, as on a host that others ping without a pause."""

    def __init__(self, packet: bytes) -> None:
        self.packet = packet
        self.give_up_s = time.monotonic() + 5

    def fileno(self) -> int:
        return READABLE

    def recvfrom(self, _most: int) -> tuple[bytes, tuple[str, int]]:
        assert time.monotonic() < self.give_up_s, "it still receives, 5 s later"
        return self.packet, ("10.0.0.9", 0)


READABLE = os.open("/dev/zero", os.O_RDONLY)
ECHO_REQUEST = b"\x45" + bytes(19) + struct.pack("!BBHHH", 8, 0, 0, 7, 7) + bytes(56)


@pytest.mark.parametrize("seconds", [0.01, 0, -1])
def test_a_wait_for_routers_answers_ends_while_others_send_icmp(seconds: float) -> None:
    answers: dict[Any, str] = {}
    route_probe.receive_answers(SteadyIcmp(ECHO_REQUEST), answers, seconds, {"an answer that never comes"})
    assert answers == {}


@pytest.mark.parametrize("seconds", [0.01, 0, -1])
def test_a_wait_for_pings_answers_ends_while_others_send_icmp(seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["-c", "lo", "127.0.0.1", "10", "0.01", "1"])
    pinger: dict[str, Any] = {}
    exec(PINGER, pinger)
    rtts_ms: dict[int, float] = {}
    pinger["receive"](SteadyIcmp(ECHO_REQUEST), "10.0.0.9", {7: 0.0}, rtts_ms, time.monotonic() + seconds)
    assert rtts_ms == {}
