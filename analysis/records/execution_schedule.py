# SPDX-License-Identifier: Apache-2.0
"""The schedule of one rank of an execution trace on an idle network.

Dependencies say when operations begin. A rank has one CPU operation, one GPU operation and one collective under way at
a time. Of those that are ready it begins the one with the smallest id, as ASTRA-sim does (astra-sim/workload,
HardwareResource.cc and Workload.cc of astra-sim/astra-sim, 2026-03).
"""

import heapq
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import NamedTuple

from analysis.records.call import Kind, RecordError
from analysis.records.collective_groups import Members, worker_bytes
from analysis.records.fields import quote_value
from analysis.records.readers.chakra import Groups, vector_bytes
from analysis.records.readers.chakra_graph import WORLD, Collective, Graph, Operation, Resource


@dataclass(frozen=True)
class Rates:
    """The rate of a worker's link, Gbit/s of payload, and of its computing, TFLOP/s, None if it is not given."""

    payload_gbps: float
    tflops: float | None = None


@dataclass(frozen=True)
class Sending:
    """A collective in a rank's schedule, until the first operation begins that waits for it or for the network.

    In the last `hidden_ms` it has ended, on an idle network, and only computing goes on.
    """

    name: str
    kind: Kind
    members: Members
    payload_bytes: int
    begin_ms: float
    end_ms: float
    hidden_ms: float

    @property
    def shape(self) -> tuple[Kind, int, int]:
        """Return what the ranks of a phase have in common: kind, size of the group, bytes."""
        return self.kind, len(self.members), self.payload_bytes


@dataclass(frozen=True)
class Schedule:
    """When a rank sends, and when it has ended."""

    sendings: tuple[Sending, ...]
    end_ms: float

    @property
    def computing_ms(self) -> tuple[float, ...]:
        """Return the time before each collective, and after the last, in which the network is not waited for."""
        ends = (0.0, *(each.end_ms for each in self.sendings))
        begins = (*(each.begin_ms for each in self.sendings), self.end_ms)
        return tuple(begin - end for begin, end in zip(begins, ends, strict=True))


class _Communication(NamedTuple):
    """A collective among its ranks, with the bytes of the whole vector."""

    kind: Kind
    members: Members
    payload_bytes: int

    def alone_ms(self, rates: Rates) -> float:
        """Return the time on an idle network. A group of one rank sends nothing."""
        ranks = len(self.members)
        sent = worker_bytes(self.kind, ranks, self.payload_bytes) if ranks > 1 else 0
        return sent * 8 / rates.payload_gbps / 1e6


def make_schedule(graph: Graph, groups: Groups, ranks: int, rates: Rates) -> Schedule:
    """Return the schedule of one of `ranks` ranks on an idle network.

    Raises RecordError for an unknown group, a node whose time needs a rate that is not given, and a cycle.
    """
    calls = {
        each.id: _communication(graph, each, each.collective, groups, ranks)
        for each in graph.operations.values()
        if each.collective
    }
    lasts_ms = {
        each.id: calls[each.id].alone_ms(rates) if each.id in calls else _computing_ms(graph, each, rates)
        for each in graph.operations.values()
    }
    simulation = _Simulation(graph, lasts_ms)
    simulation.run()
    end_ms = max((end for _, end in simulation.spans.values()), default=0.0)
    sent = [key for key, call in calls.items() if len(call.members) > 1]
    order = sorted(sent, key=lambda key: (simulation.spans[key][0], key))
    sendings = []
    for key, following in zip_longest(order, order[1:]):
        begin_ms, ended_ms = simulation.spans[key]
        waiting = [*simulation.waiting(key), *([] if following is None else [following])]
        until_ms = max(min((simulation.spans[each][0] for each in waiting), default=end_ms), ended_ms)
        name = graph.operations[key].name
        sendings.append(Sending(name, *calls[key], begin_ms, until_ms, until_ms - ended_ms))
    return Schedule(tuple(sendings), end_ms)


def _communication(
    graph: Graph, operation: Operation, collective: Collective, groups: Groups, ranks: int
) -> _Communication:
    """Return a collective among its ranks. Raises RecordError if its group is unknown, or lacks the trace's rank."""
    name = collective.group
    is_world = name not in groups and name in (None, *WORLD)
    members = tuple(range(ranks)) if is_world else groups.get(name or "", ())
    if graph.rank not in members or max(members) >= ranks:
        known = ", ".join(map(quote_value, groups)) or "none"
        raise RecordError(
            f"{graph.path}: node {operation.id} ({quote_value(operation.name)}), pg_name: found {quote_value(name)}, "
            f"expected a group with rank {graph.rank} of ranks below {ranks}: {known}",
            "give ASTRA-sim's file of communicator groups, too",
        )
    return _Communication(collective.kind, members, vector_bytes(collective.kind, collective.input_bytes, len(members)))


def _computing_ms(graph: Graph, operation: Operation, rates: Rates) -> float:
    if operation.duration_us or not operation.operations:
        return operation.duration_us / 1e3
    if rates.tflops is None:
        where = f"{graph.path}: node {operation.id} ({quote_value(operation.name)})"
        raise RecordError(
            f"{where}: found num_ops and no duration_micros, expected a time", "give the GPU's rate: --tflops 400"
        )
    return operation.operations / rates.tflops / 1e9


class _Simulation:
    """The operations of a rank, begun as resources and dependencies allow. `spans` are begins and ends, ms."""

    def __init__(self, graph: Graph, lasts_ms: Mapping[int, float]):
        self._graph, self._lasts_ms = graph, lasts_ms
        self._followers = _followers(graph)
        self._waits_for = Counter(each for followers in self._followers.values() for each in followers)
        self._ready: dict[Resource | None, list[int]] = defaultdict(list)
        self._busy: set[Resource] = set()
        self._running: list[tuple[float, int]] = []
        self.spans: dict[int, tuple[float, float]] = {}

    def run(self) -> None:
        """Run all operations. Raises RecordError if some wait for each other."""
        for key in self._graph.operations:
            if not self._waits_for[key]:
                self._enqueue(key)
        self._begin_all(0.0)
        while self._running:
            now, key = heapq.heappop(self._running)
            self._end(key)
            self._begin_all(now)
        if stuck := sorted(set(self._graph.operations) - set(self.spans)):
            what = f"found nodes that wait for each other, among {stuck[:8]}, expected no cycle"
            raise RecordError(f"{self._graph.path}: {what}")

    def waiting(self, key: int) -> set[int]:
        """Return the operations with a resource that wait for an operation, also through those without one."""
        found, left = set[int](), list(self._followers[key])
        while left:
            each = left.pop()
            if each not in found:
                found.add(each)
                left += [] if self._graph.operations[each].resource else self._followers[each]
        return {each for each in found if self._graph.operations[each].resource}

    def _enqueue(self, key: int) -> None:
        heapq.heappush(self._ready[self._graph.operations[key].resource], key)

    def _begin_all(self, now: float) -> None:
        for resource, queue in self._ready.items():
            while queue and resource not in self._busy:
                key = heapq.heappop(queue)
                self.spans[key] = now, now + self._lasts_ms[key]
                heapq.heappush(self._running, (self.spans[key][1], key))
                if resource:
                    self._busy.add(resource)

    def _end(self, key: int) -> None:
        if resource := self._graph.operations[key].resource:
            self._busy.remove(resource)
        for follower in self._followers[key]:
            self._waits_for[follower] -= 1
            if not self._waits_for[follower]:
                self._enqueue(follower)


def _followers(graph: Graph) -> dict[int, list[int]]:
    """Return the operations that wait for each operation."""
    found: dict[int, list[int]] = {key: [] for key in graph.operations}
    for each in graph.operations.values():
        for other in set(each.dependencies) - graph.missing:
            found[other].append(each.id)
    return found
