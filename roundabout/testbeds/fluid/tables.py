# SPDX-License-Identifier: Apache-2.0
"""The tables of a computed trial, in the form of a measurement.

Bytes are payload, because the model has no headers. Unknown values are null, or their rows are missing.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from roundabout.models.fluid import BYTES_PER_MS_OF_GBPS, Direction, Floats
from roundabout.runner.tables.trial_start import Columns, TrialStart
from roundabout.spec import TrialSpec
from roundabout.spec.cross_traffic import CrossTraffic
from roundabout.store import Identity, Units, build_table
from roundabout.store.schemas import TABLES
from roundabout.testbeds.fluid.engine_trial import ComputedTrial
from roundabout.testbeds.fluid.loads import PlannedLoad

Integers = npt.NDArray[np.int64]


def build_tables(
    spec: TrialSpec, played: ComputedTrial, loads: Mapping[str, PlannedLoad], when: TrialStart, identity: Identity
) -> dict[str, pa.Table]:
    """Return all tables with rows, by name. `loads` has the load file of each cross traffic."""
    parts = {
        "iterations": _iterations(spec, played, when),
        "counters": _counters(spec, played, when),
        "queue": _queue(spec, played, when),
        "cross_traffic": _cross_traffic(spec, played, loads, when),
    }
    built = {name: [build_table(name, identity, part, Units()) for part in each] for name, each in parts.items()}
    return {name: pa.concat_tables(each) for name, each in built.items() if each}


def _iterations(spec: TrialSpec, played: ComputedTrial, when: TrialStart) -> Iterator[Columns]:
    for name, job in spec.jobs.items():
        for rank, (host, iterations) in enumerate(zip(job.workers, played.iterations[name], strict=True)):
            if not len(iterations):
                continue
            start, compute_end, end, delay, sent, received = iterations.T
            yield {
                **when.iteration_columns(host, name, rank, start, compute_end, end),
                "sent_bytes": np.rint(sent).astype(np.int64),
                "received_bytes": np.rint(received).astype(np.int64),
                **({"delay_ms": delay} if job.held_timetable else {}),
            }


def _counters(spec: TrialSpec, played: ComputedTrial, when: TrialStart) -> Iterator[Columns]:
    length = len(played.samples_ms)
    from_node, to_node = defaultdict[str, list[Direction]](list), defaultdict[str, list[Direction]](list)
    for edge in played.carried:
        from_node[edge[0]].append(edge)
        to_node[edge[1]].append(edge)
    for host in spec.topology.hosts:
        yield {
            **when.columns(host, played.samples_ms),
            "interface": ["fluid"] * length,
            "tx_bytes": _bytes(played, from_node[host]),
            "rx_bytes": _bytes(played, to_node[host]),
            **{name: np.zeros(length, np.int64) for name in ("tx_packets", "rx_packets")},
            **{name: np.zeros(length, np.int64) for name in ("tx_dropped", "rx_dropped")},
        }


def _queue(spec: TrialSpec, played: ComputedTrial, when: TrialStart) -> Iterator[Columns]:
    length = len(played.samples_ms)
    for link in spec.topology.links:
        for switch, towards in (link.ends, link.ends[::-1]):
            if switch in spec.topology.switches:
                yield {
                    **when.columns(switch, played.samples_ms),
                    "link": [link.name] * length,
                    "interface": ["fluid"] * length,
                    "towards": [towards] * length,
                    "tx_bytes": _bytes(played, [spec.topology.direction(link, switch, towards)]),
                    "backlog_bytes": [None] * length,
                    "drops": [None] * length,
                    "marks": [None] * length,
                }


def _bytes(played: ComputedTrial, edges: list[Direction]) -> Integers:
    carried = sum((played.carried[edge] for edge in edges), np.zeros(len(played.samples_ms)))
    return np.rint(carried).astype(np.int64)


def _cross_traffic(
    spec: TrialSpec, played: ComputedTrial, loads: Mapping[str, PlannedLoad], when: TrialStart
) -> Iterator[Columns]:
    unknown = [column.name for column in TABLES["cross_traffic"]]
    per_gbps = BYTES_PER_MS_OF_GBPS * played.last_ms
    offered = {
        name: _offered_bytes(traffic, loads.get(name), played.last_ms) for name, traffic in spec.cross_traffic.items()
    }
    arrived = _arrived_shares(spec, offered, played.crossed)
    for name, traffic in spec.cross_traffic.items():
        if traffic.load_gbps > 0:
            parts = [arrived[hops] for hops in _paths(spec, traffic)]
            yield {
                **{column: [None] for column in unknown},
                **when.columns(traffic.sender, np.array([played.last_ms])),
                "traffic": [name],
                "kind": [traffic.kind],
                "asked_gbps": [traffic.load_gbps],
                "planned_gbps": [loads[name].offered_gbps if name in loads else traffic.load_gbps],
                "offered_gbps": [offered[name].sum() / per_gbps],
                "achieved_gbps": [float(offered[name] @ parts) / per_gbps],
                "schedule_held": [True],
            }


def _offered_bytes(traffic: CrossTraffic, load: PlannedLoad | None, until_ms: float) -> Floats:
    """Return the bytes that a cross traffic offers each of its receivers from the trial's start to its end."""
    receivers = len(traffic.receivers)
    if load is None:
        return np.full(receivers, traffic.load_gbps * BYTES_PER_MS_OF_GBPS * until_ms / receivers)
    flows = load.schedule
    due = slice(*np.searchsorted(flows.starts_ms, (0.0, until_ms)))
    return np.bincount(flows.receivers[due], flows.sizes[due], receivers).astype(np.float64)


def _paths(spec: TrialSpec, traffic: CrossTraffic) -> list[tuple[Direction, ...]]:
    """Return the path to each receiver."""
    return [spec.topology.directions(spec.topology.path(*flow)) for flow in traffic.flows]


def _arrived_shares(
    spec: TrialSpec, offered: Mapping[str, Floats], crossed: Mapping[Direction, float]
) -> dict[tuple[Direction, ...], float]:
    """Return the share of the offered bytes that arrives, by path. Paths that exceed a link's capacity share it."""
    ways = {path for traffic in spec.cross_traffic.values() for path in _paths(spec, traffic)}
    requested: defaultdict[Direction, float] = defaultdict(float)
    for name, traffic in spec.cross_traffic.items():
        for path, size in zip(_paths(spec, traffic), offered[name], strict=True):
            for edge in path:
                requested[edge] += size
    return {
        path: min(crossed[edge] / requested[edge] if requested[edge] > 0 else 1.0 for edge in path) for path in ways
    }
