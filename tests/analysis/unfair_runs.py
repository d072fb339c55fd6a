# SPDX-License-Identifier: Apache-2.0
"""A run of unfair-vgg19 as the runner would leave it, made of a toy model instead of a lab."""

import hashlib
import json
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np

from roundabout.spec import load_experiment
from roundabout.store import Identity, Run, Units, build_table
from tests.analysis.synthetic_runs import BEGIN_NS, BOOT_NS, manifest, record

ROOT = Path(__file__).parents[2]
SCALE = 50.0
MS = 1_000_000
HEADERS = 1.02
PORT = {"link": "L1", "interface": "tor0-tor1", "towards": "tor1"}


@dataclass
class Toy:
    """One job, stepped by a millisecond: computes, then sends what its share of the link allows."""

    name: str
    weight: float
    hosts: tuple[str, ...]
    compute_ms: float = 150.0
    size: float = 574.68e6
    demand: float = 32.15
    left: float = 0.0
    until: float = 0.0
    start: float = 0.0
    rows: list[tuple[float, float, float]] = field(default_factory=list)
    sent: list[float] = field(default_factory=list)

    def begin(self, now, jitter):
        self.start, self.until, self.left = now, now + self.compute_ms + jitter, self.size


def play(jobs, iterations, generator):
    """Step `jobs` until all have done their iterations; returns backlog (bytes) and marks per ms, at paper scale."""
    for job in jobs:
        job.begin(0.0, generator.normal(0, 0.75))
    now, backlog, marks = 0.0, [], []
    while any(len(job.rows) < iterations for job in jobs):
        sending = [job for job in jobs if now >= job.until and len(job.rows) < iterations]
        total = sum(job.weight for job in sending)
        crowded = len(sending) > 1
        for job in jobs:
            rate = 0.0
            if job in sending:
                rate = min(job.demand, 43 * job.weight / total)
                done = min(rate * 1e6 / 8, job.left)
                job.left -= done
                if job.left <= 0:
                    job.rows.append((job.start, job.until, now + 1))
                    job.begin(now + 1, generator.normal(0, 0.75))
            job.sent.append((job.sent[-1] if job.sent else 0.0) + rate * 1e6 / 8 * HEADERS)
        backlog.append(generator.gamma(4, 150_000) if crowded else 0.0)
        marks.append((marks[-1] if marks else 0) + (generator.poisson(2.5) if crowded else 0))
        now += 1
    return np.array(backlog), np.array(marks)


@cache
def played(key, jobs, slowdown, iterations):
    """Return jobs after their iterations, backlog and marks of the trial `key`, which many tests have in their runs.

    `jobs` are name, weight and hosts of each. Read them only.
    """
    generator = np.random.default_rng(int(key, 16))
    speed = slowdown + generator.normal(0, 0.004)
    toys = [Toy(*job, 150.0 * speed) for job in jobs]
    return toys, *play(toys, iterations, generator)


def where(host, at_ms, start_ns):
    """Columns of place and time for rows of one host."""
    at = start_ns + (np.asarray(at_ms) * MS).astype(np.int64)
    same = np.zeros(len(at), dtype=np.int64)
    return {"host": np.full(len(at), host), "host_ns": at - BOOT_NS, "controller_ns": at, "offset_bound_ns": same}


def joined(parts):
    return {name: np.concatenate([np.asarray(part[name]) for part in parts]) for name in parts[0]}


def iterations_of(job, rank, host, start_ns):
    start, compute_end, end = (np.array(column) for column in zip(*job.rows, strict=True))
    count = len(start)
    return {
        **where(host, start, start_ns),
        "job": [job.name] * count,
        "rank": [rank] * count,
        "iteration": range(count),
        **{
            name: start_ns + (at * MS).astype(np.int64)
            for name, at in (("start_ns", start), ("compute_end_ns", compute_end), ("comm_end_ns", end))
        },
        "iteration_ms": end - start,
        "compute_ms": compute_end - start,
        "communication_ms": end - compute_end,
        "sent_bytes": [int(job.size / SCALE)] * count,
        "received_bytes": [int(job.size / SCALE)] * count,
        "late_ms": [0.05] * count,
    }


def counters_of(job, host, start_ns):
    at = np.arange(0, len(job.sent), 10)
    sent = (np.array(job.sent)[at] / SCALE).astype(np.int64)
    none = np.zeros(len(at), dtype=np.int64)
    return {
        **where(host, at, start_ns),
        "interface": ["eth0"] * len(at),
        "tx_bytes": sent,
        "rx_bytes": sent,
        "tx_packets": sent // 1500,
        "rx_packets": sent // 1500,
        "tx_dropped": none,
        "rx_dropped": none,
    }


def queue_of(jobs, backlog, marks, start_ns):
    at = np.arange(0, len(backlog), 10)
    sent = sum(np.array(job.sent)[at] for job in jobs)
    return {
        **where("tor0", at, start_ns),
        **{name: [value] * len(at) for name, value in PORT.items()},
        "tx_bytes": (sent / SCALE).astype(np.int64),
        "backlog_bytes": (backlog[at] / SCALE).astype(np.int64),
        "drops": np.zeros(len(at), dtype=np.int64),
        "marks": marks[at],
    }


def marks_of(jobs, marks, start_ns):
    """Marks by their packets' sender: half are the first worker's of the first job; a sender appears when marked."""
    at = np.arange(0, len(marks), 10)
    parts = []
    for place, job in enumerate(jobs):
        own = (marks[at] + place) // len(jobs)
        seen = own > 0
        parts.append(
            {
                **where("tor0", at[seen], start_ns),
                **{name: np.full(seen.sum(), value) for name, value in {**PORT, "source": job.hosts[0]}.items()},
                "marks": own[seen],
            }
        )
    return joined(parts)


def cpu_of(length_ms, start_ns):
    at = np.arange(1000, max(length_ms, 2000), 1000)
    return {
        **where("controller", at, start_ns),
        "window_ms": np.full(len(at), 1000.0),
        "busy_share": np.full(len(at), 0.4),
        "steal_share": np.full(len(at), 0.01),
        "softirq_share": np.full(len(at), 0.02),
        "softnet_dropped": np.zeros(len(at), dtype=np.int64),
        "softnet_squeezed": np.zeros(len(at), dtype=np.int64),
    }


def add_trial(run, cell, job, repetition, *, reason="", slowdown=1.0):
    """Play and commit one trial; a `reason` makes it invalid."""
    text = json.dumps([cell.levels, job, repetition])
    key = hashlib.sha256(text.encode()).hexdigest()[:16]
    shared = tuple(
        (name, 2.0 if cell.variant == "unfair" and name == "j1" else 1.0, spec.workers)
        for name, spec in cell.spec.jobs.items()
        if job in (None, name)
    )
    jobs, backlog, marks = played(key, shared, slowdown, cell.spec.iterations)
    start_ns = BEGIN_NS + len(run.committed()) * 30_000 * MS
    identity = Identity(run.id, key, cell.variant, json.dumps(cell.levels), repetition, 1)
    hosts = [(each, rank, host) for each in jobs for rank, host in enumerate(each.hosts)]
    attempt = run.begin_attempt(key)
    for name, columns in (
        ("iterations", joined([iterations_of(each, rank, host, start_ns) for each, rank, host in hosts])),
        ("counters", joined([counters_of(each, host, start_ns) for each, _, host in hosts])),
        ("queue", queue_of(jobs, backlog, marks, start_ns)),
        ("marks", marks_of(jobs, marks, start_ns)),
        ("cpu", cpu_of(len(backlog), start_ns)),
    ):
        attempt.write(name, build_table(name, identity, columns, Units(SCALE)))
    attempt.commit(record(identity, cell.spec, start_ns, reason=reason, job=job, minute=len(run.committed())))


def one_profile():
    """unfair-vgg19 with its first profile alone, of which Figure 2 is expected, too, and with more iterations."""
    experiment = load_experiment("unfair-vgg19", ROOT / "experiments")
    cells = tuple(
        cell.model_copy(
            update={
                "levels": {"variant": cell.variant},
                "spec": cell.spec.model_copy(update={"iterations": 10 if cell.spec.one_job_at_a_time else 50}),
            }
        )
        for cell in experiment.cells
        if cell.levels["figure"] == "fig-1"
    )
    speedup = [each for each in experiment.expect if each.over and each.at == {"figure": "fig-2"}]
    expect = tuple(each.model_copy(update={"at": None}) for each in experiment.expect if each not in speedup)
    factors = {"variant": tuple(cell.variant for cell in cells)}
    return experiment.model_copy(update={"cells": cells, "factors": factors, "expect": expect})


def synthetic_run(folder, repetitions=5, *, emulated=True, spoilt=(), slowdown=1.0):
    """A run of unfair-vgg19; `spoilt` holds pairs of variant and repetition that are invalid."""
    experiment = one_profile().model_copy(update={"repetitions": repetitions})
    made = manifest(experiment, SCALE, "build/bin/replay", emulated=emulated)
    run = Run.create(folder, experiment.name, made, "20261121T093012Z-7f3a")
    for repetition in range(1, repetitions + 1):
        for cell in experiment.cells:
            reason = "CPU busy 0.97 over 1 s, at most 0.90" if (cell.variant, repetition) in spoilt else ""
            for job in cell.spec.jobs if cell.spec.one_job_at_a_time else [None]:
                add_trial(run, cell, job, repetition, reason=reason, slowdown=slowdown)
    return run
