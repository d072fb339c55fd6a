# SPDX-License-Identifier: Apache-2.0
"""Small runs on the testbed `packets`."""

from pathlib import Path
from typing import Any

from roundabout import build_experiment
from roundabout.store import Run
from roundabout.testbeds.packets.provider import PacketsProvider
from tests.computed_runs import runner_on
from tests.two_phases import two_phases

PROFILE = two_phases(30, 100_000_000, 25)
JOBS = {"j1": {"profile": "small", "workers": ["s0", "s2"]}, "j2": {"profile": "small", "workers": ["s1", "s3"]}}
FILE: dict[str, Any] = {
    "name": "small",
    "about": "Two jobs in miniature",
    "topology": "dumbbell-2x2",
    "profiles": {"small": PROFILE},
    "jobs": JOBS,
    "transport": {"name": "dcqcn", "set": "hpcc-paper", "T_us": 125},
    "iterations": 4,
    "repetitions": 1,
    "factors": {
        "variant": {
            "alone": {"one_job_at_a_time": True},
            "fair": {},
            "unfair": {"jobs": {"j1": {"transport": {"T_us": 60}}}},
        }
    },
}


def run(fields: dict[str, Any], folder: Path) -> Run:
    return runner_on(PacketsProvider()).start(build_experiment(fields), "small", folder)


def rows(run: Run, table: str, variant: str, **values: Any) -> list[dict[str, Any]]:
    chosen = {"variant": variant, **values}
    return [row for row in run.table(table).to_pylist() if all(row[name] == value for name, value in chosen.items())]
