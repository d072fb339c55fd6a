# SPDX-License-Identifier: Apache-2.0
"""What generators of cross traffic say, and what a trial is worth where they say nothing."""

import hashlib
import json
import os
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest

from roundabout.runner.trial import validity_checks
from roundabout.runner.trial.cross_traffic import LOAD_FILE, plan_and_send
from roundabout.runner.trial.cross_traffic_tables import GeneratorOutput
from roundabout.spec.cross_traffic import CrossTraffic
from roundabout.testbeds.lab.network import paths

pytestmark = pytest.mark.unit

SPEC = CrossTraffic.model_validate({"kind": "consistent", "from": "s2", "to": ["s0"], "load_gbps": 6})
PLAN = {"flows": 2, "plan": {"asked_gbps": 6.0}, "offered_gbps": 5.9, "offered_gbps_standard_error": 0.1}
SUMMARY = {
    "event": "summary",
    "offered_gbps": 0.0,
    "achieved_gbps": 0.0,
    "schedule_held": None,
    "lagging_share": 0.0,
    "due_flows": 1,
    "finished_flows": 0,
    "unfinished_flows": 1,
    "lateness_us": None,
}


def lines(*events):
    return [json.dumps(event, separators=(",", ":")) for event in events]


def test_a_generator_stopped_in_its_warm_up_has_no_lateness():
    (row,) = pa.table(GeneratorOutput(SPEC, lines(PLAN, SUMMARY)).summary()).to_pylist()
    assert (row["planned_gbps"], row["schedule_held"], row["lateness_p99_us"]) == (5.9, None, None)


def test_a_generator_without_a_report_spoils_its_trial():
    silent = {"loud": SPEC, "silent": SPEC, "off": SPEC.model_copy(update={"load_gbps": 0.0})}
    trial = SimpleNamespace(spec=SimpleNamespace(cross_traffic=silent))
    assert validity_checks.missing_loads(trial, pa.table({"traffic": ["loud"]})) == [
        "cross traffic silent reported no sent bytes"
    ]


@pytest.mark.parametrize(
    ("plan", "send", "status", "sent"),
    [
        (f"echo flows > {LOAD_FILE}", f"cat {LOAD_FILE}", 0, "flows\n"),
        (f"echo flows > {LOAD_FILE}", "exit 5", 5, ""),
        (f"echo flows > {LOAD_FILE}; exit 3", f"cat {LOAD_FILE}", 3, ""),
        ("kill -KILL $$", f"cat {LOAD_FILE}", 128 + 9, ""),
    ],
)
def test_the_load_file_is_deleted_however_sending_ends(plan: str, send: str, status: int, sent: str, tmp_path: Path):
    command = plan_and_send(["sh", "-c", plan], ["sh", "-c", send])
    done = subprocess.run(command, env={**os.environ, "TMPDIR": str(tmp_path)}, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (status, sent)
    assert not list(tmp_path.iterdir())


def test_a_planned_load_is_the_one_that_is_sent(tmp_path: Path):
    plan = [
        str(paths.program_path("crossgen")),
        "plan",
        "--load-gbps",
        "1",
        "--duration-s",
        "1",
        "--seed",
        "7",
        "--output",
    ]
    done = subprocess.run(plan_and_send([*plan, LOAD_FILE], ["sha256sum", LOAD_FILE]), capture_output=True, text=True)
    subprocess.run([*plan, tmp_path / "x.load"], check=True, capture_output=True)
    digest = hashlib.sha256((tmp_path / "x.load").read_bytes()).hexdigest()
    assert done.stdout.endswith(f"{digest}  {LOAD_FILE}\n")
