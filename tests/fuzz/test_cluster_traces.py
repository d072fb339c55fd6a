# SPDX-License-Identifier: Apache-2.0
"""Real traces with random mistakes, for FUZZ_SECONDS a kind: each is read, or refused with one message on a file."""

import json
import math
import os
import random
import time
from pathlib import Path

import pytest

from roundabout.spec import SpecError
from roundabout.spec.trace import SubmittedJob
from tests.fuzz.test_inventories import SECONDS, spoilt
from tests.spec.cluster_traces.test_recorded_traces import JOB, NEVER, RUNNING
from tests.spec.cluster_traces.test_trace_files import ODD
from tests.spec.cluster_traces.trace_files import TABLES, read_file

pytestmark = pytest.mark.lab

CONTENTS = {kind: {each.file: each.text().encode() for each in tables} for kind, tables in TABLES.items()}
CONTENTS["philly"] = {"cluster_job_log": json.dumps([JOB, RUNNING, NEVER], indent=1).encode()}
CONTENTS["philly lines"] = {"cluster_job_log": "\n".join(map(json.dumps, [JOB, RUNNING, NEVER])).encode()}
WORDS = [word.encode() for word in ODD if len(word) < 100]


def with_odd_cell(content: bytes, rng: random.Random) -> bytes:
    """Replace the text between two commas, quotes or line ends by another value."""
    edges = [at for at, each in enumerate(content) if each in b',"\n']
    begin = rng.randrange(len(edges) - 1)
    return content[: edges[begin] + 1] + rng.choice(WORDS) + content[edges[begin + 1] :]


def is_read(folder: Path, kind: str, contents: dict[str, bytes]) -> bool:
    """Return True for a trace that is read, and False for one that is refused as it should be."""
    for file, content in contents.items():
        (folder / file).write_bytes(content)
    found = read_or_refusal(folder, kind, next(iter(contents)))
    if isinstance(found, SpecError):
        assert any(found.file.endswith(file) for file in contents), found.message
        assert "\n" not in found.message and len(found.message) < 2000
        return False
    assert all(each.gpus >= 1 and math.isfinite(each.at_s) for each in found)
    return True


def read_or_refusal(folder: Path, kind: str, file: str) -> tuple[SubmittedJob, ...] | SpecError:
    try:
        return read_file(folder, kind, file)
    except SpecError as error:
        return error


@pytest.mark.proof
@pytest.mark.parametrize("kind", CONTENTS)
def test_a_real_trace_is_read_or_refused(kind: str, tmp_path: Path) -> None:
    rng = random.Random(int(os.environ.get("FUZZ_SEED", "1")))
    whole = CONTENTS[kind]
    others = [content for contents in CONTENTS.values() for content in contents.values()]
    assert is_read(tmp_path, kind, whole)
    end, tried, read = time.monotonic() + SECONDS, 0, 0
    while time.monotonic() < end:
        file = rng.choice(list(whole))
        change = with_odd_cell(whole[file], rng) if rng.random() < 0.5 else spoilt(whole[file], others, rng)
        read += is_read(tmp_path, kind, {**whole, file: change})
        tried += 1
    print(f"{kind}: {tried} inputs in {SECONDS} s, {read} of them read")
    assert read
