# SPDX-License-Identifier: Apache-2.0
"""Inventories with random mistakes, for FUZZ_SECONDS: each is read, or refused with one message that names the file."""

import os
import random
import time
from pathlib import Path

import pytest

from tests.rack.conftest import examples
from tests.rack.test_mutations import CONTENT, check

pytestmark = pytest.mark.lab

KEPT = Path(__file__).with_name("inventories")
SECONDS = int(os.environ.get("FUZZ_SECONDS", "5"))
MOST_BYTES = 20_000
WORDS = (
    r"\n|\t| |: |- |? |# |&a |*a |!!set |!x |{|}|[|]|<<: |>-\n|---\n|...\n|%YAML 9\n|'|\\|~|true|-1|1e999|.inf|{{ x }}"
)
TELLING = [b"", b"|\n", b"\0", b"\xff", b"\xc3", "\u2028\ufeff".encode(), b"9" * 5000, b"[" * 30]
TELLING += [word.encode().decode("unicode_escape").encode() for word in WORDS.split("|")]


def spoilt(content: bytes, others: list[bytes], rng: random.Random) -> bytes:
    """The file with some mistakes in it: in its bytes, its words or its lines."""
    for _ in range(rng.randint(1, 5)):
        at = rng.randrange(len(content) + 1)
        lines = content.splitlines(keepends=True) or [b""]
        line = rng.randrange(len(lines))
        change = rng.randrange(6)
        if change == 0:
            content = content[:at] + rng.choice(TELLING) + content[at + rng.randrange(4) :]
        elif change == 1:
            content = content[:at] + rng.randbytes(rng.randint(1, 3)) + content[at + rng.randrange(3) :]
        elif change == 2:
            content = b"".join(lines[:line] + lines[line + 1 :])
        elif change == 3:
            content = b"".join([*lines[:line], rng.choice(lines), *lines[line:]])
        elif change == 4:
            head, mark, _ = lines[line].partition(b": ")
            content = b"".join([*lines[:line], head + mark + rng.choice(TELLING) + b"\n", *lines[line + 1 :]])
        else:
            content = content[:at] + rng.choice(others)[rng.randrange(200) :][: rng.randrange(200)] + content[at:]
    return content[:MOST_BYTES]


@pytest.mark.proof
def test_an_inventory_is_read_or_refused(tmp_path: Path) -> None:
    rng = random.Random(int(os.environ.get("FUZZ_SEED", "1")))
    seeds = [
        CONTENT,
        *(text.encode() for text in examples().values()),
        *(path.read_bytes() for path in sorted(KEPT.iterdir())),
    ]
    path = tmp_path / "spoilt"
    end, tried = time.monotonic() + SECONDS, 0
    for seed in seeds:
        check(path, seed)
    while time.monotonic() < end:
        check(path, spoilt(rng.choice(seeds), seeds, rng))
        tried += 1
    print(f"inventory: {tried} inputs in {SECONDS} s")
