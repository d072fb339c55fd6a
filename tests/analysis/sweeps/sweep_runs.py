# SPDX-License-Identifier: Apache-2.0
"""Runs over loads as the runner would leave them, made of a toy link that cross traffic uses first."""

import hashlib
import json
from pathlib import Path

import numpy as np

from roundabout.spec import load_experiment
from roundabout.store import Identity, Run, Units, build_table
from roundabout.store.trial_states import RESENT
from tests.analysis.synthetic_runs import BEGIN_NS, BOOT_NS, manifest, record

ROOT = Path(__file__).parents[3] / "experiments"
SCALE = 20.0
SEGMENT = 1448
HEADERS = 66
LOST = {"none": 0.0, "iperf": 0.04, "consistent": 0.07, "burst": 0.10}
"""Of the load: by how much more than it takes it slows training down."""
SPREAD = {"none": 0.0, "iperf": 0.4, "consistent": 1.0, "burst": 2.5}

ONE = """
name: toy-sweep
about: A model trains beside web-search traffic
source: a test
topology: configuration-b
jobs: {dnn: {profile: %(profile)s, workers: [s0, s1, s3]}}
cross_traffic: {cross: {kind: consistent, from: s2, to: [s0]}}
iterations: %(iterations)s
transport: {name: %(transport)s}
factors:
  load_gbps: %(loads)s
%(more)s
repetitions: %(repetitions)s
"""


def experiment(folder, *, loads, profile="vgg16-ring3", transport="dcqcn", iterations=20, repetitions=4, more=""):
    """One model, one kind of cross traffic; `more` holds further factors."""
    path = folder / "toy-sweep.yaml"
    path.write_text(ONE % locals())
    return load_experiment(path, ROOT)


def sweep_run(folder, planned, *, spoilt=(), captured=(), resent=()):
    """A run of `planned`; `spoilt` holds pairs of load and repetition that are invalid.

    Of those in `resent` an attempt was put aside before. `captured` holds loads at which the sender's packets were
    captured.
    """
    run = Run.create(folder, planned.name, manifest(planned, SCALE, "build/bin/crossgen"), "20261121T093012Z-7f3a")
    for repetition in range(1, planned.repetitions + 1):
        for cell in planned.cells:
            load = cell.spec.cross_traffic_gbps
            reason = "the CPU was 97% busy over 1 s (limit 95%)" if (load, repetition) in spoilt else ""
            if (load, repetition) in resent:
                _put_aside(run, cell, repetition)
            _trial(run, cell, repetition, reason, load in captured)
    return run


def mean_s(job, kind, load_gbps):
    """The toy: the ring waits for the one link that cross traffic shares, which loses a part of what is left."""
    compute_s = sum(phase.compute_ms or 0 for phase in job.profile.phases) / 1e3
    alone_s = sum(phase.alone_ms or 0 for phase in job.profile.phases) / 1e3
    left_gbps = 23.5 - load_gbps * (1 + LOST[kind])
    congested_s = job.profile.comm_bytes * 8 / 1e9 / left_gbps
    return compute_s + (alone_s**6 + congested_s**6) ** (1 / 6)


def _identity(run, cell, repetition):
    text = json.dumps([cell.levels, repetition])
    key = hashlib.sha256(text.encode()).hexdigest()[:16]
    return Identity(run.id, key, cell.variant, json.dumps(cell.levels), repetition, 1)


def _put_aside(run, cell, repetition):
    identity = _identity(run, cell, repetition)
    reason = f"12 {RESENT} on a lossless fabric"
    run.begin_attempt(identity.trial).reject(record(identity, cell.spec, BEGIN_NS, reason=reason))


def _trial(run, cell, repetition, reason, captured):
    identity = _identity(run, cell, repetition)
    key = identity.trial
    generator = np.random.default_rng(int(key, 16))
    start_ns = BEGIN_NS + int(generator.integers(10**9)) * 1000
    (traffic,) = cell.spec.cross_traffic.values()
    payload_gbps = traffic.load_gbps * generator.normal(1, 0.006)
    tables = {"iterations": [], "counters": [], "cross_traffic": []}
    sent = {}
    for name, job in cell.spec.jobs.items():
        kind = traffic.kind if traffic.load_gbps else "none"
        spread = 0.004 + 0.12 * SPREAD[kind] * (traffic.load_gbps / 20) ** 3
        mean = mean_s(job, kind, payload_gbps) * generator.normal(1, 0.3 * spread)
        times_ms = 1e3 * mean * generator.gamma(spread**-2, spread**2, cell.spec.iterations)
        tables["iterations"] += [
            _iterations(name, rank, host, (times_ms, job.profile.comm_bytes), start_ns)
            for rank, host in enumerate(job.workers)
        ]
        sent |= dict.fromkeys(job.workers, cell.spec.iterations * job.profile.comm_bytes)
        took_ms = float(times_ms.sum())
    cross_bytes = payload_gbps / 8 * 1e6 * took_ms
    for host in {traffic.sender, *sent}:
        own = sent.get(host, 0.0) + (cross_bytes if host == traffic.sender else 0.0)
        tables["counters"].append(_counters(host, own, took_ms, start_ns))
    if traffic.load_gbps:
        tables["cross_traffic"].append(_cross_traffic(traffic, payload_gbps, took_ms, start_ns))
        if traffic.kind == "burst":
            tables["cross_flows"] = [_burst_flows(traffic, start_ns, generator)]
    if captured and traffic.load_gbps:
        tables["packets"] = [_packets(traffic, start_ns, generator)]
    attempt = run.begin_attempt(key)
    for name, parts in tables.items():
        if parts:
            columns = {column: [value for part in parts for value in list(part[column])] for column in parts[0]}
            attempt.write(name, build_table(name, identity, columns, Units(SCALE)))
    attempt.commit(record(identity, cell.spec, start_ns, reason=reason))


def _where(host, at_ms, start_ns):
    at = start_ns + (np.asarray(at_ms) * 1e6).astype(np.int64)
    zero = np.zeros(len(at), dtype=np.int64)
    return {"host": np.full(len(at), host), "host_ns": at - BOOT_NS, "controller_ns": at, "offset_bound_ns": zero}


def _iterations(job, rank, host, played, start_ns):
    """`played` holds times in ms, and bytes sent in each."""
    times_ms, size = played
    ends = np.cumsum(times_ms)
    starts, count = ends - times_ms, len(times_ms)
    return {
        **_where(host, starts, start_ns),
        "job": [job] * count,
        "rank": [rank] * count,
        "iteration": range(count),
        "start_ns": start_ns + (starts * 1e6).astype(np.int64),
        "compute_end_ns": start_ns + ((starts + 0.2 * times_ms) * 1e6).astype(np.int64),
        "comm_end_ns": start_ns + (ends * 1e6).astype(np.int64),
        "iteration_ms": times_ms,
        "compute_ms": 0.2 * times_ms,
        "communication_ms": 0.8 * times_ms,
        "sent_bytes": [int(size / SCALE)] * count,
        "received_bytes": [int(size / SCALE)] * count,
        "late_ms": [0.05] * count,
    }


def _counters(host, payload_bytes, took_ms, start_ns):
    """Payload of so many bytes, evenly over the trial, in segments of full size."""
    at = np.array([-100.0, 0.0, took_ms / 2, took_ms, took_ms + 100])
    payload = payload_bytes / SCALE * at / took_ms
    packets = payload / SEGMENT
    sent = payload + HEADERS * packets
    zero = np.zeros(len(at), dtype=np.int64)
    counts = {"tx_bytes": sent - sent[0], "tx_packets": packets - packets[0]}
    return {
        **_where(host, at, start_ns),
        "interface": ["eth0"] * len(at),
        **{name: value.astype(np.int64) for name, value in counts.items()},
        **dict.fromkeys(("rx_bytes", "rx_packets", "tx_dropped", "rx_dropped"), zero),
    }


def _cross_traffic(traffic, payload_gbps, took_ms, start_ns):
    values = {
        "traffic": "cross",
        "kind": traffic.kind,
        "asked_gbps": traffic.load_gbps,
        "planned_gbps": traffic.load_gbps * 1.004,
        "planned_gbps_standard_error": 0.1,
        "offered_gbps": traffic.load_gbps * 1.004,
        "achieved_gbps": payload_gbps,
        "schedule_held": traffic.load_gbps < 20,
        "lagging_share": 0.0 if traffic.load_gbps < 20 else 0.08,
        "lateness_p99_us": 350.0,
        "due_flows": 5000,
        "finished_flows": 4998,
        "unfinished_flows": 2,
        "parallel": None,
    }
    on_testbed = {name: [value / SCALE if "_gbps" in name else value] for name, value in values.items()}
    return {**_where(traffic.sender, [took_ms], start_ns), **on_testbed}


def _burst_flows(traffic, start_ns, generator, bursts=20):
    """The first flows of a load: two in each burst, of 3/10 of a period's bytes, and eight in the quiet of 9 ms."""
    shares = np.concatenate([generator.dirichlet([9, 9]) * 0.3, generator.dirichlet(np.ones(8)) * 0.7])
    own_ms = np.concatenate([[0.0], generator.uniform(0, 1, 1), np.sort(generator.uniform(1, 10, 8))])
    at_ms = (10.0 * np.arange(bursts)[:, None] + own_ms).ravel()
    where = _where(traffic.sender, at_ms, start_ns)
    return {
        **where,
        "traffic": ["cross"] * len(at_ms),
        "flow": range(len(at_ms)),
        "class": (["burst"] * 2 + ["quiet"] * 8) * bursts,
        "destination": ["s0"] * len(at_ms),
        "bytes": np.rint(np.tile(shares, bursts) * traffic.load_gbps / 8 * 1e7 / SCALE).astype(np.int64),
        "measured": [True] * len(at_ms),
        "start_ns": where["controller_ns"],
        "end_ns": where["controller_ns"] + 10**6,
    }


def _packets(traffic, start_ns, generator, count=6000):
    """So many packets that the sender put out: evenly, or most of them in a tenth of the time."""
    gaps_ns = generator.exponential(1.0, count)
    if traffic.kind == "burst":
        gaps_ns /= np.where(np.arange(count) % 100 < 30, 3.0, 0.75)
    gaps_ns *= SEGMENT * 8 * SCALE / traffic.load_gbps / gaps_ns.mean()
    at_ms = 200 + np.cumsum(gaps_ns) / 1e6
    nulls = dict.fromkeys(
        (
            "vlan_id", "inner_vlan_id", "fragment_offset", "tcp_flags", "tcp_seq", "tcp_ack", "bth_opcode", "cnp",
            "destination_qp", "psn", "undecoded",
        ),
        np.full(count, None),
    )  # fmt: skip
    same = {
        "direction": "out", "frame_bytes": SEGMENT + HEADERS, "ip_version": 4, "source": "10.0.0.3",
        "destination": "10.0.0.1", "protocol": 6, "source_port": 40000, "destination_port": 5001,
        "payload_bytes": SEGMENT, "dscp": 0, "ecn": 2, "flow": 0,
    }  # fmt: skip
    where = _where(traffic.sender, at_ms, start_ns)
    return {
        **where,
        "time_ns": where["controller_ns"],
        **nulls,
        **{name: np.full(count, value) for name, value in same.items()},
    }
