# SPDX-License-Identifier: Apache-2.0
"""The flows between the nodes of a ring inside iterations, packet by packet (Salamy, Figures 3-9 to 3-11, Table 3.11).

Flow 1 goes from one worker without cross traffic to another. Flow 2 leaves the worker that receives cross traffic. Flow
3 is the cross traffic. A ring conserves bytes: over whole iterations flows 1 and 2 have the same mean. Salamy's figures
of both differ, so they must be means of one reading a packet: a moving average of 30 packets at 30 % load, and of 50 at
80 %. Such a mean grows with the variation of a sender's rate, and is never below the mean over time.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from analysis.papers.salamy import INTRA_ITERATION
from analysis.reading.cached_run import cached_per_run
from analysis.reading.cells import CellId, CellTrials, cells_of
from analysis.reading.cross_traffic.injection import moving_average_gbps
from analysis.reading.cross_traffic.intra_iteration_rates import LOADS, flow_senders
from analysis.reading.cross_traffic.load_sweep_data import LOAD, NEAR_GBPS
from analysis.reading.data import query, rows_with_arrays
from analysis.statistics.cumulative_counter import Floats, Integers
from analysis.statistics.intervals import Measured, mean_of, ratio
from roundabout.spec import ResolvedJob, TrialSpec
from roundabout.spec.frames import HEADER_BYTES
from roundabout.store import Run, Units

WIDTHS = {30: 30, 80: 50}
"""Packets in the moving average, by load in % (captions of Figures 3-10 and 3-11)."""
Place = tuple[str, str]
"""A trial's key and a host."""
Sent = tuple[Integers, Integers]
"""The readings of a host: the instants at which bytes left it, ns, and the bytes of payload."""
NOTHING: Sent = (np.empty(0, np.int64), np.empty(0, np.int64))
WORKERS = (1, 2)
"""Numbers of the flows that workers send."""


@dataclass(frozen=True)
class FlowReadings:
    """The readings of a host's flow from a trial's first iteration to its last, as arrays of one length.

    `at_ns` is the end of a reading, and `payload_bytes` its weight in the mean: the bytes of a packet, or since the
    last sample. `over_iterations_gbps` is all bytes over the whole time, compute phases included. `sufficient_gbps` is
    all bytes over the time in which the host's worker communicated, which is the rate of a constant sender; nan for a
    host without a worker.
    """

    host: str
    at_ns: Integers
    gbps: Floats
    payload_bytes: Integers
    over_iterations_gbps: float
    sufficient_gbps: float

    @property
    def over_packets_gbps(self) -> float:
        """Return the mean of the readings, weighted by payload, Gbit/s."""
        return float(np.average(self.gbps, weights=self.payload_bytes))


@dataclass(frozen=True)
class RingFlows:
    """A cell in which a job's ring shares links with cross traffic.

    `flows` holds flows 1, 2 and 3 of each trial, and `begins_ns` the begins of its iterations.

    `captured` is True if readings are packets; otherwise they are samples of counters, every 10 ms.
    """

    cell: CellTrials
    job: str
    percent: int
    captured: bool
    flows: Mapping[str, tuple[FlowReadings, ...]]
    begins_ns: Mapping[str, Integers]

    @property
    def spec(self) -> ResolvedJob:
        """Return the job's specification."""
        return self.cell.spec.jobs[self.job]

    @property
    def model(self) -> str:
        """Return the job's model."""
        return self.spec.profile.model

    @property
    def asked_gbps(self) -> float:
        """Return the requested load of cross traffic, Gbit/s."""
        return self.cell.spec.cross_traffic_gbps

    @property
    def apart_from_load(self) -> tuple[CellId, str]:
        """Return the identity of the cell without its load."""
        return self.cell.id.without_factor(LOAD), self.job

    @property
    def printed(self) -> tuple[float, float] | None:
        """Return the means of flows 1 and 2 that Salamy prints, Gbit/s; None if there are none for this case."""
        near = abs(self.asked_gbps - LOADS[self.percent]) <= NEAR_GBPS
        return INTRA_ITERATION.get((self.model, self.percent)) if near else None

    def repetitions_of(self, flow: int) -> list[FlowReadings]:
        """Return flow 1, 2 or 3 of every repetition."""
        return [flows[flow - 1] for flows in self.flows.values()]

    def over_packets(self, flow: int) -> Measured:
        """Return the mean of the flow's readings, Gbit/s."""
        return mean_of([each.over_packets_gbps for each in self.repetitions_of(flow)])

    def over_iterations(self, flow: int) -> Measured:
        """Return the flow's bytes over the time that iterations took, Gbit/s."""
        return mean_of([each.over_iterations_gbps for each in self.repetitions_of(flow)])

    def sufficient(self, flow: int) -> Measured:
        """Return the constant rate that sends the flow's bytes in the time in which its worker communicated, Gbit/s."""
        return mean_of([each.sufficient_gbps for each in self.repetitions_of(flow)])

    def over_sufficient(self, flow: int) -> Measured:
        """Return the mean of a flow's readings over its sufficient rate (see `sufficient`)."""
        return mean_of([each.over_packets_gbps / each.sufficient_gbps for each in self.repetitions_of(flow)])

    @property
    def difference(self) -> Measured:
        """Return the mean of flow 1's readings less flow 2's, averaged over repetitions, Gbit/s."""
        pairs = zip(*map(self.repetitions_of, WORKERS), strict=True)
        return mean_of([one.over_packets_gbps - other.over_packets_gbps for one, other in pairs])


@cached_per_run
def iteration_flows(run: Run) -> list[RingFlows]:
    """Return every cell in which some workers of a ring receive cross traffic from another host.

    Cells are in the experiment's order. Readings come from captured packets if all hosts have them, else from counters.
    """
    cells = [(cell, job, hosts) for cell in cells_of(run) for job in cell.jobs if (hosts := _hosts(cell.spec, job))]
    trials = [trial for cell, _, _ in cells for trial in cell.trials]
    ran, communicated_ns = _iteration_edges(run, trials), _communicated_ns(run, trials)
    packets = _captured_packets(run, trials)
    captured = all((trial, host) in packets for cell, _, hosts in cells for trial in cell.trials for host in hosts)
    sent = packets if captured else _counted_bytes(run, trials)
    found = []
    for cell, job, hosts in cells:
        percent = min(LOADS, key=lambda each: abs(LOADS[each] - cell.spec.cross_traffic_gbps))
        width = WIDTHS[percent] if captured else 1
        read = {
            trial: [_flow((trial, host), sent, ran[trial, job], communicated_ns, width) for host in hosts]
            for trial in cell.trials
        }
        flows = {trial: tuple(filter(None, each)) for trial, each in read.items() if all(each)}
        if flows:
            begins_ns = {trial: ran[trial, job]["begins_ns"] for trial in flows}
            found.append(RingFlows(cell, job, percent, captured, flows, begins_ns))
    return found


def light_and_heavy_pairs(found: Sequence[RingFlows]) -> list[tuple[RingFlows, RingFlows]]:
    """Return the pairs of cells of each job measured at 30 and at 80 % load with all else equal."""
    light, heavy = ({each.apart_from_load: each for each in found if each.percent == load} for load in LOADS)
    return [(light[of], heavy[of]) for of in light if of in heavy]


def kept_share(light: RingFlows, heavy: RingFlows, flow: int) -> Measured:
    """Return the mean of a flow's readings in the cell `heavy` over that in `light`."""
    return ratio(heavy.over_packets(flow), light.over_packets(flow))


def _hosts(spec: TrialSpec, job: str) -> tuple[str, ...]:
    """Return the hosts that flows 1, 2 and 3 leave; empty if there is no such ring."""
    senders = {each.sender for each in spec.cross_traffic.values() if each.load_gbps}
    workers = flow_senders(spec, spec.jobs[job])
    return (*workers, *senders) if workers and len(senders) == 1 else ()


def _iteration_edges(run: Run, trials: Sequence[str]) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the begins of iterations and the end of the last one, by trial and job."""
    rows = query(
        run,
        """
        with began as (select trial, job, iteration, min(start_ns) as start_ns, max(comm_end_ns) as end_ns
                       from iterations where trial in (select unnest($trials)) group by all)
        select trial, job, list(start_ns order by iteration) as begins_ns, max(end_ns) as end_ns
        from began group by trial, job
        """,
        trials=trials,
    )
    return {(row["trial"], row["job"]): row for row in rows_with_arrays(rows)}


def _communicated_ns(run: Run, trials: Sequence[str]) -> dict[Place, float]:
    """Return the total time of communication, by trial and host."""
    rows = query(
        run,
        """
        select trial, host, sum(comm_end_ns - compute_end_ns)::double as communicated_ns
        from iterations where trial in (select unnest($trials)) group by trial, host
        """,
        trials=trials,
    )
    return {(row["trial"], row["host"]): row["communicated_ns"] for row in rows.to_pylist()}


def _captured_packets(run: Run, trials: Sequence[str]) -> dict[Place, Sent]:
    """Return the instants and payload of packets with payload (by Salamy's filter), by trial and host.

    Of a host's packets only those to its main receiver count: a worker that receives cross traffic answers its sender,
    too.
    """
    rows = query(
        run,
        """
        with sent as (
            select trial, host, destination, list(controller_ns order by controller_ns, payload_bytes) as at_ns,
                   list(payload_bytes order by controller_ns, payload_bytes) as payload_bytes
            from packets where direction = 'out' and payload_bytes > 0 and trial in (select unnest($trials))
            group by all)
        select * from sent
        qualify row_number() over (partition by trial, host order by list_sum(payload_bytes) desc) = 1
        """,
        trials=trials,
    )
    return {
        (row["trial"], row["host"]): (row["at_ns"], row["payload_bytes"].astype(np.int64))
        for row in rows_with_arrays(rows)
    }


def _counted_bytes(run: Run, trials: Sequence[str]) -> dict[Place, Sent]:
    """Return the instants of counter samples and the payload since the sample before, by trial and host."""
    rows = query(
        run,
        """
        select trial, host, list(controller_ns order by controller_ns) as at_ns,
               list(tx_bytes order by controller_ns) as wire_bytes, list(tx_packets order by controller_ns) as packets
        from counters where trial in (select unnest($trials)) group by trial, host
        """,
        trials=trials,
    )
    header_bytes = HEADER_BYTES * Units.from_manifest(run.manifest["testbed"]).bytes_scale
    return {
        (row["trial"], row["host"]): (row["at_ns"], _payload(row["wire_bytes"], row["packets"], header_bytes))
        for row in rows_with_arrays(rows)
    }


def _payload(wire_bytes: Integers, packets: Integers, header_bytes: float) -> Integers:
    payload = np.diff(wire_bytes, prepend=wire_bytes[:1]) - header_bytes * np.diff(packets, prepend=packets[:1])
    return np.rint(payload).astype(np.int64)


def _flow(
    place: Place, sent: Mapping[Place, Sent], ran: Mapping[str, Any], communicated_ns: Mapping[Place, float], width: int
) -> FlowReadings | None:
    """Return a host's flow in a trial; None without a reading."""
    at_ns, payload_bytes = sent.get(place, NOTHING)
    begin_ns, end_ns = ran["begins_ns"][0], ran["end_ns"]
    within = (at_ns >= begin_ns) & (at_ns <= end_ns)
    at_ns, payload_bytes = at_ns[within], payload_bytes[within]
    read_ns, gbps = moving_average_gbps(at_ns, payload_bytes, width)
    weights, known = payload_bytes[len(payload_bytes) - len(gbps) :], np.isfinite(gbps)
    if not weights[known].any():
        return None
    over_ns = (end_ns - begin_ns, communicated_ns.get(place, np.nan))
    means_gbps = (8 * float(payload_bytes.sum()) / each for each in over_ns)
    return FlowReadings(place[1], read_ns[known], gbps[known], weights[known], *means_gbps)
