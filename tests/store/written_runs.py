# SPDX-License-Identifier: Apache-2.0
"""Runs with a few records, written without a trial."""

import json

from roundabout.store import Identity, Run, Units, build_table, schemas

FIRST, SECOND = "20261121T093012Z-7f3a", "20261121T101500Z-0001"


def make(folder, experiment="fair-vgg19", run_id=FIRST):
    manifest = {"testbed": {"kind": "lab"}, "experiment": {}, "plan": []}
    return Run.create(folder, experiment, manifest, run_id)


def record(run, key, attempt, *, valid=True, started="2026-11-21T09:30:12.000+00:00"):
    who = Identity(run.id, key, "fair", json.dumps({"variant": "fair"}), 1, attempt)
    rest = {"host": "controller", "host_ns": 1, "controller_ns": 2, "offset_bound_ns": 0, "job": None, "reason": ""}
    times = {"started_utc": started, "ended_utc": started, "busy_max": 0.4, "steal_max": 0.0, "late_p90_ms": 0.1}
    return {**vars(who), **rest, **times, "valid": valid, "spec": {}}


def zeros(table, value):
    """A row of `table` but for what says whose it is."""
    return {column.name: [value] for column in schemas.columns(table) if column.name not in Identity.__annotations__}


def write_flow(attempt, who_attempt=1):
    who = Identity(attempt.run.id, attempt.key, "fair", "{}", 1, who_attempt)
    values = zeros("flows", 0)
    text = {"host": ["s0"], "job": ["j1"], "peer": ["s2"], "congestion_control": ["cubic"], "bytes_acked": [1000]}
    attempt.write("flows", build_table("flows", who, {**values, **text}, Units(50)))
