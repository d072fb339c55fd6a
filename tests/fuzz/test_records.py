# SPDX-License-Identifier: Apache-2.0
"""Records with random mistakes, for FUZZ_SECONDS a reader: each is read, or refused with one message on the file."""

import os
import random
import time
from pathlib import Path

import pytest

from tests.fuzz.test_inventories import SECONDS, spoilt
from tests.records.damage import READERS, check, seeds


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
