# SPDX-License-Identifier: Apache-2.0
"""Events of a trial's links as the engine takes them: changes of links, and the routes that follow."""

from roundabout.models.packets.engine import Engine
from roundabout.models.packets.network import BYTES_PER_S_OF_GBPS, Ports
from roundabout.models.packets.structures import PS_PER_MS, make_structure
from roundabout.spec import TrialSpec
from roundabout.spec.routing import Flow


def add_link_changes(engine: Engine, spec: TrialSpec, ports: Ports) -> None:
    """Add the changes of a trial's links to an engine, and of next hops if its packets are bound to no route."""
    first = {link.name: number for number, (_, link) in reversed(tuple(enumerate(ports.directions)))}
    links = {link.name: link for link in spec.topology.links}
    for at_ms, name, state in spec.link_changes:
        plan = make_structure(
            "link_plan",
            at_ps=round(at_ms * PS_PER_MS),
            payload_bytes_per_s=links[name].payload_rate_gbps * BYTES_PER_S_OF_GBPS * state.rate,
            line_bytes_per_s=links[name].line_rate_gbps * BYTES_PER_S_OF_GBPS * state.rate,
            loss=state.loss,
            is_up=state.is_up,
        )
        engine.change_link(first[name], plan)
    for at_ms, failed in spec.route_changes if spec.topology.spreads_packets else ():
        avoided = [number for number, (_, link) in enumerate(ports.directions) if link.name in failed]
        engine.avoid_links(round(at_ms * PS_PER_MS), avoided)


def add_route_changes(engine: Engine, ports: Ports, pair: int, flow: Flow) -> None:
    """Let a queue pair or connection follow the later routes of its flow."""
    for at_ms, out, back in ports.later_routes(flow):
        engine.change_route(pair, round(at_ms * PS_PER_MS), out, back)
