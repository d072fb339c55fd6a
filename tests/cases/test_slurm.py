# SPDX-License-Identifier: Apache-2.0
"""Slurm's programs where they print more than was requested, such as the names of clusters."""

import os
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from roundabout.runner.slurm import Job, Slurm, SlurmError

pytestmark = pytest.mark.unit

CASE = Path(__file__).parent / "slurm-clusters-line"
JOB = Job(Path("/runs/20260101T000000Z-1"), alone=True)

Printing = Callable[..., None]


@pytest.fixture
def printing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Printing:
    """Put the case's programs on PATH; the returned function lets one of them print another text."""
    for program in CASE.iterdir():
        shutil.copy(program, tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    def change(program: str, text: str) -> None:
        (tmp_path / "text").write_text(text)
        (tmp_path / program).write_text(f"#!/bin/sh\ncat > /dev/null\ncat {tmp_path / 'text'}\n")

    return change


def test_lines_that_name_a_cluster_are_neither_jobs_nor_partitions(printing: Printing) -> None:
    Slurm("labs").check()
    with pytest.raises(SlurmError, match="found no partition 'alpha', expected one of: labs"):
        Slurm("alpha").check()
    assert Slurm("labs").submit(JOB, ["k1"]) == "17"
    assert Slurm("labs").queue(JOB) == Counter()
    Slurm("labs").cancel(JOB)


@pytest.mark.parametrize(
    ("text", "jobs"),
    [
        ("CLUSTER: alpha\nRUNNING None\nCLUSTER: beta\n", {"RUNNING": 1}),
        ("CLUSTER: alpha\nCLUSTER: beta\nPENDING Resources\n", {"PENDING (Resources)": 1}),
        ("RUNNING None\nRUNNING None\n", {"RUNNING": 2}),
    ],
)
def test_the_jobs_of_all_clusters_are_counted(printing: Printing, text: str, jobs: dict[str, int]) -> None:
    printing("squeue", text)
    assert Slurm().queue(JOB) == Counter(jobs)


@pytest.mark.parametrize("text", ["17\n", "17;alpha\n", "Charging project 5.\n17;alpha\n", "CLUSTER: alpha\n17\n"])
def test_the_number_of_a_submitted_array_is_read(printing: Printing, text: str) -> None:
    printing("sbatch", text)
    assert Slurm().submit(JOB, ["k1"]) == "17"


@pytest.mark.parametrize("text", ["", "Submitted batch job 17\n", ";alpha\n"])
def test_an_answer_without_a_number_is_an_error(printing: Printing, text: str) -> None:
    printing("sbatch", text)
    with pytest.raises(SlurmError, match="sbatch printed .*, expected the id of a job"):
        Slurm().submit(JOB, ["k1"])
