# SPDX-License-Identifier: Apache-2.0
"""Hosts with several NICs: the rails of flows, on the plan and in both models."""

from itertools import permutations, product
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from pydantic import ValidationError

from roundabout import load_experiment
from roundabout.models.fluid import ResidualCapacity, fluid_jobs, residual_of_loads
from roundabout.models.packets import PS_PER_MS, Fabric, Load, Loads, Streams, play_trial
from roundabout.models.packets.network import number_ports
from roundabout.plan.routes import FlowRoute, list_routes
from roundabout.runner.trial.cross_traffic import sender_command, sink_command, traffic_endpoints
from roundabout.spec import SpecError, TrialSpec
from roundabout.spec.routing import Flow, Routing
from roundabout.spec.topology import Topology
from roundabout.testbeds.fluid.engine_trial import compute_trial
from tests.packets.comparisons.flow_level import differences_ms
from tests.several_paths.fabrics import rails
from tests.several_paths.trials import build_rails, plan_lab, planned

pytestmark = pytest.mark.unit


def crossed(route: FlowRoute) -> tuple[str, ...]:
    """Return the cables of a route without the names of their hosts."""
    return tuple(cable.split("-")[-1] for cable in route.cables)


@given(st.integers(2, 4), st.integers(1, 8))
@settings(max_examples=10, deadline=None)
def test_each_channel_of_a_ring_stays_on_a_rail(nics: int, flows: int) -> None:
    spec = build_rails(rails(2, nics), ["s0", "s1"], "ring", flows, 0.5 / flows)
    for route in list_routes(spec):
        rail = str(route.number % nics)
        assert crossed(route) == (rail, rail)


@pytest.mark.parametrize(("pxn", "between"), [(False, ("0", "up0", "up1", "1")), (True, ("1", "1"))])
def test_flows_between_rails_cross_the_spine_or_nvlink(pxn: bool, between: tuple[str, ...]) -> None:
    """Ranks 0 and 1 are the GPUs of s0, ranks 2 and 3 those of s1."""
    spec = build_rails(rails(2, 2, pxn), ["s0", "s0", "s1", "s1"], "all-to-all", 1, 0.3)
    topology, job = spec.topology, spec.jobs["j"]
    paths = {
        (sender, receiver): topology.path(*job.flow("j", sender, receiver, 0, topology))
        for sender in (0, 1)
        for receiver in (2, 3)
    }
    names = {ranks: tuple(hop.link.name.split("-")[-1] for hop in path) for ranks, path in paths.items()}
    assert (names[0, 2], names[1, 3], names[0, 3]) == (("0", "0"), ("1", "1"), between)


def beside(rail: int, load_gbps: float = 30, kind: str = "iperf") -> TrialSpec:
    """Return a trial of a job on rail 0, beside cross traffic on a rail."""
    traffic = {"kind": kind, "from": "s0", "to": ["s1"], "load_gbps": load_gbps, "transport": {"name": "dctcp"}}
    traffic |= {"rail": rail} if rail else {}
    return build_rails(rails(), ["s0", "s1"], "ring", 1, 0.9, cross_traffic={"other": traffic})


@pytest.mark.parametrize("rail", [0, 1])
def test_cross_traffic_takes_the_nics_of_its_rail(rail: int) -> None:
    routes = [route.cables for route in list_routes(beside(rail)) if route.user == "other"]
    assert routes == [(f"s0-{rail}", f"s1-{rail}")]


def test_a_rail_that_hosts_lack_is_refused() -> None:
    with pytest.raises(
        SpecError, match=r"cross_traffic\.other\.rail: found 2, expected less than 2, the number of NICs"
    ):
        beside(2)


def test_both_models_slow_jobs_by_cross_traffic_on_their_rail_alone() -> None:
    def lasted_ms(rail: int) -> list[float]:
        spec = beside(rail)
        computed = compute_trial(spec, ResidualCapacity.constant(residual_of_loads(spec))).iterations["j"][0][-1]
        loads = Loads(0.0, {"other": Load(streams=Streams(8, 10, 0.9, 1.0, 2000.0))})
        played = play_trial(spec, 1, Fabric(), 1.0, loads=loads).iterations["j"][0][-1]
        return [float(computed[2] - computed[0]), float(played["end_ps"] - played["start_ps"]) / PS_PER_MS]

    for shared_ms, apart_ms in zip(lasted_ms(0), lasted_ms(1), strict=True):
        assert shared_ms > 1.3 * apart_ms


@pytest.mark.parametrize("kind", ["iperf", "consistent"])
def test_programs_of_cross_traffic_get_the_addresses_of_its_rail(kind: str) -> None:
    lab, trial = plan_lab(rails()), planned(beside(1, kind=kind))
    (part,) = traffic_endpoints(trial)
    own, other = (lab.hosts[host].nics[1].address for host in ("s0", "s1"))
    assert any(word.partition(":")[0] == other for word in sink_command(lab, "s1", part))
    words = " ".join(sender_command(lab, trial, part))
    assert f"--bind {own}" in words
    assert other in words
    assert lab.hosts["s1"].address not in words


def test_packets_that_come_back_enter_by_the_nics_that_the_flow_used() -> None:
    flow = Flow("s0", "s1", 50_000, (0, 1))
    assert flow.turned == Flow("s1", "s0", 50_000, (1, 0))
    back = rails().path(*flow.turned)
    assert (back[0].link.name, back[-1].link.name) == ("s1-1", "s0-0")


@pytest.mark.parametrize(("workers", "pattern"), [(["s0", "s1"], "ring"), (["s0", "s0", "s1", "s1"], "all-to-all")])
def test_both_models_play_the_rails_of_the_plan_and_last_as_long(workers: list[str], pattern: str) -> None:
    """A ring over two NICs requires 1.6 times the rate of one."""
    spec = build_rails(rails(), workers, pattern, 2, 1.6 if pattern == "ring" else 0.8)
    ports, job = number_ports(spec.topology), spec.jobs["j"]
    cables = [link.name for _, link in ports.directions]
    (played,) = fluid_jobs(spec).values()
    for place, stream in enumerate(played.streams):
        if job.workers[stream.sender] != job.workers[stream.receiver]:
            flow = job.flow("j", stream.sender, stream.receiver, place % job.flows, spec.topology)
            path = spec.topology.path(*flow)
            assert stream.path == spec.topology.directions(path)
            assert [cables[number] for number in ports.route(flow)] == [hop.link.name for hop in path]
    assert all(abs(longer_ms) / whole_ms < 0.03 for whole_ms, longer_ms in differences_ms(spec))


def test_four_flows_that_meet_on_the_spine_last_as_long_in_both_models() -> None:
    (cell,) = load_experiment("rails", set={"iterations": 1}, only=["meet-even"]).cells
    assert all(abs(longer_ms) / whole_ms < 0.03 for whole_ms, longer_ms in differences_ms(cell.spec))


def test_several_links_of_a_host_need_rail_routing() -> None:
    fields: dict[str, Any] = rails().model_dump() | {"routing": {"name": "ecmp"}}
    with pytest.raises(ValueError, match="for several NICs give `routing: {name: rail}`"):
        Topology.model_validate(fields)


@st.composite
def sparse_rails(draw: st.DrawFn) -> dict[str, Any]:
    """Draw the fields of a topology with rails that lacks some cables, NICs and its spine, perhaps."""
    fields: dict[str, Any] = rails(draw(st.integers(2, 3)), draw(st.integers(2, 3)), draw(st.booleans())).model_dump()
    lost = set(draw(st.lists(st.sampled_from([link["name"] for link in fields["links"]]), max_size=3)))
    if draw(st.booleans()):
        fields["switches"] = [name for name in fields["switches"] if name != "spine"]
        lost |= {link["name"] for link in fields["links"] if "spine" in link["ends"]}
    return fields | {"links": [link for link in fields["links"] if link["name"] not in lost]}


@given(sparse_rails())
@settings(max_examples=100, deadline=None)
def test_flows_of_a_valid_topology_have_a_way_by_switches(fields: dict[str, Any]) -> None:
    """Numbers of NICs are counted anew behind a host's last, so those beyond are required, too."""
    try:
        topology = Topology.model_validate(fields)
    except ValidationError:
        return
    for sender, receiver in permutations(topology.hosts, 2):
        for own, other in product(range(4), repeat=2):
            path = topology.path(sender, receiver, nics=(other if topology.crosses_nvlink else own, other))
            assert {hop.receiver for hop in path[:-1]} <= set(topology.switches)


def rails_without_spine() -> dict[str, Any]:
    """Return the fields of rails that hosts alone join, without PXN."""
    fields: dict[str, Any] = rails(2, 2).model_dump(mode="json", by_alias=True)
    links = [link for link in fields["links"] if "spine" not in link["ends"]]
    return fields | {"switches": ["rail0", "rail1"], "links": links}


def test_rails_that_hosts_alone_join_are_refused_without_pxn() -> None:
    with pytest.raises(ValueError, match="a way by switches, because hosts do not forward, or `routing: {name: rail, "):
        Topology.model_validate(rails_without_spine())


def test_with_pxn_rails_need_no_spine() -> None:
    fields = rails_without_spine() | {"routing": {"name": "rail", "pxn": True}}
    spec = build_rails(Topology.model_validate(fields), ["s0", "s0", "s1", "s1"], "all-to-all", 1, 0.3)
    assert {crossed(route) for route in list_routes(spec)} == {("0", "0"), ("1", "1")}
    assert all(abs(longer_ms) / whole_ms < 0.03 for whole_ms, longer_ms in differences_ms(spec))


def test_a_routing_that_the_topology_does_not_allow_is_refused_by_its_field() -> None:
    said = r"routing: found 2 links at host s0 of topology two-rails .*, expected exactly one link at each host; for"
    with pytest.raises(SpecError, match=said):
        load_experiment("rails", set={"routing": {"name": "ecmp"}})


def test_routing_without_rails_is_stored_as_before() -> None:
    assert "pxn" not in Routing(name="ecmp").model_dump()
