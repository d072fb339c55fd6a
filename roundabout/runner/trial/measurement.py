# SPDX-License-Identifier: Apache-2.0
"""The raw measurement of one attempt at a trial, and its conversion to tables in the papers' units."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from roundabout.runner.hosts.clocks import CONTROLLER, ClockLog, RunClock
from roundabout.runner.hosts.host_group import EchoTimes, HostGroup, Port
from roundabout.runner.tables.rows import Columns, Samples, integers
from roundabout.runner.trial.captures import NicCapture
from roundabout.runner.trial.cross_traffic_tables import GeneratorOutput
from roundabout.runner.trial.jobs import Worker
from roundabout.runner.trial.routes.route_readback import FoundRoute
from roundabout.runner.trial.sampler import SamplingQuality, sampling_quality
from roundabout.runner.trial.switch_queues import SwitchQueues
from roundabout.store import Identity, Units, build_table
from roundabout.store.schemas import TABLES, columns

IDENTITY = frozenset(each.name for each in fields(Identity))
# Columns of `flows` that only TCP fills -> their fields in a trainer's event.
TCP_ALONE = {
    "congestion_control": "congestion_control",
    "retransmitted": "retransmitted",
    "delivered_segments": "delivered",
    "delivered_ce_segments": "delivered_ce",
}


@dataclass
class Measurement:
    """All measurements of one attempt until its end, with byte counts in the hosts' units."""

    clock_log: ClockLog = field(default_factory=ClockLog)
    settings: dict[str, Any] = field(
        default_factory=dict
    )  # host -> settings found, settings applied, and differences at the end
    counters_before: dict[str, dict[str, Any]] = field(default_factory=dict)  # host -> transport -> counter -> value
    counters_after: dict[str, dict[str, Any]] = field(default_factory=dict)
    events: list[tuple[Worker, dict[str, Any]]] = field(default_factory=list)
    host_samples: dict[str, Samples] = field(default_factory=dict)
    switch_samples: list[Samples] = field(default_factory=list)
    switch_queues: dict[str, SwitchQueues] = field(default_factory=dict)  # switch -> its answers, on a rack
    controller_samples: Samples | None = None
    loads: dict[str, GeneratorOutput] = field(default_factory=dict)  # cross traffic -> its generator's output
    start_ns: int | None = None  # the agreed start, on the run's clock
    end_ns: int | None = None  # end of the last worker, on the run's clock
    captured: dict[str, list[NicCapture]] = field(default_factory=dict)  # host -> captures of its NICs
    routes: list[FoundRoute] = field(default_factory=list)  # as found before the start, where switches choose them
    nccl: dict[str, Any] = field(default_factory=dict)  # worker -> requested and reported settings of NCCL
    invalid_reasons: list[str] = field(default_factory=list)  # reasons of an early end or of invalid data
    lost_packets: dict[str, int] = field(default_factory=dict)  # link -> packets that its events took
    lost_host: bool = False  # True if the connections must be opened again
    settings_differ: bool = False  # True if settings that were read back ended the attempt
    cpu_shortage: list[str] = field(default_factory=list)  # signs that programs of the controller lacked CPU time

    def of_kind(self, kind: str) -> list[tuple[Worker, dict[str, Any]]]:
        """Return the events of one kind, each with its worker."""
        return [(worker, event) for worker, event in self.events if event["event"] == kind]

    def sampling(self) -> dict[str, SamplingQuality]:
        """Return the sampling quality by sampler. Samplers without samples are left out."""
        found = {host: sampling_quality(samples) for host, samples in self.host_samples.items()}
        return {host: kept for host, kept in found.items() if kept}


def feedback_us(measured: Measurement, echoes: EchoTimes, dilation: float) -> float | None:
    """Return the mean time from a mark to the cut of a rate in a trial, in us of the papers' time. None: not measured.

    `echoes` is the time from marks to their senders' devices during the trial. Transports count how long CNPs wait.
    """
    if not echoes.echoes:
        return None
    held_us = cuts = 0
    for host, transports in measured.counters_after.items():
        for name, after in transports.items():
            if "held_us" in after:
                before = measured.counters_before.get(host, {}).get(name, {})
                held_us += after["held_us"] - before.get("held_us", 0)
                cuts += after["cnps"] - before.get("cnps", 0)
    return (echoes.total_us / echoes.echoes + held_us / max(cuts, 1)) / dilation


def host_units(site: HostGroup, clock: RunClock) -> Units:
    """Return the units of measurements on `site` in a run with `clock`."""
    return Units(site.scale, site.dilation, clock.anchor_utc_ns)


def build_tables(measured: Measurement, site: HostGroup, identity: Identity, units: Units) -> dict[str, pa.Table]:
    """Return all tables of a trial except `trials`, by name, in the papers' units."""
    hosts = {host: samples.columns for host, samples in measured.host_samples.items()}
    raw = {
        "iterations": _iterations(measured),
        "flows": flow_columns(measured),
        "counters": counters(measured.clock_log, hosts),
        "queue": _queue(measured, site.ports),
        "marks": _marks(measured, site),
        "device_counters": _device_counters(measured.clock_log, hosts),
        "clock": _clock(measured.clock_log),
        "cpu": _cpu(measured, hosts),
        "reactions": _reactions(measured),
        "cross_traffic": _cross_traffic(measured),
        "cross_flows": _cross_flows(measured),
    }
    if (queues := _port_queues(measured)) is not None:
        raw["port_queues"] = queues
    return {name: build_table(name, identity, values, units) for name, values in raw.items()}


def _iterations(measured: Measurement) -> Columns:
    parts, whole = [], _common_iterations(measured)
    for worker, every in _by_worker(measured.of_kind("iteration")):
        events = [event for event in every if event["iteration"] < whole.get(worker.job, len(every))]
        start, compute_end, comm_end = (
            integers(events, field_name) for field_name in ("start_ns", "compute_end_ns", "comm_end_ns")
        )
        on_run = [measured.clock_log.on_run(worker.host, each) for each in (start, compute_end, comm_end)]
        parts.append(
            {
                **_constants(len(events), job=worker.job, rank=worker.rank),
                **_when(measured.clock_log, worker.host, start),
                "iteration": integers(events, "iteration"),
                **dict(zip(("start_ns", "compute_end_ns", "comm_end_ns"), on_run, strict=True)),
                "iteration_ms": (comm_end - start) / 1e6,
                "compute_ms": (compute_end - start) / 1e6,
                "communication_ms": (comm_end - compute_end) / 1e6,
                "late_ms": integers(events, "late_ns") / 1e6,
                "delay_ms": _delays_ms(events),
                **{
                    name: np.array([event.get(name) for event in events], dtype=object)
                    for name in ("sent_bytes", "received_bytes", "loss", "bus_bandwidth_gbps")
                },
                "repeats": np.full(len(events), None, object),  # all iterations are played
            }
        )
    return _joined("iterations", parts)


def _delays_ms(events: Sequence[dict[str, Any]]) -> npt.NDArray[Any]:
    """Return the delays of events, ms; None without an agent."""
    reported = (event.get("delay_ns") for event in events)
    return np.array([None if delay_ns is None else delay_ns / 1e6 for delay_ns in reported], dtype=object)


def _common_iterations(measured: Measurement) -> dict[str, int]:
    """Return the number of iterations that all workers of a job did. When a job departs, some may end one more."""
    found: dict[str, int] = {}
    for worker, event in measured.of_kind("done"):
        found[worker.job] = min(event["iterations"], found.get(worker.job, event["iterations"]))
    return found


def flow_columns(measured: Measurement) -> Columns:
    """Return the columns of the table `flows`, one row for each connection of each worker, in the hosts' units."""
    parts = []
    for worker, events in _by_worker(measured.of_kind("flow")):
        at_ns = measured.clock_log.on_host(worker.host, measured.end_ns or 0)
        parts.append(
            {
                **_constants(len(events), job=worker.job, rank=worker.rank),
                **_when(measured.clock_log, worker.host, np.full(len(events), at_ns, dtype=np.int64)),
                "peer": np.array([event["peer"] for event in events]),
                **{
                    name: integers(events, name)
                    for name in ("flow", "peer_rank", "local_port", "remote_port", "bytes_acked")
                },
                **{
                    column: np.array([event[name] for event in events], dtype=object)
                    for column, name in TCP_ALONE.items()
                },
            }
        )
    return _joined("flows", parts)


def counters(clock_log: ClockLog, samples: Mapping[str, dict[str, Columns]]) -> Columns:
    """Return the columns of the table `counters` from the samples of hosts."""
    names = ("interface", "tx_bytes", "rx_bytes", "tx_packets", "rx_packets", "tx_dropped", "rx_dropped")
    parts = [
        {**_when(clock_log, host, _midpoint(port)), **{name: port[name] for name in names}}
        for host, kinds in samples.items()
        if (port := kinds.get("port")) is not None
    ]
    return _joined("counters", parts)


def _device_counters(clock_log: ClockLog, samples: Mapping[str, dict[str, Columns]]) -> Columns:
    parts = []
    for host, kinds in samples.items():
        if (port := kinds.get("port")) is not None:
            parts.append(_link_state(clock_log, host, port))
        about = kinds.get("counter", {})
        for row in zip(*about.values(), strict=True):
            each = dict(zip(about, row, strict=True))
            kind, field_name = each.pop("set"), each.pop("field")
            if (read := kinds.get(kind)) is not None:
                at = _when(clock_log, host, _midpoint(read))
                parts.append({**at, **_constants(len(at["host_ns"]), **each), "value": read[field_name]})
    return _joined("device_counters", parts)


def _link_state(clock_log: ClockLog, host: str, port: Columns) -> Columns:
    at = _when(clock_log, host, _midpoint(port))
    state = _constants(len(at["host_ns"]), source="link", counter="up", unit="", width_bits=1)
    return {**at, **state, "device": port["interface"], "value": port["up"]}


def _queue(measured: Measurement, ports: Sequence[Port]) -> Columns:
    parts = [
        {
            **_at_port(measured.clock_log, port, rows),
            "tx_bytes": rows["tx_bytes"],
            "backlog_bytes": rows["qdisc_backlog_bytes"],
            "drops": _sum(rows["qdisc_drops"], rows["tx_dropped"]),
            "marks": rows["marks"],
        }
        for port, rows in _by_port(measured, ports, "port")
    ]
    return _joined("queue", parts)


def _marks(measured: Measurement, site: HostGroup) -> Columns:
    names = {nic.address: host.name for host in site.hosts.values() for nic in host.nics}
    parts = [
        {**_at_port(measured.clock_log, port, rows), "source": rows["source"], "marks": rows["marks"]}
        for port, by_address in _by_port(measured, site.ports, "marks")
        for rows in (_by_host(by_address, names),)
    ]
    return _joined("marks", parts)


def _by_host(rows: Columns, names: Mapping[str, str]) -> Columns:
    """Return marks by the names of hosts, which have an address for each NIC. An unknown address stands for itself."""
    sources = [names.get(address, address) for address in rows["source"]]
    table = pa.table({**rows, "source": sources})
    keys = [name for name in table.column_names if name != "marks"]
    summed = (
        table.group_by(keys, use_threads=False).aggregate([("marks", "sum")]).rename_columns({"marks_sum": "marks"})
    )
    return {name: summed[name].to_numpy() for name in summed.column_names}


def _by_port(measured: Measurement, ports: Sequence[Port], kind: str) -> list[tuple[Port, Columns]]:
    """Return the records of one kind of all switches, port by port."""
    by_index = {port.ifindex: port for port in ports}
    found = []
    for switch in measured.switch_samples:
        samples = switch.columns.get(kind, {"ifindex": np.array([])})
        for ifindex in sorted(by_index.keys() & set(samples["ifindex"].tolist())):
            here = samples["ifindex"] == ifindex
            found.append((by_index[ifindex], {name: values[here] for name, values in samples.items()}))
    return found


def _at_port(clock_log: ClockLog, port: Port, rows: Columns) -> Columns:
    """Return the columns of place and time, for rows of a switch's port."""
    where = {"host": port.switch, "link": port.link, "interface": port.interface, "towards": port.towards}
    return {**_when(clock_log, CONTROLLER, _midpoint(rows)), **_constants(len(rows["ifindex"]), **where)}


def _port_queues(measured: Measurement) -> Columns | None:
    """Return the columns of the queues that switches reported, or None if none did."""
    names = [column.name for column in TABLES["port_queues"]]
    parts = []
    for switch, queues in measured.switch_queues.items():
        rows = queues.rows()
        at_ns = np.array([row["at_ns"] for row in rows], dtype=np.int64)
        reported = {name: np.array([row.get(name) for row in rows], dtype=object) for name in names}
        parts.append({**_when(measured.clock_log, CONTROLLER, at_ns), **_constants(len(rows), host=switch), **reported})
    return _joined("port_queues", parts) if any(len(part["host"]) for part in parts) else None


def _clock(clock_log: ClockLog) -> Columns:
    parts = []
    for host, readings in clock_log.readings.items():
        when = _when(clock_log, host, np.array([reading.host_ns for reading in readings], dtype=np.int64))
        names = ("phase", "offset_ns", "bound_ns", "utc_ns")
        found: Columns = {name: np.array([getattr(reading, name) for reading in readings]) for name in names}
        syncs = [None if reading.sync is None else json.dumps(reading.sync) for reading in readings]
        parts.append({**when, **found, "sync": np.array(syncs, dtype=object)})
    return _joined("clock", parts)


def _cpu(measured: Measurement, hosts: Mapping[str, dict[str, Columns]]) -> Columns:
    controller = measured.controller_samples
    samples = {**({CONTROLLER: controller.columns} if controller else {}), **hosts}
    return _joined(
        "cpu",
        [_cpu_windows(measured.clock_log, host, kinds["cpu"]) for host, kinds in samples.items() if "cpu" in kinds],
    )


def _cpu_windows(clock_log: ClockLog, host: str, samples: Columns) -> Columns:
    at = _midpoint(samples)
    gained = {name: np.diff(values) for name, values in samples.items()}
    ticks = np.maximum(gained["busy_ticks"] + gained["idle_ticks"] + gained["steal_ticks"], 1)
    return {
        **_when(clock_log, host, at[1:]),
        "window_ms": np.diff(at) / 1e6,
        "busy_share": (gained["busy_ticks"] + gained["steal_ticks"]) / ticks,
        "steal_share": gained["steal_ticks"] / ticks,
        "softirq_share": gained["softirq_ticks"] / ticks,
        "softnet_dropped": gained["softnet_dropped"],
        "softnet_squeezed": gained["softnet_squeezed"],
    }


def _reactions(measured: Measurement) -> Columns:
    parts = []
    for host, transports in measured.counters_after.items():
        at_ns = measured.clock_log.on_host(host, measured.end_ns or 0)
        for transport, after in transports.items():
            before = measured.counters_before[host][transport]
            parts.append(
                {
                    **_when(measured.clock_log, host, np.full(len(after), at_ns, dtype=np.int64)),
                    **_constants(len(after), transport=transport),
                    "counter": np.array(list(after), dtype=object),  # there may be none
                    "before": np.array([before[name] for name in after], dtype=np.float64),
                    "after": np.array(list(after.values()), dtype=np.float64),
                }
            )
    return _joined("reactions", parts)


def _cross_traffic(measured: Measurement) -> Columns:
    parts = []
    for name, load in measured.loads.items():
        if summary := load.summary():
            at_ns = measured.clock_log.on_host(load.spec.sender, measured.end_ns or 0)
            when = _when(measured.clock_log, load.spec.sender, np.array([at_ns], dtype=np.int64))
            parts.append({**_constants(1, traffic=name), **when, **summary})
    return _joined("cross_traffic", parts)


def _cross_flows(measured: Measurement) -> Columns:
    parts = []
    for name, load in measured.loads.items():
        if flows := load.flows():
            sender, intended_ns = load.spec.sender, flows.pop("intended_ns")
            on_run = {each: _on_run(measured.clock_log, sender, flows[each]) for each in ("start_ns", "end_ns")}
            when = _when(measured.clock_log, sender, intended_ns)
            parts.append({**_constants(len(intended_ns), traffic=name), **when, **flows, **on_run})
    return _joined("cross_flows", parts)


def _on_run(clock_log: ClockLog, host: str, host_ns: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the run's nanoseconds, and None for None."""
    if host_ns.dtype != object:
        return clock_log.on_run(host, host_ns)
    known = np.array([value is not None for value in host_ns])
    result = np.full(len(host_ns), None, dtype=object)
    result[known] = clock_log.on_run(host, host_ns[known].astype(np.int64))
    return result


def _by_worker(events: Sequence[tuple[Worker, dict[str, Any]]]) -> list[tuple[Worker, list[dict[str, Any]]]]:
    grouped: dict[Worker, list[dict[str, Any]]] = {}
    for worker, event in events:
        grouped.setdefault(worker, []).append(event)
    return list(grouped.items())


def _when(clock_log: ClockLog, host: str, host_ns: npt.NDArray[np.int64]) -> Columns:
    """Return the columns of place and time, for rows of one host at these instants of its monotonic clock."""
    return {
        **_constants(len(host_ns), host=host),
        "host_ns": host_ns,
        "controller_ns": clock_log.on_run(host, host_ns),
        "offset_bound_ns": clock_log.bound_ns(host, host_ns),
    }


def _constants(length: int, **values: str | int) -> Columns:
    # Text as objects: as numpy's own it would take four bytes a letter in every row.
    return {name: np.full(length, value, object if isinstance(value, str) else None) for name, value in values.items()}


def _midpoint(samples: Columns) -> npt.NDArray[np.int64]:
    """Return the instant of each sample, halfway between the clock readings before and after it."""
    before, after = samples["before_ns"], samples["after_ns"]
    return np.asarray(before + (after - before) // 2)


def _sum(first: npt.NDArray[Any], second: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the sums, null if either addend is."""
    known = (first != None) & (second != None)  # noqa: E711 - element by element
    total = np.full(len(known), None, dtype=object)
    total[known] = first[known] + second[known]
    return total


def _joined(table: str, parts: Sequence[Columns]) -> Columns:
    """Return the rows of all parts, in order; no rows without parts."""
    names = [column.name for column in columns(table) if column.name not in IDENTITY]
    if not parts:
        return {name: np.array([], dtype=object) for name in names}
    return {name: np.concatenate([part[name] for part in parts]) for name in names}
