# SPDX-License-Identifier: Apache-2.0
"""A trial over time on the explorer's page: values by hand."""

import numpy as np
import pyarrow as pa
import pytest

from analysis.explorer import trial_course
from analysis.explorer.trial_course import Tables, describe_trial, limit_windows, window_edges_ns, window_width_ms
from analysis.reading.data import HostPlace, PortPlace
from analysis.statistics.cumulative_counter import CumulativeCounter
from tests.analysis.computed_run import compute

pytestmark = pytest.mark.unit

BEGIN_NS = 1_000_000_000_000
MS = 1_000_000
BYTES_OF_10_MS = 12_500_000
"""At 10 Gbit/s."""


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    """The record of a trial in which j1 (s0, s2) and j2 (s1, s3) share L1."""
    return next(each for each in compute(tmp_path_factory.mktemp("tiny")).trials() if each["variant"] == "fair")


def counter(totals, step_ms=10):
    """Return a counter with these totals, one sample each `step_ms` from the trial's begin."""
    at_ns = BEGIN_NS + np.arange(len(totals)) * step_ms * MS
    return CumulativeCounter.from_increments(at_ns, np.diff(np.array(totals, np.int64)))


def tables(trial, **changed):
    """Return the counters of a trial of 30 ms with two iterations of j1 and one of j2."""
    rows = [
        {"job": "j1", "iteration": 0, "start": 0, "compute_end": 4, "end": 10},
        {"job": "j1", "iteration": 1, "start": 10, "compute_end": 15, "end": 30},
        {"job": "j2", "iteration": 0, "start": 2, "compute_end": 3, "end": 20.5},
    ]
    found = pa.table(
        {
            "trial": [trial] * 3,
            "job": [row["job"] for row in rows],
            "iteration": [row["iteration"] for row in rows],
            "start_ns": [BEGIN_NS + row["start"] * MS for row in rows],
            "compute_end_ns": [BEGIN_NS + row["compute_end"] * MS for row in rows],
            "comm_end_ns": [int(BEGIN_NS + row["end"] * MS) for row in rows],
            "iteration_ms": [float(row["end"] - row["start"]) for row in rows],
        }
    )
    port = PortPlace(trial, "L1", "tor1")
    known = {
        "iterations": found,
        "sent": {HostPlace(trial, "s0"): counter([0, 0, BYTES_OF_10_MS, 3 * BYTES_OF_10_MS])},
        "ports": {port: counter([0, BYTES_OF_10_MS, BYTES_OF_10_MS, 4 * BYTES_OF_10_MS])},
        "backlogs": {port: (BEGIN_NS + np.array([0, 5, 25]) * MS, np.array([1000, 7000, 2500]))},
        "marks": {port: counter([0, 3, 3, 10])},
        "cnps": {HostPlace(trial, "s0"): counter([5, 5, 7, 9]), HostPlace(trial, "s2"): counter([0, 1, 1, 1])},
        "marks_by_iteration": {(trial, "j1"): {0: 3, 1: None}},
    }
    return Tables(**{**known, **changed})


def described(record, **changed):
    return describe_trial(record, tables(record["trial"], **changed), windows=100)


def test_a_job_has_its_phases_rates_marks_and_cnps(record):
    found = described(record)
    assert (found["duration_ms"], found["window_ms"]) == (30.0, 10.0)
    job = found["jobs"][0]
    assert (job["name"], job["hosts"], job["count"]) == ("j1", ["s0", "s2"], 2)
    assert (job["start"], job["compute_end"], job["comm_end"]) == ([0.0, 10.0], [4.0, 15.0], [10.0, 30.0])
    assert job["iteration_ms"] == [10.0, 20.0]
    assert sorted(job["hops"]) == [
        ["L1", "tor0"],
        ["L1", "tor1"],
        ["s0", "s0"],
        ["s0", "tor0"],
        ["s2", "s2"],
        ["s2", "tor1"],
    ]
    assert job["gbps"] == [0.0, 10.0, 20.0]
    assert job["marks"] == [3, None]
    assert job["cnps_per_window"] == [1, 2, 2]
    assert job["cnps"] == [1, 4]


def test_what_nothing_counted_is_missing_and_not_zero(record):
    found = described(record)
    assert found["jobs"][1]["gbps"] == [None, None, None]
    assert (found["jobs"][1]["marks"], found["jobs"][1]["cnps"]) == (None, None)
    assert found["missing"] == []
    bare = described(record, sent={}, ports={}, backlogs={}, marks={}, cnps={}, marks_by_iteration={})
    assert bare["directions"] == []
    assert bare["missing"] == list(trial_course.MISSING.values())


def test_a_direction_has_its_load_queue_and_marks(record):
    found = {(each["link"], each["towards"]): each for each in described(record)["directions"]}
    shared = found["L1", "tor1"]
    assert shared["gbps"] == [10.0, 0.0, 30.0]
    assert shared["mean_gbps"] == 13.333
    assert shared["backlog_kb"] == [7.0, None, 2.5]
    assert shared["marks"] == [3, 0, 7]
    uplink = found["s0", "tor0"]
    assert uplink["gbps"] == [0.0, 10.0, 20.0]
    assert (uplink["backlog_kb"], uplink["marks"]) == (None, None)
    assert set(found) == {("L1", "tor1"), ("s0", "tor0")}


def test_the_less_loaded_directions_keep_their_mean_alone(record, monkeypatch):
    monkeypatch.setattr(trial_course, "MAX_DIRECTIONS", 1)
    busiest, other = described(record)["directions"]
    assert busiest["gbps"] is not None
    assert (other["gbps"], other["mean_gbps"] is None) == (None, False)


def test_later_iterations_are_left_out_and_counted(record, monkeypatch):
    monkeypatch.setattr(trial_course, "MAX_ITERATIONS", 1)
    job = described(record)["jobs"][0]
    assert (job["count"], job["iterations"], job["marks"]) == (2, [0], [3])


@pytest.mark.parametrize(("duration_ms", "windows", "width_ms"), [(30, 100, 10), (1000, 100, 10), (1001, 100, 20)])
def test_windows_are_multiples_of_the_sampling_period(duration_ms, windows, width_ms):
    assert window_width_ms(duration_ms, windows) == width_ms


def test_windows_cover_the_trial_to_its_end():
    edges_ns = window_edges_ns(0, 25 * MS, 10.0)
    assert edges_ns.tolist() == [0, 10 * MS, 20 * MS, 30 * MS]


def test_a_page_of_many_trials_has_fewer_windows_of_each():
    assert limit_windows(1, 10) == trial_course.MAX_WINDOWS
    assert limit_windows(20, 100) == trial_course.MAX_VALUES / 2000
    assert limit_windows(1000, 1000) == trial_course.MIN_WINDOWS
