# SPDX-License-Identifier: Apache-2.0
"""Events of a trial's links in the flow-level model: capacities that change, and streams that take other paths."""

from collections.abc import Callable, Iterator
from functools import partial
from operator import itemgetter

from roundabout.models.fluid.cross_traffic import BYTES_PER_MS_OF_GBPS
from roundabout.models.fluid.engine import Engine
from roundabout.spec import TrialSpec
from roundabout.spec.remaining_paths import Rerouting

Change = tuple[float, Callable[[], None]]


def play_link_events(engine: Engine, spec: TrialSpec) -> None:
    """Advance an engine, which has the jobs of a trial, through the trial's events.

    A link that loses packets carries that much less, because these are sent again.
    """
    changes = sorted([*_capacity_changes(engine, spec), *_path_changes(engine, spec)], key=itemgetter(0))
    for at_ms, change in changes:
        engine.run_until(at_ms)
        change()


def _capacity_changes(engine: Engine, spec: TrialSpec) -> Iterator[Change]:
    links = {link.name: link for link in spec.topology.links}
    for at_ms, name, state in spec.link_changes:
        link = links[name]
        share = state.rate * (1 - state.loss) if state.is_up else 0.0
        for ends in (link.ends, link.ends[::-1]):
            edge = spec.topology.direction(link, *ends)
            yield at_ms, partial(engine.set_capacity, edge, link.payload_rate_gbps * BYTES_PER_MS_OF_GBPS * share)


def _path_changes(engine: Engine, spec: TrialSpec) -> Iterator[Change]:
    flows = {name: tuple(spec.flows_of(name)) for name in spec.jobs}  # in the order of streams
    for at_ms, failed in spec.route_changes:
        rerouting = Rerouting(spec.topology, failed)
        for name, own in flows.items():
            paths = [spec.topology.directions(rerouting.path(flow)) for flow in own]
            yield at_ms, partial(engine.reroute, name, paths)
