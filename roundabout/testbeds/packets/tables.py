# SPDX-License-Identifier: Apache-2.0
"""The tables of a trial that was played packet by packet, as a testbed would have measured them."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from roundabout.models.packets import PS_PER_MS, SAMPLE_MS, PlayedTrial
from roundabout.models.packets.engine import Integers
from roundabout.models.packets.steady_state import Skipped, repeated_places
from roundabout.models.packets.structures import PS_PER_US, Structure
from roundabout.runner.tables.trial_start import Columns, TrialStart
from roundabout.spec import TrialSpec
from roundabout.store import Identity, Units, build_table
from roundabout.testbeds.packets import cross_tables
from roundabout.testbeds.packets.loads import PlannedLoads

INTERFACE = "packets"
DEVICE = "roce/1"
"""Every host's RDMA device and port."""
NIC_COUNTERS = {
    "marked": "np_ecn_marked_roce_packets",
    "cnps_sent": "np_cnp_sent",
    "cnps_handled": "rp_cnp_handled",
    "out_of_sequence": "out_of_sequence",
}
"""Counters of the engine, by mlx5's names (hw_counters)."""
PAUSE_COUNTERS = {"pauses": ("rx_prio3_pause", "packets", 1), "paused_ps": ("rx_prio3_pause_duration", "us", PS_PER_US)}
"""Pause frames that a host's NIC obeyed: mlx5's name, unit, and what one of it is in the engine."""
PORT_PAUSE_COUNTERS = {"pauses": ("rx_pause", "packets", 1), "paused_ps": ("rx_pause_duration", "us", PS_PER_US)}
"""The same of a switch port that was paused."""
QUEUE_FIELDS = ("tx_bytes", "backlog_bytes", "drops", "marks", "pauses")
"""Counters of a port's queue that a table has as the engine does."""
REACTIONS = ("cnps", "fast_increases", "additive_increases", "hyper_increases")


def build_tables(
    spec: TrialSpec, played: PlayedTrial, planned: PlannedLoads, when: TrialStart, identity: Identity
) -> dict[str, pa.Table]:
    """Return all tables that have rows."""
    samples = _Samples(played, when)
    parts = {
        "iterations": _iterations(spec, played, when),
        "counters": _counters(spec, samples),
        "queue": _queue(spec, samples),
        "port_queues": _port_queues(spec, samples),
        "switch_buffers": _switch_buffers(spec, samples),
        "marks": _marks(spec, samples),
        "device_counters": _device_counters(spec, samples),
        "flows": _flows(spec, samples),
        "reactions": _reactions(spec, samples),
        "cross_traffic": cross_tables.build_summaries(spec, played, planned, when),
        "cross_flows": cross_tables.build_flows(spec, played, planned, when),
    }
    built = {name: [build_table(name, identity, part, Units()) for part in each] for name, each in parts.items()}
    return {name: pa.concat_tables(each) for name, each in built.items() if each}


class _Samples:
    """The counters of a played trial, with the instants of its samples."""

    def __init__(self, played: PlayedTrial, when: TrialStart) -> None:
        self.played = played
        self.ports, self.hosts, self.marks = played.samples.ports, played.samples.hosts, played.samples.marks
        self.queues, self.places, self.buffers = played.samples.queues, played.samples.places, played.samples.buffers
        self.when, self.ms = when, np.arange(len(played.samples), dtype=float) * SAMPLE_MS

    def place(self, host: str, rows: slice = slice(None)) -> Columns:
        """Return the columns of place and time of some samples."""
        return self.when.columns(host, self.ms[rows])

    def end(self, host: str) -> Columns:
        """Return the columns of place and time of the last sample."""
        return self.when.columns(host, self.ms[-1:])


def _iterations(spec: TrialSpec, played: PlayedTrial, when: TrialStart) -> Iterator[Columns]:
    for name, job in spec.jobs.items():
        each = [job.transfers(phase) for phase in job.profile.phases]
        transfers = [transfer for phase in each for transfer in phase]
        for rank, (host, found) in enumerate(zip(job.workers, played.iterations[name], strict=True)):
            length = len(found)
            if not length:
                continue
            start, compute_end, end, delay = (found[column] / PS_PER_MS for column in found.dtype.names or ())
            sent, received = (
                sum(transfer.bytes for transfer in transfers if getattr(transfer, side) == rank)
                for side in ("sender", "receiver")
            )
            yield {
                **when.iteration_columns(host, name, rank, start, compute_end, end),
                "sent_bytes": [sent] * length,
                "received_bytes": [received] * length,
                **({"delay_ms": delay} if job.held_timetable else {}),
                **_repeats(played.skipped.get(name)),
            }


def _repeats(skipped: Skipped | None) -> Columns:
    if not skipped:
        return {}
    return {"repeats": np.array([None] * skipped.played + repeated_places(skipped), dtype=object)}


def _counters(spec: TrialSpec, samples: _Samples) -> Iterator[Columns]:
    length = len(samples.ms)
    for host in spec.topology.hosts:
        out = np.array(list(_host_ports(samples, host)))
        yield {
            **samples.place(host),
            "interface": [INTERFACE] * length,
            # The host's received bytes are the switch's sent bytes; these differ by at most one packet.
            **{f"tx_{what}": samples.ports[f"tx_{what}"][:, out].sum(axis=1) for what in ("bytes", "packets")},
            **{f"rx_{what}": samples.ports[f"tx_{what}"][:, out ^ 1].sum(axis=1) for what in ("bytes", "packets")},
            **{name: np.zeros(length, np.int64) for name in ("tx_dropped", "rx_dropped")},
        }


def _host_ports(samples: _Samples, host: str) -> dict[int, str]:
    """Return the ports by which a host sends, one for each NIC, with the names of their links."""
    ports = samples.played.ports.directions
    return {number: link.name for number, ((sender, _), link) in enumerate(ports) if sender == host}


def _switch_ports(spec: TrialSpec, samples: _Samples) -> Iterator[tuple[int, str, Columns]]:
    """Yield each switch port's number, its switch, and the columns that name it, of one row."""
    for number, ((sender, receiver), link) in enumerate(samples.played.ports.directions):
        if sender in spec.topology.switches:
            yield number, sender, {"link": link.name, "interface": INTERFACE, "towards": receiver}


def _repeated(values: Mapping[str, Any], length: int) -> Columns:
    return {name: [value] * length for name, value in values.items()}


def _queue(spec: TrialSpec, samples: _Samples) -> Iterator[Columns]:
    for number, switch, port in _switch_ports(spec, samples):
        yield {
            **samples.place(switch),
            **_repeated(port, len(samples.ms)),
            **{name: samples.ports[name][:, number] for name in ("tx_bytes", "backlog_bytes", "drops", "marks")},
        }


def _port_queues(spec: TrialSpec, samples: _Samples) -> Iterator[Columns]:
    found, length = samples.queues, len(samples.ms)
    for number, switch, port in _switch_ports(spec, samples):
        for place, (at, queue) in enumerate(samples.places):
            if at == number:
                averages = {"average_bytes": found["average_bytes"][:, place]} if spec.queue == "red" else {}
                yield {
                    **samples.place(switch),
                    **_repeated({**port, "queue": queue}, length),
                    **{name: found[name][:, place] for name in QUEUE_FIELDS},
                    "paused_us": found["paused_ps"][:, place] / PS_PER_US,
                    **averages,
                }


def _switch_buffers(spec: TrialSpec, samples: _Samples) -> Iterator[Columns]:
    for place, switch in enumerate(spec.topology.switches if spec.topology.buffer else ()):
        yield {**samples.place(switch), **{name: each[:, place] for name, each in samples.buffers.items()}}


def _marks(spec: TrialSpec, samples: _Samples) -> Iterator[Columns]:
    sources = defaultdict[int, list[tuple[int, Integers]]](list)
    for (number, source), counted in samples.marks.items():
        if counted[-1] > 0:
            sources[number].append((source, counted))
    for number, switch, port in _switch_ports(spec, samples):
        for source, counted in sources[number]:
            # As in a lab, a source appears with its first mark.
            rows = slice(int(np.argmax(counted > 0)), None)
            whose = _repeated({**port, "source": spec.topology.hosts[source]}, len(counted[rows]))
            yield {**samples.place(switch, rows), **whose, "marks": counted[rows]}


def _device_counters(spec: TrialSpec, samples: _Samples) -> Iterator[Columns]:
    for place, host in enumerate(spec.topology.hosts):
        for column, name in NIC_COUNTERS.items():
            about = {"device": DEVICE, "source": "rdma hw", "counter": name, "unit": "packets"}
            yield _device_counter(samples, host, about, samples.hosts[column][:, place])
        nics = {} if spec.may_drop else _host_ports(samples, host)
        for number, link in nics.items():
            yield from _pauses(samples, host, number, INTERFACE if len(nics) == 1 else link, PAUSE_COUNTERS)
    for number, switch, port in _switch_ports(spec, samples):
        if samples.ports["pauses"][-1, number]:
            yield from _pauses(samples, switch, number, port["link"], PORT_PAUSE_COUNTERS)


def _pauses(
    samples: _Samples, host: str, port: int, device: str, counters: Mapping[str, tuple[str, str, int]]
) -> Iterator[Columns]:
    for column, (name, unit, one) in counters.items():
        about = {"device": device, "source": "ethtool", "counter": name, "unit": unit}
        yield _device_counter(samples, host, about, samples.ports[column][:, port] // one)


def _device_counter(samples: _Samples, host: str, about: Mapping[str, str], value: Integers) -> Columns:
    return {**samples.place(host), **_repeated({**about, "width_bits": 64}, len(samples.ms)), "value": value}


def _flows(spec: TrialSpec, samples: _Samples) -> Iterator[Columns]:
    for name, job in spec.jobs.items():
        for (rank, peer_rank, number), pair in samples.played.pairs[name].items():
            row = {
                "job": name,
                "rank": rank,
                "flow": number,
                "peer": job.workers[peer_rank],
                "peer_rank": peer_rank,
                "bytes_acked": pair.acked,
                "retransmitted": pair.resent,
                "delivered_segments": pair.delivered,
                "delivered_ce_segments": pair.marked,
            }
            yield {**samples.end(job.workers[rank]), **_repeated(row, 1)}


def _reactions(spec: TrialSpec, samples: _Samples) -> Iterator[Columns]:
    for host in spec.topology.hosts:
        pairs = list(_pairs_from(spec, samples, host))
        transport = next((job.transport.name for job in spec.jobs.values() if host in job.workers), None)
        for name in REACTIONS if pairs else ():
            after = float(sum(getattr(pair, name) for pair in pairs))
            row = {"transport": transport, "counter": name, "before": 0.0, "after": after}
            yield {**samples.end(host), **_repeated(row, 1)}


def _pairs_from(spec: TrialSpec, samples: _Samples, host: str) -> Iterator[Structure]:
    for name, job in spec.jobs.items():
        for (rank, _, _), pair in samples.played.pairs[name].items():
            if job.workers[rank] == host:
                yield pair
