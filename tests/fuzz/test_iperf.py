# SPDX-License-Identifier: Apache-2.0
"""Output of iperf with random mistakes, for FUZZ_SECONDS a tool: each is a result, or one message."""

import json
import os
import random
import time
from collections.abc import Callable
from typing import Any

import pytest

from crossgen.iperf import Iperf2, Iperf3
from tests.crossgen.test_iperf_output import FORMS, check, printed, three
from tests.fuzz.test_inventories import SECONDS, spoilt

pytestmark = pytest.mark.lab

REPORTS = [(id_, start, start + 1.0, 1000) for start in (0.0, 1.0, 0.0) for id_ in (1, 2)]
SEEDS = {
    "iperf": [printed(form, *REPORTS).encode() for form in FORMS],
    "iperf3": [json.dumps(three(), indent=indent).encode() for indent in (None, 1)]
    + [b"warning: words\n" + json.dumps(three(error="unable to connect")).encode()],
}


@pytest.mark.proof
@pytest.mark.parametrize(("tool", "parse"), [("iperf", Iperf2.summarise), ("iperf3", Iperf3.summarise)])
def test_output_is_a_result_or_one_message(tool: str, parse: Callable[[str], Any]) -> None:
    rng = random.Random(int(os.environ.get("FUZZ_SEED", "1")))
    seeds = SEEDS[tool]
    end, tried = time.monotonic() + SECONDS, 0
    while time.monotonic() < end:
        check(parse, spoilt(rng.choice(seeds), seeds, rng).decode(errors="replace"))
        tried += 1
    print(f"{tool}: {tried} inputs in {SECONDS} s")
