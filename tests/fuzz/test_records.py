# SPDX-License-Identifier: Apache-2.0
"""Records with random mistakes, for FUZZ_SECONDS a reader: each is read, or refused with one message on the file."""

import contextlib
import gzip
import json
import os
import random
import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from analysis.records.call import RecordError
from analysis.records.formats import format_of
from analysis.records.profile import make_profile
from analysis.statistics import phases
from tests.fuzz.test_inventories import SECONDS, spoilt
from tests.records.damage.damage import READERS, check, seeds
from tests.records.damage.odd_fields import EXAMPLES, EXTREME, ODD, is_clear, is_right

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


@pytest.mark.proof
@pytest.mark.parametrize("name", EXAMPLES)
def test_an_odd_number_never_ends_in_another_error(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole way up to the profile: a time that is read may still be too large for what follows."""
    monkeypatch.setattr(phases, "RESAMPLINGS", 3)
    example, rng = EXAMPLES[name], random.Random(int(os.environ.get("FUZZ_SEED", "1")))
    paths = [tmp_path / each for each in example.names]
    paths[1].write_text(example.other)
    end, tried = time.monotonic() + SECONDS, 0
    while time.monotonic() < end:
        (part, path), odd = rng.choice(example.fields), rng.choice(EXTREME)
        paths[0].write_text(example.text(part, path, odd))
        with contextlib.suppress(RecordError):
            make_profile(paths, "fuzz")
        tried += 1
    print(f"{name}: {tried} odd numbers in {SECONDS} s")


def with_bytes_of_no_text(text: str) -> bytes:
    """A name of an event that is not read has bytes that are no UTF-8."""
    event = json.dumps({"ph": "X", "cat": "cpu_op", "name": "@", "ts": 1, "dur": 1})
    return text.replace('"traceEvents": [', f'"traceEvents": [{event}, ').encode().replace(b"@", b"\xff\xfe\x80")


HARMLESS: dict[str, Callable[[str], bytes]] = {
    "byte order mark": lambda text: b"\xef\xbb\xbf" + text.encode(),
    "UTF-16": lambda text: text.encode("utf-16"),
    "gzip": lambda text: gzip.compress(text.encode()),
    "no UTF-8": with_bytes_of_no_text,
    "white space": lambda text: b"\n " + text.encode() + b" \n",
    "ranks as text": lambda text: text.replace('"ranks": [0, 1]', '"ranks": "[0, 1]"').encode(),
    "names of groups": lambda text: re.sub(r'"pg_config": \[[^]]*\][^]]*\]', '"pg_config": ["0"]', text).encode(),
    "C++ numbers": lambda text: text.replace('"deviceProperties": []', '"deviceProperties": [{"x": inf}]').encode(),
}


@pytest.mark.parametrize("change", HARMLESS)
def test_a_harmless_change_of_a_trace_changes_nothing(change: str, tmp_path: Path) -> None:
    example = EXAMPLES["kineto"]
    path = tmp_path / example.names[0]
    path.write_text(example.text())
    before = format_of(path).read(path)
    changed = HARMLESS[change](example.text())
    assert changed != example.text().encode()
    path.write_bytes(changed)
    assert format_of(path).read(path) == before
