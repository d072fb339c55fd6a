# SPDX-License-Identifier: Apache-2.0
"""What every made-up run has: its manifest, and the record of a trial."""

import json

BOOT_NS = 1_763_600_000_000_000_000
BEGIN_NS = 1_763_700_000_000_000_000


def manifest(experiment, scale, program, *, emulated=True):
    """Of a run whose trials `program` measured."""
    return {
        "experiment": experiment.model_dump(mode="json", by_alias=True),
        "testbed": {
            "kind": "lab" if emulated else "rack",
            "emulated": emulated,
            "scale": scale if emulated else 1.0,
            "identity": {"calibration": "1 (3f9a...)", "kernel": "6.18.0"},
        },
        "plan": [{"key": str(number)} for number in range(experiment.trial_count)],
        "artefacts": {program: "5" * 64},
        "sessions": [
            {
                "started_utc": "2026-11-21T09:30:12.000+00:00",
                "code": {"revision": "0123456789abcdef" * 2, "dirty": False},
                "controller": {"kernel": "6.18.0", "python": "3.11.2", "libraries": {"numpy": "2"}},
                "hosts": {host: {"kernel": "6.18.0", "cpu": "2 <a CPU>"} for host in ("s0", "s1", "s2", "s3")},
            }
        ],
    }


def record(identity, spec, start_ns, *, reason="", job=None, minute=0):
    """Of a trial that began at `start_ns`, and in this minute after nine; a `reason` makes it invalid."""
    return {
        **vars(identity),
        "host": "controller",
        "host_ns": start_ns - BOOT_NS,
        "controller_ns": start_ns,
        "offset_bound_ns": 0,
        "job": job,
        "valid": not reason,
        "reason": reason,
        "started_utc": f"2026-11-21T09:{minute:02d}:00Z",
        "ended_utc": f"2026-11-21T09:{minute:02d}:25Z",
        "busy_max": 0.41,
        "steal_max": 0.01,
        "late_p90_ms": 0.2,
        "spec": spec.model_dump(mode="json", by_alias=True),
    }


def as_older(run):
    """Make it a run of a revision whose records had nothing of files, or of themselves: all can be changed."""
    for path in run.path.glob("*/*/trial.json"):
        content = json.loads(path.read_text())
        del content["files"], content["sha256"]
        path.write_text(json.dumps(content))
    return run
