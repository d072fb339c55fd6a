# SPDX-License-Identifier: Apache-2.0
"""Traces of clusters: fields that qualify a job change what is read, and files that were saved again are read."""

from pathlib import Path

import pytest

from roundabout.spec import SpecError
from roundabout.spec.loader import load_experiment
from roundabout.spec.trace import SubmittedJob
from tests.spec.cluster_traces.trace_files import HELIOS, KALOS, PAI_TASKS, PODS, SEREN, TABLES, Table, read, read_file

pytestmark = pytest.mark.unit

CASES = Path(__file__).parent


def test_a_job_that_was_cancelled_before_its_start_is_left_out() -> None:
    jobs = read_file(CASES / "helios-cancelled-before-start", "helios", "cluster_log.csv")
    assert [(job.name, job.gpus, job.ran_s) for job in jobs] == [("101", 8, 0), ("102", 4, 1200)]


SAVED_AGAIN = {
    ("lingjun-nat", "lingjun", "job.csv"): [("dlcaa", 2, None)],
    ("lingjun-seconds", "lingjun", "job.csv"): [("dlcaa", 2, 234)],
    ("philly-json-lines", "philly", "jobs.json"): [("a_1", 2, 170), ("a_2", 2, 170)],
}


@pytest.mark.parametrize("case", SAVED_AGAIN)
def test_a_file_that_was_saved_again_is_read(case: tuple[str, str, str]) -> None:
    folder, kind, file = case
    jobs = read_file(CASES / folder, kind, file)
    assert [(job.name, job.gpus, job.ran_s) for job in jobs] == SAVED_AGAIN[case]


def names(jobs: tuple[SubmittedJob, ...]) -> list[str]:
    return [job.name for job in jobs]


# Kind, table, row, and the cells with which that row's job never had a GPU, where it has one as published.
NEVER_STARTED: list[tuple[str, Table, int, dict[str, str]]] = [
    ("helios", HELIOS, 0, {"state": "CANCELLED", "start_time": ""}),
    ("helios", HELIOS, 0, {"state": "CANCELLED by 1000", "start_time": "2020-06-01 10:10:08"}),
    ("helios", HELIOS, 3, {"state": "PENDING", "start_time": "None"}),
    ("acme", SEREN, 1, {"state": "cancelled", "start_time": "NaT"}),
    ("acme kalos", KALOS, 2, {"state": "PENDING", "start_time": ""}),
    ("alibaba-gpu-2020", PAI_TASKS, 2, {"status": "Waiting"}),
    ("alibaba-gpu-2023", PODS, 0, {"pod_phase": "Pending", "scheduled_time": ""}),
]


@pytest.mark.parametrize(("kind", "table", "row", "cells"), NEVER_STARTED)
def test_a_state_without_a_start_leaves_the_job_out(
    kind: str, table: Table, row: int, cells: dict[str, str], tmp_path: Path
) -> None:
    changed = table
    for column, value in cells.items():
        changed = changed.with_cell(row, column, value)
    before = names(read(tmp_path, kind, TABLES[kind]))
    after = names(read(tmp_path, kind, [changed if each is table else each for each in TABLES[kind]]))
    assert after == [name for name in before if name != table.rows[row][0]] != before


@pytest.mark.parametrize("state", ["CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL"])
def test_a_job_that_did_not_complete_is_played_as_long_as_it_ran(state: str, tmp_path: Path) -> None:
    before = read(tmp_path, "helios", [HELIOS])
    assert read(tmp_path, "helios", [HELIOS.with_cell(0, "state", state)]) == before


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("alibaba-gpu-2026", r"kind: found 'alibaba-gpu-2026', a trace that has no submission times, expected a trace"),
        ("alibaba-gpu-2024", r"kind: found 'alibaba-gpu-2024', expected one of 'poisson'"),
        ("[alibaba-gpu-2026]", r"kind: found"),
    ],
)
def test_a_trace_without_submission_times_is_refused_by_name(kind: str, message: str, tmp_path: Path) -> None:
    text = (CASES / "alibaba-gpu-2026/t.yaml").read_text().replace("alibaba-gpu-2026", kind)
    (tmp_path / "t.yaml").write_text(text)
    with pytest.raises(SpecError, match=message) as raised:
        load_experiment(str(tmp_path / "t.yaml"))
    assert raised.value.line == 8
    assert (raised.value.hint is None) == (kind == "alibaba-gpu-2026")
