# SPDX-License-Identifier: Apache-2.0
"""Inputs of `advise` with random mistakes, for FUZZ_SECONDS a kind: each is read, or refused with one message."""

import json
import os
import random
import time
from pathlib import Path

import pytest

from analysis.advice import senders
from analysis.advice.advice import read_placements
from analysis.advice.observed_jobs import ObservedJob
from roundabout.core.errors import UsageError
from tests.analysis.advice.test_advice_inputs import assert_one_line, csv, outcome, rows, series, slurm
from tests.fuzz.test_inventories import SECONDS, spoilt

pytestmark = pytest.mark.lab


def placements(path: Path) -> object:
    return read_placements(path, [ObservedJob("j1"), ObservedJob("j2")])


ANSWER = {"status": "success", "data": {"resultType": "matrix", "result": [series("n1"), series("n2")]}}
KINDS = {
    "a.json": (outcome, json.dumps(ANSWER)),
    "a.csv": (outcome, csv(rows()[:322])),
    "jobs.yaml": (senders.read_senders, "j1: [n1, n2]\nj2: n[3-4,07]\n"),
    "q.json": (senders.read_senders, json.dumps({"jobs": [slurm(), slurm(job_id=8, nodes="n3,n4")]}, indent=1)),
    "p.yaml": (placements, "spread: {L1: [j1], L2: [j2]}\none:\n  L1: [j1, j2]\n"),
}


@pytest.mark.proof
@pytest.mark.parametrize("name", KINDS)
def test_any_input_of_advise_is_read_or_refused(name: str, tmp_path: Path) -> None:
    rng = random.Random(int(os.environ.get("FUZZ_SEED", "1")))
    reader, seed = KINDS[name]
    path, end, tried, read = tmp_path / name, time.monotonic() + SECONDS, 0, 0
    while time.monotonic() < end:
        path.write_bytes(spoilt(seed.encode(), [seed.encode()], rng))
        try:
            read += reader(path) is not None
        except UsageError as error:
            assert_one_line(error.message, path)
        tried += 1
    print(f"{name}: {tried} inputs in {SECONDS} s, {read} of them read")
    assert read
