# SPDX-License-Identifier: Apache-2.0
"""Records with random mistakes, for FUZZ_SECONDS a reader: each is read, or refused with one message on the file."""

import os
import random
import time
from pathlib import Path

import pytest

from analysis.records.call import RecordError
from tests.fuzz.test_inventories import SECONDS, spoilt
from tests.records.damage.damage import READERS, check, seeds
from tests.records.damage.odd_fields import EXAMPLES, ODD, is_clear, is_right

pytestmark = pytest.mark.lab


@pytest.mark.proof
@pytest.mark.parametrize("reader", READERS)
def test_a_record_is_read_or_refused(reader: str, tmp_path: Path) -> None:
    rng = random.Random(int(os.environ.get("FUZZ_SEED", "1")))
    undamaged = seeds(reader)
    end, tried, read = time.monotonic() + SECONDS, 0, 0
    while time.monotonic() < end:
        read += check(tmp_path, reader, spoilt(rng.choice(undamaged), undamaged, rng))
        tried += 1
    print(f"{reader}: {tried} inputs in {SECONDS} s, {read} of them read")
    assert read


@pytest.mark.proof
@pytest.mark.parametrize("name", EXAMPLES)
def test_an_odd_value_changes_nothing_unsaid(name: str, tmp_path: Path) -> None:
    example, rng = EXAMPLES[name], random.Random(int(os.environ.get("FUZZ_SEED", "1")))
    end, tried = time.monotonic() + SECONDS, 0
    while time.monotonic() < end:
        (part, path), odd = rng.choice(example.fields), rng.choice(ODD)
        found = example.found(tmp_path, example.text(part, path, odd))
        right = is_clear(found, example.names[0]) if isinstance(found, RecordError) else is_right(found, example.good)
        assert right, f"part {part}, {path}: {odd[:40]}"
        tried += 1
    print(f"{name}: {tried} odd values in {SECONDS} s, of {len(example.fields) * len(ODD)}")
