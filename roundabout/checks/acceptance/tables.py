# SPDX-License-Identifier: Apache-2.0
"""The tables of BMWG's draft on AI training fabrics: their experiment, over any topology, and their page.

Tables, names and definitions are those of draft-calabria-bmwg-ai-fabric-training-bench-04, "Benchmarking Methodology
for AI Training Network Fabrics". It sets no criteria to pass (sections 4 and 13), so the tables have no limits.
Durations are our choice, and shorter than the draft's, so that models and labs can play them.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from analysis.expectations import fabric_benchmarks as analysis
from analysis.expectations.fabric_benchmarks import PlayedTrials, Row
from analysis.reading.disturbance import mark_name
from analysis.render.tables import Cell, Column, Table, one_section
from roundabout.checks.acceptance.experiments import (
    PROBED_PORTS,
    Pair,
    make_experiment,
    make_nic_job,
    make_profile,
    make_trial,
    payload_gbps,
)
from roundabout.checks.check import Check
from roundabout.core.errors import UsageError
from roundabout.spec.experiment import Experiment
from roundabout.spec.job import ResolvedJob
from roundabout.spec.routing import FlowPort
from roundabout.spec.topology import Topology
from roundabout.spec.transports import Transport

DRAFT = "draft-calabria-bmwg-ai-fabric-training-bench-04"
OVERLAPS = (0, 25, 50, 75)  # section 10.3: percent of a job's spine links that the other job uses, too
INCASTS = (2, 4, 8, 16, 32, 64)  # section 7.2: senders to one receiver
QUEUE_PAIRS = (1, 4, 8, 16, 32)  # section 8.1: flows of each pair of hosts
ONSETS = (4, 16, 64, 256)  # section 7.3: M flows, and the M more that begin later
HALF_MS, ITERATIONS = 50.0, 6  # section 10.1: computing time C of a job, and as much for sending on idle links
HALF_JOB = 4  # workers of a job below each leaf, so that overlaps are multiples of 25 %
FLOW_MS, ONSET_MS, CONVERGING_MS = 400.0, 300.0, 1300.0  # end of flows; begin and end of the M more flows
TURN_MS = 20.0  # sending time of a flow's iteration at its fair share
REPETITIONS = 3

Jobs = Mapping[str, ResolvedJob]
TABLES: Mapping[str, tuple[str, tuple[int, ...]]] = {
    "overlap": ("Multi-tenant JCT interference (section 10.3), by spine link overlap, %", OVERLAPS),
    "incast": ("Behavior under incast (section 7.2), by senders N", INCASTS),
    "qps": ("ECMP entropy and polarization (section 8.1), by queue pairs Q of each pair of hosts", QUEUE_PAIRS),
    "onset": ("DCQCN convergence time (section 7.3), by flows M before M more begin", ONSETS),
}
"""The title and the levels of each table."""
ALONE = "overlap-alone"
DEVIATIONS = (
    f"Flows last {FLOW_MS / 1e3:g} to {CONVERGING_MS / 1e3:g} s, and jobs {ITERATIONS} iterations of their "
    f"{HALF_MS:g} ms of computing, where the draft has 1,000 iterations.",
    "Jobs are put on spines by the source ports of their flows.",
    f"Rates of converging flows are means over {analysis.WINDOW_MS:g} ms, and DCQCN has one set of parameters.",
    "One fabric and one way of load balancing are measured, without BTH-aware hashing. The onset of PFC storms is not.",
)
"""The deviations from the draft, which its section 13 requires in a report."""


@dataclass(frozen=True)
class Leaves:
    """The NICs of two leaves, and the spines by which flows between them can go, in the same order for both ways."""

    topology: Topology
    near: Sequence[str]
    far: Sequence[str]

    @classmethod
    def find(cls, topology: Topology) -> "Leaves | None":
        """Return the two leaves with the most NICs, or None if no flow goes from one leaf to another.

        A NIC of the first leaf and that of the second in the same place are of different hosts.
        """
        nics: dict[str, list[str]] = {}
        for name, place in topology.nics.items():
            nics.setdefault(topology.first_hop(*place).receiver, []).append(name)
        near, far, *_ = [*sorted(nics.values(), key=len, reverse=True), []]
        hosts = [[topology.nics[name][0] for name in names] for names in (near, far)]
        if hosts[0] == hosts[1]:
            far = [*far[1:], *far[:1]]
        return cls(topology, near, far) if far and not topology.crosses_nvlink else None

    @property
    def leaf(self) -> str:
        """Return the first leaf."""
        return self.topology.first_hop(*self.topology.nics[self.near[0]]).receiver

    def uplinks(self) -> dict[str, str]:
        """Return the spine of each link by which flows can leave the first leaf for the second one."""
        hops = [self.topology.nic_path(self.near[0], self.far[0], port)[1] for port in PROBED_PORTS]
        return {hop.link.name: hop.receiver for hop in hops}

    def port(self, pair: Pair, spine: str) -> int:
        """Return a source port with which a flow between two NICs goes by a spine."""
        return next(port for port in PROBED_PORTS if self.topology.nic_path(*pair, port)[1].receiver == spine)


def tables_experiment(topology: Topology, transport: Transport) -> Experiment:
    """Return the experiment with the trials of all tables for which the topology has enough hosts and paths.

    Raises UsageError if there is none.
    """
    leaves = Leaves.find(topology)
    jobs = {
        **{f"incast-{count}": _incast(topology, transport, count) for count in INCASTS},
        **{f"onset-{count}": _onset(topology, transport, count) for count in ONSETS},
        **({f"qps-{number}": _pairs(leaves, transport, number) for number in QUEUE_PAIRS} if leaves else {}),
        **(_overlaps(leaves, transport) if leaves else {}),
    }
    if not any(jobs.values()):
        raise UsageError(f"topology {topology.name}: found {len(topology.hosts)} hosts at one switch, expected three")
    trials = {name: make_trial(topology, own, iterations=_iterations(name)) for name, own in jobs.items() if own}
    return make_experiment("acceptance-tables", trials, REPETITIONS)


def only_variants(experiment: Experiment, variants: Sequence[str]) -> Experiment:
    """Return the experiment with the cells of these variants alone."""
    cells = tuple(cell for cell in experiment.cells if cell.variant in variants)
    return experiment.model_copy(update={"cells": cells, "factors": {"variant": tuple(variants)}})


def _iterations(variant: str) -> int:
    return ITERATIONS if variant.startswith("overlap") else round(CONVERGING_MS)  # flows end at their departure


def _overlaps(leaves: Leaves, transport: Transport) -> dict[str, Jobs]:
    """Return one job alone, and two jobs with each overlap of their spines."""
    spines = sorted(set(leaves.uplinks().values()))
    if min(len(leaves.near), len(leaves.far)) < 2 * HALF_JOB or len(spines) < 2 * HALF_JOB:
        return {}
    own = _ring(leaves, transport, 0, spines[:HALF_JOB])
    found: dict[str, Jobs] = {ALONE: {"j1": own}}
    for overlap in OVERLAPS:
        begin = HALF_JOB - HALF_JOB * overlap // 100
        found[f"overlap-{overlap}"] = {
            "j1": own,
            "j2": _ring(leaves, transport, HALF_JOB, spines[begin : begin + HALF_JOB]),
        }
    return found


def _ring(leaves: Leaves, transport: Transport, first: int, spines: Sequence[str]) -> ResolvedJob:
    """Return a job whose ring goes from leaf to leaf, by each of these spines once in each direction."""
    halves = zip(leaves.near[first : first + HALF_JOB], leaves.far[first : first + HALF_JOB], strict=True)
    workers = tuple(host for pair in halves for host in pair)
    profile = make_profile("ring", HALF_MS, HALF_MS, payload_gbps(leaves.topology, (workers[0], workers[1])), "ring")
    ports = []
    for rank, sender in enumerate(workers):
        receiver = (rank + 1) % len(workers)
        port = leaves.port((sender, workers[receiver]), spines[rank // 2])
        ports.append(FlowPort(sender=rank, receiver=receiver, number=0, port=port))
    return make_nic_job(leaves.topology, workers, profile, transport).model_copy(update={"source_ports": tuple(ports)})


def _incast(topology: Topology, transport: Transport, count: int) -> Jobs:
    """Return flows of the first `count` other hosts to the first host; none if there are not so many.

    They are of the hosts' first NICs, which are of one rail.
    """
    to, *others = (topology.nic_name(host, 0) for host in topology.hosts)
    return {
        f"f{number}": _flow(topology, (source, to), transport, count)
        for number, source in enumerate(others[:count] if len(others) >= count else ())
    }


def _onset(topology: Topology, transport: Transport, count: int) -> Jobs:
    """Return the flows of an incast of twice `count` hosts, of which one half begins later."""
    flows = _incast(topology, transport, 2 * count)
    return {
        name: flow.model_copy(update={"departs_ms": CONVERGING_MS, "arrives_ms": ONSET_MS if number >= count else 0.0})
        for number, (name, flow) in enumerate(flows.items())
    }


def _pairs(leaves: Leaves, transport: Transport, flows: int) -> Jobs:
    """Return `flows` flows from each NIC of the first leaf to one of the second leaf."""
    return {
        f"f{number}": _flow(leaves.topology, pair, transport, 1).model_copy(update={"flows": flows})
        for number, pair in enumerate(zip(leaves.near, leaves.far, strict=False))
    }


def _flow(topology: Topology, pair: Pair, transport: Transport, sharers: int) -> ResolvedJob:
    """Return a job that only sends, in turns of TURN_MS if as many flows share the receiver's link.

    Its ports are hashes, so that flows spread over spines.
    """
    profile = make_profile("flow", 1.0, TURN_MS / sharers, payload_gbps(topology, pair), "pipeline")
    return make_nic_job(topology, pair, profile, transport).model_copy(
        update={"departs_ms": FLOW_MS, "source_ports": ()}
    )


def variant_of(table: str, level: int) -> str:
    """Return the variant of a table's level."""
    return f"{table}-{level}"


def measure_tables(topology: Topology, played: PlayedTrials) -> dict[str, dict[int, Row]]:
    """Return the rows of each table, by level."""
    leaves = Leaves.find(topology)
    uplinks, leaf = (leaves.uplinks(), leaves.leaf) if leaves else ({}, "")
    measures = {
        "overlap": analysis.interference(played, ALONE),
        "incast": analysis.incast,
        "qps": analysis.imbalance(uplinks, leaf),
        "onset": analysis.convergence,
    }
    return {
        name: analysis.benchmark_rows(played, {level: variant_of(name, level) for level in levels}, measures[name])
        for name, (_, levels) in TABLES.items()
    }


def disturbed_levels(played: PlayedTrials) -> dict[str, dict[int, float]]:
    """Return the levels of each table without a valid trial, with the estimated effect of the lack of CPU time."""
    return {
        name: {level: effect for level in levels if (effect := played.disturbance(variant_of(name, level))) is not None}
        for name, (_, levels) in TABLES.items()
    }


def describe_conditions(topology: Topology, transport: Transport) -> list[str]:
    """Return the conditions that the draft requires in a report (sections 3.1, 3.2.3 and 13), as far as planned."""
    rates = sorted({f"{link.line_rate_gbps:g}" for link in topology.links}, key=float)
    routing = topology.routing
    balancing = f"{routing.name}, by a hash ({routing.hash})" if routing else "none: one path between any two hosts"
    return [
        f"Topology: {topology.about}. {reference_class(topology)}; {len(topology.hosts)} hosts with "
        f"{len(topology.nics)} NICs, {len(topology.switches)} switches, links of {' and '.join(rates)} Gbit/s.",
        f"Load balancing: {balancing}. Transport: {json.dumps(transport.as_document)}. All other settings are in the "
        "runs' manifest.json and trial.json.",
    ]


def reference_class(topology: Topology) -> str:
    """Return the class of a topology among the draft's reference topologies (section 3.1)."""
    first, *others = topology.nics
    hops = max(len(topology.nic_path(first, each)) for each in others)
    if topology.has_rails:
        return "Topology C (rail-optimized)"
    return {4: "Topology A (2-tier Clos)", 6: "Topology B (3-tier Clos)"}.get(hops, "None of the draft's topologies")


@dataclass(kw_only=True)
class FabricTables(Check):
    """The tables of a fabric. `rows` has the figures of each table by level, and `disturbed` those of disturbed trials.

    `conditions` are sentences on what was measured, and `invalid` names invalid trials.
    """

    RESULT = "tables"
    PARTS = tuple(TABLES)
    TITLES: ClassVar = {name: title for name, (title, _) in TABLES.items()}

    topology: str
    where: dict[str, str]
    rows: dict[str, dict[int, Row]] = field(default_factory=dict)
    disturbed: dict[str, dict[int, float]] = field(default_factory=dict)
    conditions: list[str] = field(default_factory=list)
    invalid: list[str] = field(default_factory=list)

    @property
    def title(self) -> str:
        """Return the page's title."""
        return f"BMWG's tables of {self.topology}"

    @property
    def lead(self) -> str:
        """Return the source, and the testbed with its options."""
        where = " · ".join(f"{name} {value}" for name, value in self.where.items())
        return f"{DRAFT} · {where}"

    @property
    def outcome(self) -> str:
        """Return a sentence on limits."""
        return "The draft sets no criteria for these figures (sections 4 and 13)."

    def figure_table(self, part: str) -> Table:
        """Return a table's figures by level. A level that was not measured has none."""
        rows = self.rows.get(part, {})
        names = list(next(iter(rows.values()), {}))
        short = self.disturbed.get(part, {})
        cells = [
            [Cell(mark_name(str(level), short.get(level))), *(_cell(rows.get(level), name) for name in names)]
            for level in TABLES[part][1]
        ]
        columns = (Column(kind="names"), *(Column(name, ".3g") for name in names))
        return Table(columns, one_section(cells), self.TITLES[part])

    def notes(self) -> Iterator[str]:
        """Yield the conditions, deviations and anomalies that the draft requires of a report, and what is missing."""
        yield from self.conditions
        yield from (f"Deviation: {each}" for each in DEVIATIONS)
        missing = {
            name: [str(each) for each in levels if each not in self.rows.get(name, {})]
            for name, (_, levels) in TABLES.items()
        }
        for name, levels in missing.items():
            if levels:
                yield f"{name}: not measured at {', '.join(levels)}: {self.topology} lacks hosts or paths for it."
        yield from (f"Anomaly: {each}" for each in self.invalid)


def _cell(row: Row | None, name: str) -> Cell:
    value = row.get(name) if row else None
    return Cell("none" if value is None else value)
