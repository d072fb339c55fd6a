# SPDX-License-Identifier: Apache-2.0
"""A run of a cluster as the runner would leave it: jobs that a scheduler slows down by so much."""

import json

import numpy as np

from roundabout.spec import load_experiment
from roundabout.spec.job import ResolvedJob
from roundabout.spec.study_choice import StudyChoice
from roundabout.store import Identity, Run, Units, build_table
from tests.analysis.synthetic_runs import BEGIN_NS, BOOT_NS, manifest, record
from tests.analysis.unfair_runs import joined

SLOWED = {"themis": 1.6, "th-cassini": 1.2, "pollux": 1.5, "po-cassini": 1.25, "random": 2.0, "ideal": 1.0}
"""By variant: how many times as long iterations take as alone, in the mean."""
APART_S = 15.0
"""Of arrivals: so far that no host has two jobs at a time."""
MARKS = 20.0
"""A second, of packets of a job's first worker, times what its scheduler slows it down by beyond alone."""
MODELS = ("BERT", "DLRM", "ResNet50", "VGG19")
JOB = load_experiment("unfair-vgg19").cells[0].spec.jobs["j1"]
S, MS = 10**9, 10**6


def cluster_run(folder, repetitions=4, jobs=8, iterations=100, *, marks=True):
    """A run of six schedulers whose jobs arrive one after the other, on two hosts of a dumbbell each.

    The last is never placed. The second one is moved when half of its iterations are done.
    """
    based = load_experiment("unfair-vgg19")
    spec = load_experiment("mltcp-many").cells[0].spec.model_copy(update={"jobs": {}, "one_job_at_a_time": False})
    cells = tuple(
        based.cells[0].model_copy(update={"levels": {"variant": name}, "spec": spec, "depends_on": ()})
        for name in SLOWED
    )
    changes = {
        "name": "cluster-toy", "about": "Jobs that a scheduler slows down", "source": None, "repetitions": repetitions,
        "study": StudyChoice(kind="cluster", baseline="themis"), "expect": (), "cells": cells,
        "factors": {"variant": tuple(SLOWED)}, "document": {},
    }  # fmt: skip
    experiment = based.model_copy(update=changes)
    made = manifest(experiment, 100.0, "build/bin/replay")
    run = Run.create(folder, experiment.name, made, "20261123T093012Z-7f3a")
    for repetition in range(1, repetitions + 1):
        for cell in cells:
            _add(run, cell, repetition, jobs, iterations, marks=marks)
    return run


def _add(run, cell, repetition, jobs, iterations, *, marks):
    generator = np.random.default_rng(repetition)  # the same for all schedulers: they share the trace
    played = [_play(number, cell, iterations, generator) for number in range(jobs - 1)]
    waits = {
        "name": f"j{jobs - 1:02d}",
        "arrived_s": APART_S * (jobs - 1),
        "started_s": None,
        "ended_s": None,
        "dedicated_s": 1.0,
    }
    variant = cell.variant
    timeline = {
        "schema": 2,
        "scheduler": {"th-cassini": "themis", "po-cassini": "pollux"}.get(variant, variant),
        "cassini": "cassini" in variant,
        "requests": [_request(number, iterations) for number in range(jobs)],
        "stints": [allocation for _, allocations, _, _ in played for allocation in allocations],
        "decisions": [
            {"at_s": life["arrived_s"], "why": "arrival", "job": life["name"], "placements": {},
             "scores": [0.7, None, 0.9] if "cassini" in variant else None,
             "migrated": ["j01", "j02"] if (variant, life["name"]) == ("th-cassini", "j02") else []}
            for life, *_ in played
        ],
        "jobs": [*(life for life, *_ in played), {**waits, "moves": 0}],
    }  # fmt: skip
    key = f"{repetition:08x}{list(SLOWED).index(variant):08x}"
    identity = Identity(run.id, key, variant, json.dumps(cell.levels), repetition, 1)
    start_ns, attempt = BEGIN_NS + len(run.committed()) * 300 * S, run.begin_attempt(key)
    rows = [row for *_, own in played for row in own]
    tables = {"iterations": _iterations(rows, start_ns)}
    if marks:
        tables |= _marked(rows, start_ns, SLOWED[variant])
    for name, columns in tables.items():
        attempt.write(name, build_table(name, identity, columns, Units(1)))
    (attempt.path / "timeline.json").write_text(json.dumps(timeline))
    worked = cell.spec.model_copy(update={"jobs": {name: job for *_, jobs, _ in played for name, job in jobs.items()}})
    attempt.commit(record(identity, worked, start_ns, minute=len(run.committed()) % 60) | {"start_ns": start_ns})


def _request(number, iterations):
    job = {"name": f"j{number:02d}", "model": MODELS[number % len(MODELS)], "batch": 8, "workers": 2}
    return {**job, "iterations": iterations, "arrives_s": APART_S * number}


def _play(number, cell, iterations, generator):
    """What became of a job: its life, its stints, those as a trial's jobs, and rows of its iterations."""
    name, arrived_s, hosts = f"j{number:02d}", APART_S * number, cell.spec.topology.hosts
    slowed = 1 + (SLOWED[cell.variant] - 1) * generator.gamma(4, 0.25, iterations)
    times_ms = JOB.profile.alone_ms * slowed
    ends_s = arrived_s + 1 + np.cumsum(times_ms) / 1e3
    allocations, jobs, rows = [], {}, []
    for part, own in enumerate(np.array_split(np.arange(iterations), 2 if number == 1 else 1)):
        pair = 5 if part else number % 5
        workers = [hosts[pair], hosts[pair + len(hosts) // 2]]
        allocation = f"{name}.{part + 1}"
        begins_s = float(ends_s[own[0]] - times_ms[own[0]] / 1e3)
        allocations.append(
            {"name": allocation, "job": name, "begins_s": begins_s, "ends_s": float(ends_s[own[-1]]),
             "workers": workers, "iterations": len(own), "shift_ms": None, "period_ms": None}
        )  # fmt: skip
        jobs[allocation] = ResolvedJob(profile=JOB.profile, workers=workers, transport=JOB.transport)
        rows += [
            (allocation, workers[0], at, ends_s[one] - times_ms[one] / 1e3, times_ms[one]) for at, one in enumerate(own)
        ]
    life = {"name": name, "arrived_s": arrived_s, "started_s": arrived_s + 1, "ended_s": float(ends_s[-1])}
    life |= {"dedicated_s": iterations * JOB.profile.alone_ms / 1e3, "moves": len(allocations) - 1}
    return life, allocations, jobs, rows


def _where(hosts, at_ns):
    same = np.zeros(len(at_ns), np.int64)
    return {"host": hosts, "host_ns": at_ns - BOOT_NS, "controller_ns": at_ns, "offset_bound_ns": same}


def _iterations(rows, start_ns):
    jobs, hosts, numbers, begin_s, times_ms = zip(*rows, strict=True)
    begin_ns = start_ns + (np.array(begin_s) * S).astype(np.int64)
    end_ns = begin_ns + (np.array(times_ms) * MS).astype(np.int64)
    count, none = len(rows), np.zeros(len(rows))
    return {
        **_where(list(hosts), begin_ns), "job": jobs, "rank": [0] * count, "iteration": numbers, "start_ns": begin_ns,
        "compute_end_ns": begin_ns, "comm_end_ns": end_ns, "iteration_ms": times_ms, "compute_ms": none,
        "communication_ms": times_ms, "sent_bytes": none.astype(int), "received_bytes": none.astype(int),
        "late_ms": none,
    }  # fmt: skip


def _marked(rows, start_ns, slowed):
    """What the port that all first workers send through marked of each, and in all."""
    at_s = np.arange(0, max(begin_s + ms / 1e3 for *_, begin_s, ms in rows) + 1, 0.1)
    at_ns, of_hosts = start_ns + (at_s * S).astype(np.int64), {}
    for _, host, _, begin_s, ms in rows:
        gained = MARKS * (slowed - 1) * np.clip(at_s - begin_s, 0, ms / 1e3)
        of_hosts[host] = of_hosts.get(host, 0) + gained
    counts = {host: gained.astype(np.int64) for host, gained in of_hosts.items()}
    port = {"link": "L1", "interface": "tor0-tor1", "towards": "tor1"}
    parts = [
        {**_where(np.full(len(at_ns), "tor0"), at_ns), **{name: np.full(len(at_ns), value) for name, value in
         (port | {"source": host}).items()}, "marks": own}
        for host, own in counts.items()
    ]  # fmt: skip
    none = np.zeros(len(at_ns), np.int64)
    queue = {
        **_where(np.full(len(at_ns), "tor0"), at_ns),
        **{name: [value] * len(at_ns) for name, value in port.items()},
    }
    queue |= {"tx_bytes": (at_s * slowed * 2e9).astype(np.int64), "backlog_bytes": none, "drops": none}
    return {"queue": queue | {"marks": sum(counts.values())}, "marks": joined(parts)}
