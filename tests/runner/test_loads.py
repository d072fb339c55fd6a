# SPDX-License-Identifier: Apache-2.0
"""What generators of cross traffic say, and what a trial is worth where they say nothing."""

import json
from types import SimpleNamespace

import pyarrow as pa

from roundabout.runner.trial import checks
from roundabout.runner.trial.loads import Load
from roundabout.spec.experiment import CrossTraffic

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


def test_a_generator_that_was_stopped_while_it_warmed_up_measured_no_lateness():
    (row,) = pa.table(Load(SPEC, lines(PLAN, SUMMARY)).summary()).to_pylist()
    assert (row["planned_gbps"], row["schedule_held"], row["lateness_p99_us"]) == (5.9, None, None)


def test_a_generator_that_told_nothing_spoils_its_trial():
    silent = {"loud": SPEC, "silent": SPEC, "off": SPEC.model_copy(update={"load_gbps": 0.0})}
    trial = SimpleNamespace(spec=SimpleNamespace(cross_traffic=silent))
    assert checks._missing_loads(trial, pa.table({"traffic": ["loud"]})) == [
        "cross traffic silent did not tell what it sent"
    ]
