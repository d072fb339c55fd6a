# SPDX-License-Identifier: Apache-2.0
"""The packet-level engine: every packet, queue, timer and pause of a network in simulated time.

It is written in C++ (roundabout/models/packets/native). DCQCN and MLTCP are the C code of the eBPF programs.
docs/explanation/packet-level-model.md says what it models.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from roundabout.models.native_engine import EngineError, open_library, record_type
from roundabout.models.packets.structures import (
    DECLARATIONS,
    FLOW,
    FLOW_RECORD,
    NEVER,
    PS_PER_MS,
    RECORD,
    Structure,
)

LIBRARY = "build/lib/libpackets.so"

EVENTS = 2_000_000
"""After how many the engine comes back to Python, so that it can be interrupted: about 0.1 s."""

PORT_COLUMNS, HOST_COLUMNS, QUEUE_COLUMNS, BUFFER_COLUMNS = (
    record_type(DECLARATIONS, f"{part}_sample").names or () for part in ("port", "host", "queue", "buffer")
)

Integers = npt.NDArray[np.int64]
StopCheck = Callable[[], bool]


class StuckError(EngineError):
    """An error for jobs that are running although no event is left."""


@dataclass(frozen=True)
class Message:
    """The bytes that a queue pair carries from one worker (its rank) to another in a phase.

    Its sender may be no more than `lead` ahead of what each of the `feeders` has brought it. Feeders are indices of
    other messages of the phase.
    """

    pair: int
    sender: int
    receiver: int
    bytes: int
    lead: int = 0
    feeders: tuple[int, ...] = ()


@dataclass(frozen=True)
class Samples:
    """Counters at every sample: arrays (samples, ports or hosts) by column, and marks by (port, host of the sender).

    `queues` has those of each sampled queue, in the order of `places`: (port, queue). `buffers` has those of switches
    whose ports share one, in the order in which they were added.
    """

    ports: dict[str, Integers]
    hosts: dict[str, Integers]
    marks: dict[tuple[int, int], Integers]
    queues: dict[str, Integers]
    places: tuple[tuple[int, int], ...]
    buffers: dict[str, Integers]

    def __len__(self) -> int:
        return len(self.ports["tx_bytes"])


class Engine:
    """A network of ports, and jobs that send over it. Queue pairs and jobs are added before it runs.

    Jobs and samples begin `lead_ps` after cross traffic, and their instants count from there; `now_ps`, `last_end_ps`
    and the end of `run` count from the beginning of cross traffic.

    Raises:
        EngineError: it is not built.
    """

    def __init__(
        self, nic: Structure, ports: Sequence[Structure], hosts: int, sample_ps: int, lead_ps: int = 0
    ) -> None:
        self._library = _library(LIBRARY)
        self._hosts = hosts
        self._is_switch = [port.host < 0 for port in ports]
        self._queues: tuple[int, ...] = ()
        self._workers: list[int] = []
        self._flows: dict[int, int] = {}
        plans = DECLARATIONS.new("struct port_plan[]", [port[0] for port in ports])
        created = self._library.packets_create(nic, plans, len(ports), hosts, sample_ps, lead_ps)
        self._engine = DECLARATIONS.gc(created, self._library.packets_free)

    def add_pair(
        self, out: Sequence[int], back: Sequence[int], hosts: tuple[int, int], plan: Structure, priority: int = 0
    ) -> int:
        """Add a queue pair on a route of ports there and back, from one host to another; within a host both are empty.

        The first port of each route is its host's own. `plan` is a reaction_plan.
        """
        numbers = (out, len(out), back, len(back), priority, *hosts)
        return int(self._library.packets_add_pair(self._engine, *numbers, plan))

    def set_routing(self, plan: Structure) -> None:
        """Let packets find their paths by a routing_plan, before queue pairs are added.

        Then the routes of `add_pair` are the ports by which each of the two hosts sends.
        """
        self._library.packets_set_routing(self._engine, plan)

    def share_buffer(self, plan: Structure, headroom_bytes: Mapping[int, int]) -> None:
        """Let the ports of a switch share a buffer by a buffer_plan.

        `headroom_bytes` has, by port, what is reserved for each priority of the link that ends there.
        """
        ports, headroom = list(headroom_bytes), list(headroom_bytes.values())
        self._library.packets_share_buffer(self._engine, plan, ports, headroom, len(ports))

    def weigh_queues(self, port: int, quanta_bytes: Sequence[int]) -> None:
        """Serve the lowest queues of a switch's port by deficit round robin, with a quantum for each."""
        self._library.packets_weigh_queues(self._engine, port, quanta_bytes, len(quanta_bytes))

    def use_red(self, port: int, weight: float) -> None:
        """Let a switch's port signal by RED between its thresholds, with the weight of a packet in the average."""
        self._library.packets_use_red(self._engine, port, weight)

    def sample_queues(self, queues: Sequence[int]) -> None:
        """Sample these queues of each switch's port by themselves, too."""
        self._queues = tuple(sorted(queues))
        self._library.packets_sample_queues(self._engine, sum(1 << queue for queue in self._queues))

    def change_link(self, port: int, plan: Structure) -> None:
        """Change both directions of a link, of which `port` is one, by a link_plan."""
        self._library.packets_change_link(self._engine, port, plan)

    def avoid_links(self, at_ps: int, ports: Sequence[int]) -> None:
        """Let switches that choose next hops avoid these ports, and no others, from an instant on."""
        self._library.packets_avoid_links(self._engine, at_ps, ports, len(ports))

    def change_route(self, pair: int, at_ps: int, out: Sequence[int], back: Sequence[int]) -> None:
        """Give a queue pair or connection other routes from an instant on. Their first ports stay the same."""
        self._library.packets_change_route(self._engine, pair, at_ps, out, len(out), back, len(back))

    def lost(self, port: int) -> int:
        """Return how many data packets the port's link has lost, or its failures dropped."""
        return int(self._library.packets_lost(self._engine, port))

    def add_mltcp_job(self, plan: Structure) -> int:
        """Add a job of MLTCP by an mltcp_plan. Its queue pairs count the bytes of its iterations together."""
        return int(self._library.packets_add_mltcp_job(self._engine, plan))

    def join(self, pair: int, mltcp_job: int) -> None:
        """Make a queue pair or a connection one of a job of MLTCP."""
        self._library.packets_join(self._engine, pair, mltcp_job)

    def add_connection(
        self, out: Sequence[int], back: Sequence[int], hosts: tuple[int, int], plan: Structure, priority: int = 0
    ) -> int:
        """Add a TCP connection by a tcp_plan, as `add_pair` adds a queue pair. It has the number of a queue pair."""
        numbers = (out, len(out), back, len(back), priority, *hosts)
        return int(self._library.packets_add_connection(self._engine, *numbers, plan))

    def add_window_flow(
        self, out: Sequence[int], back: Sequence[int], hosts: tuple[int, int], plan: Structure, priority: int = 0
    ) -> int:
        """Add a flow with a window by a window_plan, as `add_pair` adds a queue pair. It has a queue pair's number."""
        numbers = (out, len(out), back, len(back), priority, *hosts)
        return int(self._library.packets_add_window_flow(self._engine, *numbers, plan))

    def add_job(self, plan: Structure, stretches: Sequence[float] = (1.0,)) -> int:
        """Add a job without phases by a job_plan.

        Computing times of iteration i are multiplied by `stretches[i]`, cyclically.
        """
        self._workers.append(plan.workers)
        return int(self._library.packets_add_job(self._engine, plan, stretches, len(stretches)))

    def add_phase(self, job: int, length_ps: int, messages: Sequence[Message] = ()) -> None:
        """Add the next phase of a job: computing, or sending messages whose bytes come into being over `length_ps`."""
        self._library.packets_add_phase(self._engine, job, length_ps, bool(messages))
        for each in messages:
            ends = (each.pair, each.sender, each.receiver)
            numbers = (each.bytes, each.lead, each.feeders, len(each.feeders))
            self._library.packets_add_message(self._engine, job, *ends, *numbers)

    def run(self, until_ps: int = NEVER, *, while_jobs: bool = True, is_stopped: StopCheck = lambda: False) -> None:
        """Advance until an instant. With `while_jobs`, stop when all jobs have ended their iterations.

        `is_stopped` is called some times a second.

        Raises:
            EngineError: it was stopped.
            StuckError: no event is left although jobs are running: PFC's deadlock, or else a defect of the engine.
        """
        while self._library.packets_run(self._engine, until_ps, EVENTS, while_jobs) == 0:
            if is_stopped():
                raise EngineError("the trial was stopped")
        if until_ps == NEVER and self.running:
            raise StuckError(f"jobs wait for ever from {self.now_ps / PS_PER_MS:g} ms on", "report it with the trial")

    def paused_since_ps(self, port: int) -> int | None:
        """Return the instant since which a queue of the port is paused by PFC, or None if none is paused."""
        found = int(self._library.packets_paused_since_ps(self._engine, port))
        return None if found < 0 else found

    @property
    def now_ps(self) -> int:
        """Return the instant of the last event."""
        return int(self._library.packets_now_ps(self._engine))

    @property
    def last_end_ps(self) -> int:
        """Return the instant at which the last job ended."""
        return int(self._library.packets_last_end_ps(self._engine))

    @property
    def running(self) -> int:
        """Return the number of jobs that have not ended."""
        return int(self._library.packets_running(self._engine))

    @property
    def packet_hops(self) -> int:
        """Return the number of packets that all ports have sent."""
        return int(self._library.packets_hops(self._engine))

    @property
    def max_packets(self) -> int:
        """Return the largest number of packets that were in the network at once."""
        return int(self._library.packets_pool(self._engine))

    def completed(self, job: int) -> int:
        """Return the iterations that all of the job's workers have completed."""
        return int(self._library.packets_completed(self._engine, job))

    def iterations(self, job: int) -> npt.NDArray[np.void]:
        """Return each worker's completed iterations: an array (workers, iterations) of RECORD."""
        count = self.completed(job)
        found = np.zeros((self._workers[job], count), RECORD)
        for rank, each in enumerate(found):
            self._library.packets_iterations(self._engine, job, rank, count, _buffer("iteration_record", each))
        return found

    def add_traffic(self) -> int:
        """Add a cross traffic without receivers. Return its number."""
        return int(self._library.packets_add_traffic(self._engine))

    def add_pool(
        self, traffic: int, pair: int, max_connections: int, *, is_fresh: bool, plan: Structure | None = None
    ) -> None:
        """Add the next pool of connections of a cross traffic, the first of which is `pair`.

        A flow takes the connection that was used last, a new one like `pair` if all are busy, or waits for one. With
        `is_fresh`, each flow begins on a connection without history, after a round trip over an empty network. `plan`
        is the reaction_plan of the pair, or None for TCP and flows with windows.
        """
        own = DECLARATIONS.NULL if plan is None else plan
        self._library.packets_add_pool(self._engine, traffic, pair, max_connections, is_fresh, own)

    def set_flows(self, traffic: int, flows: npt.NDArray[np.void]) -> None:
        """Set the flows of a cross traffic, an array of FLOW in the order of their starts."""
        flows = np.ascontiguousarray(flows, FLOW)
        self._flows[traffic] = len(flows)
        self._library.packets_set_flows(self._engine, traffic, _buffer("flow_plan", flows), len(flows))

    def set_streams(self, traffic: int, plan: Structure) -> None:
        """Let a cross traffic send streams over its first pool by a stream_plan."""
        self._library.packets_set_streams(self._engine, traffic, plan)

    def flow_records(self, traffic: int) -> npt.NDArray[np.void]:
        """Return the start and end of each flow of a cross traffic, an array of FLOW_RECORD."""
        found = np.zeros(self._flows[traffic], FLOW_RECORD)
        self._library.packets_flow_records(self._engine, traffic, _buffer("flow_record", found))
        return found

    def traffic_result(self, traffic: int) -> Structure:
        """Return the traffic_result of a cross traffic so far."""
        return self._result("traffic", traffic)

    def pair_result(self, pair: int) -> Structure:
        """Return the pair_result of a queue pair."""
        return self._result("pair", pair)

    def connection_result(self, pair: int) -> Structure:
        """Return the connection_result of a TCP connection, which must cross a link."""
        return self._result("connection", pair)

    def window_result(self, pair: int) -> Structure:
        """Return the window_result of a flow with a window, which must cross a link."""
        return self._result("window", pair)

    def _result(self, of: str, number: int) -> Structure:
        found = DECLARATIONS.new(f"struct {of}_result *")
        getattr(self._library, f"packets_{of}_result")(self._engine, number, found)
        return found

    def samples(self) -> Samples:
        """Return the counters at 0, `sample_ps`, twice that, ..., now at most."""
        library, engine = self._library, self._engine
        count, width = library.packets_sample_count(engine), library.packets_row(engine)
        table = np.zeros((count, width), np.int64)
        library.packets_samples(engine, DECLARATIONS.from_buffer("int64_t[]", table))
        marked = self._mark_counters()
        switch_ports = [number for number, is_switch in enumerate(self._is_switch) if is_switch]
        places = tuple((port, queue) for port in switch_ports for queue in self._queues)
        widths = [len(PORT_COLUMNS) * len(self._is_switch), len(HOST_COLUMNS) * self._hosts]
        widths += [len(QUEUE_COLUMNS) * len(places)]
        widths += [width - sum(widths) - len(marked)]
        ports, hosts, queues, buffers, marks = np.split(table, np.cumsum(widths), axis=1)
        return Samples(
            ports=_by_column(ports, PORT_COLUMNS),
            hosts=_by_column(hosts, HOST_COLUMNS),
            marks=dict(zip(marked, marks.T, strict=True)),
            queues=_by_column(queues, QUEUE_COLUMNS),
            places=places,
            buffers=_by_column(buffers, BUFFER_COLUMNS),
        )

    def _mark_counters(self) -> list[tuple[int, int]]:
        count = self._library.packets_mark_counters(self._engine, DECLARATIONS.NULL)
        found = DECLARATIONS.new("uint32_t[]", 2 * count)
        self._library.packets_mark_counters(self._engine, found)
        numbers = list(found)
        return list(zip(numbers[::2], numbers[1::2], strict=True))


def _by_column(table: Integers, names: Sequence[str]) -> dict[str, Integers]:
    return {name: table[:, place :: len(names)] for place, name in enumerate(names)}


def _buffer(structure: str, array: npt.NDArray[np.void]) -> Any:
    return DECLARATIONS.from_buffer(f"struct {structure}[]", array)


@cache
def _library(path: str) -> Any:
    return open_library("packets", path, DECLARATIONS)
