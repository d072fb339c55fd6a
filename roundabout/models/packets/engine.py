# SPDX-License-Identifier: Apache-2.0
"""The packet-level engine: every packet, queue, timer and pause of a network in simulated time.

It is written in C++ (roundabout/models/packets/native). DCQCN and MLTCP are the C code of the eBPF programs.
docs/explanation/packet-level-model.md says what it models.
"""

import ctypes
from collections.abc import Callable, Mapping, Sequence
from ctypes import POINTER, byref, c_double, c_int, c_int64, c_size_t, c_uint32, c_void_p
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from roundabout.models.native_engine import EngineError, Functions, load_engine
from roundabout.models.packets.structures import (
    BUFFER_COLUMNS,
    FLOW,
    FLOW_RECORD,
    HOST_COLUMNS,
    NEVER,
    PORT_COLUMNS,
    PS_PER_MS,
    QUEUE_COLUMNS,
    RECORD,
    BufferPlan,
    ConnectionResult,
    JobNumbers,
    MltcpPlan,
    NicPlan,
    PairResult,
    PortPlan,
    ReactionPlan,
    StreamPlan,
    TcpPlan,
    TrafficResult,
)

LIBRARY = "build/lib/libpackets.so"

EVENTS = 2_000_000
"""After how many the engine comes back to Python, so that it can be interrupted: about 0.1 s."""

Integers = npt.NDArray[np.int64]
StopCheck = Callable[[], bool]
U32S, I64S, DOUBLES = POINTER(c_uint32), POINTER(c_int64), POINTER(c_double)
FUNCTIONS: Functions = {
    "engine": (c_void_p, (POINTER(NicPlan), POINTER(PortPlan), c_size_t, c_size_t, c_int64)),
    "free": (None, (c_void_p,)),
    "add_pair": (
        c_uint32,
        (c_void_p, U32S, c_size_t, U32S, c_size_t, c_int, c_uint32, c_uint32, POINTER(ReactionPlan)),
    ),
    "share_buffer": (None, (c_void_p, POINTER(BufferPlan), U32S, I64S, c_size_t)),
    "weigh_queues": (None, (c_void_p, c_uint32, I64S, c_size_t)),
    "use_red": (None, (c_void_p, c_uint32, c_double)),
    "sample_queues": (None, (c_void_p, c_int)),
    "add_mltcp_job": (c_uint32, (c_void_p, POINTER(MltcpPlan))),
    "join": (None, (c_void_p, c_uint32, c_uint32)),
    "add_connection": (
        c_uint32,
        (c_void_p, U32S, c_size_t, U32S, c_size_t, c_int, c_uint32, c_uint32, POINTER(TcpPlan)),
    ),
    "add_job": (c_uint32, (c_void_p, POINTER(JobNumbers), DOUBLES, c_size_t)),
    "add_phase": (None, (c_void_p, c_uint32, c_int64, c_int)),
    "add_message": (None, (c_void_p, c_uint32, c_uint32, c_uint32, c_uint32, c_int64, c_int64, U32S, c_size_t)),
    "run": (c_int64, (c_void_p, c_int64, c_int64, c_int)),
    "running": (c_size_t, (c_void_p,)),
    "now": (c_int64, (c_void_p,)),
    "last_end": (c_int64, (c_void_p,)),
    "paused_since": (c_int64, (c_void_p, c_uint32)),
    "hops": (c_int64, (c_void_p,)),
    "pool": (c_size_t, (c_void_p,)),
    "completed": (c_int64, (c_void_p, c_uint32)),
    "iterations": (None, (c_void_p, c_uint32, c_uint32, c_size_t, c_void_p)),
    "sample_count": (c_size_t, (c_void_p,)),
    "row": (c_size_t, (c_void_p,)),
    "samples": (None, (c_void_p, c_void_p)),
    "mark_counters": (c_size_t, (c_void_p, U32S)),
    "pair_result": (None, (c_void_p, c_uint32, POINTER(PairResult))),
    "connection_result": (None, (c_void_p, c_uint32, POINTER(ConnectionResult))),
    "set_lead": (None, (c_void_p, c_int64)),
    "add_traffic": (c_uint32, (c_void_p,)),
    "add_pool": (None, (c_void_p, c_uint32, c_uint32, c_int64, c_int, POINTER(ReactionPlan))),
    "set_flows": (None, (c_void_p, c_uint32, c_void_p, c_size_t)),
    "set_streams": (None, (c_void_p, c_uint32, POINTER(StreamPlan))),
    "flow_records": (None, (c_void_p, c_uint32, c_void_p)),
    "traffic_result": (None, (c_void_p, c_uint32, POINTER(TrafficResult))),
}
"""What each returns and takes (native/c_api.cpp, native/cross_traffic/c_api.cpp)."""


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

    def __init__(self, nic: NicPlan, ports: Sequence[PortPlan], hosts: int, sample_ps: int, lead_ps: int = 0) -> None:
        self._library = _library(LIBRARY)
        self._hosts = hosts
        self._is_switch = [port.host < 0 for port in ports]
        self._queues: tuple[int, ...] = ()
        self._workers: list[int] = []
        self._flows: dict[int, int] = {}
        self._lead_ps = lead_ps
        plans = (PortPlan * len(ports))(*ports)
        self._engine = c_void_p(self._library.packets_engine(byref(nic), plans, len(ports), hosts, sample_ps))
        self._library.packets_set_lead(self._engine, lead_ps)

    def __del__(self) -> None:
        if hasattr(self, "_engine"):
            self._library.packets_free(self._engine)

    def add_pair(
        self, out: Sequence[int], back: Sequence[int], hosts: tuple[int, int], plan: ReactionPlan, priority: int = 0
    ) -> int:
        """Add a queue pair on a route of ports there and back, from one host to another; within a host both are empty.

        The first port of each route is its host's own.
        """
        routes = (c_uint32 * len(out))(*out), (c_uint32 * len(back))(*back)
        numbers = (routes[0], len(out), routes[1], len(back), priority, *hosts)
        return int(self._library.packets_add_pair(self._engine, *numbers, byref(plan)))

    def share_buffer(self, plan: BufferPlan, headroom_bytes: Mapping[int, int]) -> None:
        """Let the ports of a switch share a buffer.

        `headroom_bytes` has, by port, what is reserved for each priority of the link that ends there.
        """
        ports = (c_uint32 * len(headroom_bytes))(*headroom_bytes)
        headroom = (c_int64 * len(headroom_bytes))(*headroom_bytes.values())
        self._library.packets_share_buffer(self._engine, byref(plan), ports, headroom, len(headroom_bytes))

    def weigh_queues(self, port: int, quanta: Sequence[int]) -> None:
        """Serve the lowest queues of a switch's port by deficit round robin, with a quantum of bytes for each."""
        self._library.packets_weigh_queues(self._engine, port, (c_int64 * len(quanta))(*quanta), len(quanta))

    def use_red(self, port: int, weight: float) -> None:
        """Let a switch's port signal by RED between its thresholds, with the weight of a packet in the average."""
        self._library.packets_use_red(self._engine, port, weight)

    def sample_queues(self, queues: Sequence[int]) -> None:
        """Sample these queues of each switch's port by themselves, too."""
        self._queues = tuple(sorted(queues))
        self._library.packets_sample_queues(self._engine, sum(1 << queue for queue in self._queues))

    def add_mltcp_job(self, plan: MltcpPlan) -> int:
        """Add a job of MLTCP, whose queue pairs count the bytes of its iterations together."""
        return int(self._library.packets_add_mltcp_job(self._engine, byref(plan)))

    def join(self, pair: int, mltcp_job: int) -> None:
        """Make a queue pair or a connection one of a job of MLTCP."""
        self._library.packets_join(self._engine, pair, mltcp_job)

    def add_connection(
        self, out: Sequence[int], back: Sequence[int], hosts: tuple[int, int], plan: TcpPlan, priority: int = 0
    ) -> int:
        """Add a TCP connection as `add_pair` adds a queue pair; its number is that of the pair with its bytes."""
        routes = (c_uint32 * len(out))(*out), (c_uint32 * len(back))(*back)
        numbers = (routes[0], len(out), routes[1], len(back), priority, *hosts)
        return int(self._library.packets_add_connection(self._engine, *numbers, byref(plan)))

    def add_job(self, numbers: JobNumbers, stretches: Sequence[float] = (1.0,)) -> int:
        """Add a job without phases. Computing times of iteration i are multiplied by `stretches[i]`, cyclically."""
        factors = (c_double * len(stretches))(*stretches)
        self._workers.append(numbers.workers)
        later = JobNumbers.from_buffer_copy(numbers)
        later.begins += self._lead_ps
        later.shift += self._lead_ps
        if numbers.departs >= 0:
            later.departs += self._lead_ps
        return int(self._library.packets_add_job(self._engine, byref(later), factors, len(stretches)))

    def add_phase(self, job: int, length_ps: int, messages: Sequence[Message] = ()) -> None:
        """Add the next phase of a job: computing, or sending messages whose bytes come into being over `length_ps`."""
        self._library.packets_add_phase(self._engine, job, length_ps, bool(messages))
        for each in messages:
            ends = (each.pair, each.sender, each.receiver)
            feeders = (c_uint32 * len(each.feeders))(*each.feeders)
            numbers = (each.bytes, each.lead, feeders, len(each.feeders))
            self._library.packets_add_message(self._engine, job, *ends, *numbers)

    def run(self, until_ps: int = NEVER, *, while_jobs: bool = True, is_stopped: StopCheck = lambda: False) -> None:
        """Advance until an instant. With `while_jobs`, stop when all jobs have ended their iterations.

        `is_stopped` is asked some times a second.

        Raises:
            EngineError: it was stopped.
            StuckError: no event is left although jobs are running: PFC's deadlock, or else a defect of the engine.
        """
        while self._library.packets_run(self._engine, until_ps, EVENTS, while_jobs) == 0:
            if is_stopped():
                raise EngineError("the trial was stopped")
        if until_ps == NEVER and self._library.packets_running(self._engine):
            raise StuckError(f"jobs wait for ever from {self.now_ps / PS_PER_MS:g} ms on", "report it with the trial")

    def paused_since_ps(self, port: int) -> int | None:
        """Return the instant since which a queue of the port is paused by PFC, or None if none is paused."""
        found = int(self._library.packets_paused_since(self._engine, port))
        return None if found < 0 else found

    @property
    def now_ps(self) -> int:
        """Return the instant of the last event."""
        return int(self._library.packets_now(self._engine))

    @property
    def last_end_ps(self) -> int:
        """Return the instant at which the last job ended."""
        return int(self._library.packets_last_end(self._engine))

    @property
    def packet_hops(self) -> int:
        """Return the number of packets that all ports have sent."""
        return int(self._library.packets_hops(self._engine))

    @property
    def most_packets(self) -> int:
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
            self._library.packets_iterations(self._engine, job, rank, count, each.ctypes.data)
        for column in ("start", "compute_end", "end"):
            found[column] -= self._lead_ps
        return found

    def add_traffic(self) -> int:
        """Add a cross traffic without receivers. Return its number."""
        return int(self._library.packets_add_traffic(self._engine))

    def add_pool(
        self, traffic: int, pair: int, most_connections: int, *, is_fresh: bool, plan: ReactionPlan | None = None
    ) -> None:
        """Add the next pool of connections of a cross traffic, the first of which is `pair`.

        A flow takes the connection that was used last, a new one like `pair` if all are busy, or waits for one. With
        `is_fresh`, each flow begins on a connection without history, after a round trip over an empty network. `plan`
        is that of the pair, or None for TCP.
        """
        where = None if plan is None else byref(plan)
        self._library.packets_add_pool(self._engine, traffic, pair, most_connections, is_fresh, where)

    def set_flows(self, traffic: int, flows: npt.NDArray[np.void]) -> None:
        """Set the flows of a cross traffic, an array of FLOW in the order of their starts."""
        flows = np.ascontiguousarray(flows, FLOW)
        self._flows[traffic] = len(flows)
        self._library.packets_set_flows(self._engine, traffic, flows.ctypes.data, len(flows))

    def set_streams(self, traffic: int, plan: StreamPlan) -> None:
        """Let a cross traffic send streams over its first pool."""
        self._library.packets_set_streams(self._engine, traffic, byref(plan))

    def flow_records(self, traffic: int) -> npt.NDArray[np.void]:
        """Return the start and end of each flow of a cross traffic, an array of FLOW_RECORD."""
        found = np.zeros(self._flows[traffic], FLOW_RECORD)
        self._library.packets_flow_records(self._engine, traffic, found.ctypes.data)
        return found

    def traffic_result(self, traffic: int) -> TrafficResult:
        """Return the counters of a cross traffic so far."""
        found = TrafficResult()
        self._library.packets_traffic_result(self._engine, traffic, byref(found))
        return found

    def samples(self) -> Samples:
        """Return the counters at 0, `sample_ps`, twice that, ..., now at most."""
        count, width = (int(self._library[f"packets_{name}"](self._engine)) for name in ("sample_count", "row"))
        table = np.zeros((count, width), np.int64)
        self._library.packets_samples(self._engine, table.ctypes.data)
        marked = self._mark_counters()
        switch_ports = [number for number, is_switch in enumerate(self._is_switch) if is_switch]
        places = tuple((port, queue) for port in switch_ports for queue in self._queues)
        widths = (len(PORT_COLUMNS) * len(self._is_switch), len(marked), len(HOST_COLUMNS) * self._hosts)
        parts = np.split(table, np.cumsum([*widths, len(QUEUE_COLUMNS) * len(places)]), axis=1)
        ports, marks, hosts, queues, buffers = parts
        return Samples(
            ports=_by_column(ports, PORT_COLUMNS),
            hosts=_by_column(hosts, HOST_COLUMNS),
            marks=dict(zip(marked, marks.T, strict=True)),
            queues=_by_column(queues, QUEUE_COLUMNS),
            places=places,
            buffers=_by_column(buffers, BUFFER_COLUMNS),
        )

    def _mark_counters(self) -> list[tuple[int, int]]:
        count = int(self._library.packets_mark_counters(self._engine, None))
        found = (c_uint32 * (2 * count))()
        self._library.packets_mark_counters(self._engine, found)
        return list(zip(found[::2], found[1::2], strict=True))

    def pair_result(self, pair: int) -> PairResult:
        """Return the counters of a queue pair."""
        found = PairResult()
        self._library.packets_pair_result(self._engine, pair, byref(found))
        return found

    def connection_result(self, pair: int) -> ConnectionResult:
        """Return the counters and the state of a TCP connection, which must cross a link."""
        found = ConnectionResult()
        self._library.packets_connection_result(self._engine, pair, byref(found))
        return found


def _by_column(table: Integers, names: Sequence[str]) -> dict[str, Integers]:
    return {name: table[:, place :: len(names)] for place, name in enumerate(names)}


@cache
def _library(path: str) -> ctypes.CDLL:
    return load_engine("packets", path, FUNCTIONS)
