# SPDX-License-Identifier: Apache-2.0
"""A run of a cluster as the runner would leave it: jobs that a scheduler slows down by so much, made of nothing else."""

import json

import numpy as np

from roundabout.spec import load_experiment
from roundabout.spec.experiment import ResolvedJob, StudyChoice
from roundabout.store import Identity, Run, Units, build_table
from tests.analysis.made_up import BEGIN_NS, BOOT_NS, manifest, record

SLOWED = {"themis": 1.6, "th-cassini": 1.2, "random": 2.0, "ideal": 1.0}
"""By variant: how many times as long iterations take as alone, in the mean."""
MODELS = ("BERT", "DLRM", "ResNet50", "VGG19")
PORTS = (("L1", "tor0", "tor1"), ("l0", "tor0", "s0"))
S, MS = 10**9, 10**6


def cluster_run(folder, repetitions=4, jobs=8, iterations=100, marks=True):
    """A run of four schedulers whose jobs arrive every 10 s, on two hosts of a dumbbell each.

    The last is never placed. The second one is moved when half of its iterations are done.
    """
    based = load_experiment("unfair-vgg19")
    spec = load_experiment("mltcp-many").cells[0].spec.model_copy(update={"jobs": {}, "one_job_at_a_time": False})
    cells = tuple(
        based.cells[0].model_copy(update={"levels": {"variant": name}, "spec": spec, "needs": ()}) for name in SLOWED
    )
    changes = {
        "name": "cluster-toy", "about": "Jobs that a scheduler slows down", "source": None, "repetitions": repetitions,
        "study": StudyChoice(kind="cluster", baseline="themis"), "expect": (), "cells": cells,
        "factors": {"variant": tuple(SLOWED)}, "document": {},
    }  # fmt: skip
    experiment = based.model_copy(update=changes)
    made = manifest(experiment, 100.0, "build/bin/replay")
    run = Run.create(folder, experiment.name, made, "20261123T093012Z-7f3a")
    profiles = [job.profile for job in based.cells[0].spec.jobs.values()]
    for repetition in range(1, repetitions + 1):
        for cell in cells:
            _add(run, cell, repetition, profiles, jobs, iterations, marks)
    return run


def _add(run, cell, repetition, profiles, jobs, iterations, marks):
    generator = np.random.default_rng(repetition)  # the same for all schedulers: they share the trace
    topology, variant = cell.spec.topology, cell.variant
    hosts = [host for host in topology.hosts]
    job_spec = load_experiment("unfair-vgg19").cells[0].spec.jobs["j1"]
    stints, lives, rows, specs, requests, decisions = [], [], [], {}, [], []
    for number in range(jobs):
        name, profile = f"j{number:02d}", profiles[number % len(profiles)]
        arrived_s, waits = 10.0 * number, number == jobs - 1
        pairs = [[hosts[place % len(hosts)] for place in (number + move, number + move + 6)] for move in (0, 3)]
        drawn = generator.gamma(4, 0.25, iterations)
        times_ms = profile.alone_ms * (1 + (SLOWED[variant] - 1) * drawn)
        ends_s = arrived_s + 1 + np.cumsum(times_ms) / 1e3
        requests.append({"name": name, "model": MODELS[number % len(MODELS)], "batch": 8, "workers": 2,
                         "iterations": iterations, "arrives_s": arrived_s})  # fmt: skip
        life = {"name": name, "arrived_s": arrived_s, "started_s": None, "ended_s": None, "moves": 0}
        life["dedicated_s"] = iterations * profile.alone_ms / 1e3
        parts = [] if waits else [range(iterations)] if number != 1 else np.array_split(np.arange(iterations), 2)
        for part, (own, workers) in enumerate(zip(parts, pairs, strict=False)):
            begin_s = arrived_s + 1 if part == 0 else float(ends_s[own[0] - 1])
            stint = f"{name}.{part}"
            stints.append({"name": stint, "job": name, "begins_s": begin_s, "ends_s": float(ends_s[own[-1]]),
                           "workers": workers, "iterations": len(own), "shift_ms": None, "period_ms": None})  # fmt: skip
            specs[stint] = ResolvedJob.model_validate(
                job_spec.model_dump(mode="json", by_alias=True)
                | {"workers": workers, "profile": profile.model_dump(mode="json", by_alias=True)}
            )
            rows += [(stint, workers[0], place, float(ends_s[at] - times_ms[at] / 1e3), times_ms[at])
                     for place, at in enumerate(own)]  # fmt: skip
            life |= {"started_s": arrived_s + 1, "ended_s": float(ends_s[-1]), "moves": part}
        lives.append(life)
        scores = [0.7, 0.9] if "cassini" in variant else None
        decisions.append({"at_s": arrived_s, "why": "arrival", "job": name, "placements": {}, "scores": scores})
    key = f"{repetition:08x}{list(SLOWED).index(variant):08x}"
    identity = Identity(run.id, key, variant, json.dumps(cell.levels), repetition, 1)
    start_ns, attempt = BEGIN_NS + len(run.committed()) * 300 * S, run.begin(key)
    attempt.write("iterations", build_table("iterations", identity, _iterations(rows, profiles, start_ns), Units(1)))
    until_s = max(row[3] + row[4] / 1e3 for row in rows)
    attempt.write("queue", build_table("queue", identity, _queue(start_ns, until_s, marks, SLOWED[variant]), Units(1)))
    timeline = {"schema": 1, "scheduler": variant.replace("th-cassini", "themis"), "cassini": "cassini" in variant,
                "requests": requests, "stints": stints, "decisions": decisions, "jobs": lives}  # fmt: skip
    (attempt.path / "timeline.json").write_text(json.dumps(timeline))
    worked = cell.spec.model_copy(update={"jobs": specs})
    attempt.commit(record(identity, worked, start_ns, minute=len(run.committed()) % 60) | {"start_ns": start_ns})


def _where(hosts, at_ns):
    same = np.zeros(len(at_ns), np.int64)
    return {"host": hosts, "host_ns": at_ns - BOOT_NS, "controller_ns": at_ns, "offset_bound_ns": same}


def _iterations(rows, profiles, start_ns):
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


def _queue(start_ns, until_s, marks, busy):
    at_ns = start_ns + (np.arange(0, until_s + 1, 0.1) * S).astype(np.int64)
    count = len(at_ns)
    return {
        **_where(["tor0"] * count, at_ns), "link": ["L1"] * count, "interface": ["tor0-tor1"] * count,
        "towards": ["tor1"] * count, "tx_bytes": (np.arange(count) * busy * 0.2e9).astype(np.int64),
        "backlog_bytes": [0] * count, "drops": [0] * count,
        "marks": (np.arange(count) * busy).astype(np.int64) if marks else [None] * count,
    }  # fmt: skip
