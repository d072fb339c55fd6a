# SPDX-License-Identifier: Apache-2.0
"""Figures of a fabric from the trials of an acceptance test.

They describe each shared link, the packets' traffic classes, and the job's slowdown.

Invalid trials count too, because a fault of the fabric may have made them invalid.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analysis.reading.cells import cells_of
from analysis.reading.congestion.marks import NIC_COUNTERS
from analysis.statistics.fairness import jain_index
from analysis.statistics.intervals import Measured, estimate, ratio, transform
from roundabout.spec import TrialSpec
from roundabout.store import Run
from roundabout.store.counter_increments import compute_increments
from roundabout.store.trial_states import CPU_SHORTAGE, SETTINGS_DIFFER

BUSY_MAX = 0.95
"""Largest mean share of a lab's CPU in use during a trial whose bad figures count; a guess.

Trials of a lab of four hosts at 1:100 use 0.24 to 0.80 of two cores by themselves.
"""
Pair = tuple[str, str]
DATAGRAM_OPCODES = range(0x60, 0x80)
"""InfiniBand's opcodes of datagrams (UD), by which RDMA's connections are made. Linux gives some of them no DSCP."""
PRIORITY_PACKETS = r"([rt]x)_prio(\d)_packets"
"""Pattern of mlx5's counters of packets by priority (en_stats.c), of the physical port, so RDMA is among them."""


class LinkSharing(NamedTuple):
    """Figures of the flows that share a link.

    `use` is their share of the link's payload rate, `jain` Jain's fairness index, and `marked` the share of marked
    segments. `drops` and `pauses` are counts.

    A figure is None if it is unknown.
    """

    use: float | None
    jain: float | None
    marked: float | None
    drops: int | None
    pauses: int | None


def signs_of_shortage(run: Run) -> dict[str, str]:
    """Return the signs that a trial lacked CPU time, by the key of each such trial.

    Trials whose settings differed are left out, because lack of CPU time changes no setting.
    """
    return {
        str(each["trial"]): "; ".join(each[CPU_SHORTAGE])
        for each in run.trials()
        if each.get(CPU_SHORTAGE) and not each.get(SETTINGS_DIFFER)
    }


def cpu_shortages(run: Run) -> dict[str, str]:
    """Return the signs that a trial's rates and times are those of the CPU, by the key of each such trial.

    They are those that it lacked CPU time, or that a lab's CPU was busy all the time. Packets are not lost by the
    latter: five labs without a fault on a busy machine lost none.
    """
    busy = {
        trial: f"{share:.0%} of it was in use"
        for trial, share in _busy_shares(run.table("cpu", valid_only=False)).items()
        if share > BUSY_MAX
    }
    return {**busy, **signs_of_shortage(run)}


def _busy_shares(cpu: pa.Table) -> dict[str, float]:
    """Return the mean share of CPU time in use, by trial, of hosts that share the controller's CPU."""
    cpu = _only(cpu, "host", "controller")
    busy_ms = pc.multiply(cpu["busy_share"], cpu["window_ms"])
    sums = cpu.append_column("busy_ms", busy_ms).group_by("trial").aggregate([("busy_ms", "sum"), ("window_ms", "sum")])
    return {row["trial"]: row["busy_ms_sum"] / row["window_ms_sum"] for row in sums.to_pylist()}


def link_figures(run: Run, links: Mapping[str, str]) -> dict[str, LinkSharing]:
    """Return the figures of shared links by variant; `links` names the link of each variant."""
    tables = {name: run.table(name, valid_only=False) for name in ("iterations", "flows", "queue", "device_counters")}
    specs = {str(each["variant"]): TrialSpec.model_validate(each["spec"]) for each in run.trials()}
    return {
        variant: _sharing_of_link(
            {name: _only(each, "variant", variant) for name, each in tables.items()}, specs[variant], link
        )
        for variant, link in links.items()
        if variant in specs
    }


def bandwidths(run: Run) -> dict[str, float]:
    """Return the highest payload rate at which each job's second worker received in one iteration, in Gbit/s.

    It is what the path can carry. Pauses of a busy host lower the rate of single iterations.
    """
    iterations = _only(run.table("iterations", valid_only=False), "rank", 1)
    rates = pc.divide(pc.multiply(iterations["received_bytes"], 8e-6), iterations["communication_ms"])
    best = iterations.append_column("gbps", rates).group_by("job").aggregate([("gbps", "max")])
    return {row["job"]: row["gbps_max"] for row in best.to_pylist()}


def bus_bandwidths(run: Run) -> dict[str, float]:
    """Return the mean bus bandwidth that each job's program reported, in Gbit/s."""
    iterations = run.table("iterations")
    iterations = iterations.filter(pc.is_valid(iterations["bus_bandwidth_gbps"]))
    means = iterations.group_by("job").aggregate([("bus_bandwidth_gbps", "mean")])
    return {row["job"]: row["bus_bandwidth_gbps_mean"] for row in means.to_pylist()}


def dropped_packets(run: Run) -> dict[str, Counter[tuple[str, str]]]:
    """Return the packets that hosts' interfaces dropped, by trial, and by host and counter."""
    found: dict[str, Counter[tuple[str, str]]] = {}
    counters = run.table("counters", valid_only=False)
    for place in counters.group_by(["trial", "attempt", "host", "interface"]).aggregate([]).to_pylist():
        rows = _rows_at(counters, place)
        for name in ("tx_dropped", "rx_dropped"):
            found.setdefault(place["trial"], Counter())[place["host"], name] += _gained(rows, name)
    return found


def carrier_changes(run: Run) -> Counter[tuple[str, str]]:
    """Return the changes of hosts' links, by host and counter, over all trials."""
    found: Counter[tuple[str, str]] = Counter()
    states = _only(run.table("device_counters", valid_only=False), "source", "link")
    for place in states.group_by(["trial", "attempt", "host", "device"]).aggregate([]).to_pylist():
        up = _rows_at(states, place).sort_by("host_ns")["value"].to_numpy()
        found[place["host"], "carrier_changes"] += int(np.count_nonzero(np.diff(up)))
    return found


def retransmissions(run: Run, without: Collection[str] = ()) -> dict[Pair, tuple[int, int]]:
    """Return for each pair of NICs the segments retransmitted and the segments delivered, summed over trials.

    The trials with the keys in `without` are left out. RDMA is left out too, because NICs retransmit by themselves and
    have counters of their own.
    """
    found: dict[Pair, tuple[int, int]] = {}
    for row, pair in _flows_of_nics(run):
        if row["retransmitted"] is not None and row["trial"] not in without:
            again, came = found.get(pair, (0, 0))
            found[pair] = (again + row["retransmitted"], came + row["delivered_segments"])
    return found


def _flows_of_nics(run: Run) -> Iterator[tuple[dict[str, Any], Pair]]:
    """Yield the rows of the table `flows` of connections between hosts, each with the names of its NICs."""
    rows = run.table("flows", valid_only=False).to_pylist()
    played = {row["trial"] for row in rows}
    specs = {each["trial"]: TrialSpec.model_validate(each["spec"]) for each in run.trials() if each["trial"] in played}
    for row in rows:
        if row["host"] != row["peer"]:
            topology, job = specs[row["trial"]].topology, specs[row["trial"]].jobs[row["job"]]
            flow = job.flow(row["job"], row["rank"], row["peer_rank"], row["flow"], topology)
            sender, receiver = (topology.nic_name(*each) for each in zip(flow[:2], flow.nics, strict=True))
            yield row, (sender, receiver)


def dscp_counts(run: Run) -> dict[Pair, Counter[int]]:
    """Return for each pair of NICs the number of received packets with payload, by DSCP, from the hosts' captures.

    Packets of a connection that is no job's, or RDMA's, have the names of hosts, or an address. RDMA's datagrams are
    left out.
    """
    packets = run.table("packets", valid_only=False).unify_dictionaries()
    packets = packets.filter(pc.greater(packets["payload_bytes"], 0))
    is_datagram = pc.is_in(packets["bth_opcode"], pa.array(DATAGRAM_OPCODES, packets["bth_opcode"].type))
    packets = packets.filter(pc.invert(is_datagram))
    out = packets.filter(pc.equal(packets["direction"], "out"))
    hosts = dict(zip(*(out[name].cast(pa.string()).to_pylist() for name in ("source", "host")), strict=True))
    nics = {
        (row["host"], row["peer"], row["local_port"], row["remote_port"]): pair for row, pair in _flows_of_nics(run)
    }
    came = packets.filter(pc.equal(packets["direction"], "in"))
    names = ["source", "host", "source_port", "destination_port", "dscp"]
    found: dict[Pair, Counter[int]] = {}
    for row in came.group_by(names).aggregate([([], "count_all")]).to_pylist():
        pair = (hosts.get(row["source"], row["source"]), row["host"])
        pair = nics.get((*pair, row["source_port"], row["destination_port"]), pair)
        found.setdefault(pair, Counter())[row["dscp"]] += row["count_all"]
    return found


def priority_packets(run: Run, variant: str) -> dict[Pair, Counter[int]]:
    """Return for each host and side (rx or tx) the packets by priority that the NIC counted in a variant's trials.

    The result is empty if the NICs have no such counters.
    """
    counters = _only(run.table("device_counters", valid_only=False), "variant", variant)
    counters = counters.filter(pc.match_substring_regex(counters["counter"], f"^{PRIORITY_PACKETS}$"))
    found: dict[Pair, Counter[int]] = {}
    for place in counters.group_by(["trial", "attempt", "host", "device", "counter"]).aggregate([]).to_pylist():
        side, priority = re.findall(PRIORITY_PACKETS, place["counter"])[0]
        counts = found.setdefault((place["host"], side), Counter())
        counts[int(priority)] += _gained(_rows_at(counters, place), "value")
    return found


def slowdowns(run: Run, job: str, idle: str) -> dict[str, Measured]:
    """Return a job's mean iteration time by variant, over that in variant `idle`.

    The figure of `idle` itself is over the profile's time alone.
    """
    cells = {cell.variant: cell for cell in cells_of(run) if cell.trials and cell.disturbance is None}
    times = {name: estimate(cell.repetitions(job), np.mean) for name, cell in cells.items()}
    found = {name: ratio(each, times[idle]) for name, each in times.items() if name != idle and idle in times}
    if idle in times:
        alone_ms = cells[idle].spec.jobs[job].profile.alone_ms
        found[idle] = transform(lambda mean_ms: mean_ms / alone_ms, times[idle])
    return found


def _sharing_of_link(tables: Mapping[str, pa.Table], spec: TrialSpec, link: str) -> LinkSharing:
    rate_gbps = next(each.payload_rate_gbps for each in spec.topology.links if each.name == link)
    rates = [_rate_gbps(_only(tables["iterations"], "job", job)) for job in spec.jobs]
    reported = [rate for rate in rates if rate is not None]
    whole = len(reported) == len(rates) and sum(reported) > 0
    return LinkSharing(
        use=sum(reported) / rate_gbps if whole else None,
        jain=jain_index(reported) if whole else None,
        marked=_marked(tables["flows"]),
        drops=_drops(_only(tables["queue"], "link", link)),
        pauses=count_pauses(tables["device_counters"]),
    )


def _rate_gbps(iterations: pa.Table) -> float | None:
    """Return the rate of a job's first worker from the end of its first iteration to that of its last, Gbit/s."""
    own = _only(iterations, "rank", 0).sort_by("iteration")
    end_ns, sent = own["comm_end_ns"].to_numpy(), own["sent_bytes"].to_numpy()
    return float(sent[1:].sum() * 8 / (end_ns[-1] - end_ns[0])) if len(end_ns) > 1 else None


def _marked(flows: pa.Table) -> float | None:
    came = pc.sum(flows["delivered_segments"]).as_py()
    return pc.sum(flows["delivered_ce_segments"]).as_py() / came if came else None


def _drops(queue: pa.Table) -> int | None:
    ports = [_only(queue, "towards", each) for each in set(queue["towards"].to_pylist())]
    return sum(_gained(port, "drops") for port in ports) if ports else None


def count_pauses(counters: pa.Table) -> int | None:
    """Return the PFC frames that hosts' NICs received, of all priorities."""
    received = counters.filter(pc.match_substring_regex(counters["counter"], f"^{NIC_COUNTERS['pauses']}$"))
    places = received.group_by(["host", "device", "counter"]).aggregate([]).to_pylist()
    return sum(_gained(_rows_at(received, place), "value") for place in places) if places else None


def _gained(samples: pa.Table, name: str) -> int:
    ordered = samples.sort_by("host_ns")
    return compute_increments(ordered["host_ns"].to_numpy(), np.array(ordered[name].to_pylist())).total


def _rows_at(table: pa.Table, place: Mapping[str, object]) -> pa.Table:
    for column, value in place.items():
        table = _only(table, column, value)
    return table


def _only(table: pa.Table, column: str, value: object) -> pa.Table:
    return table.filter(pc.equal(table[column], value))
