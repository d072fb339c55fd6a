# SPDX-License-Identifier: Apache-2.0
"""Every field of every format with every odd value: nothing changes, or what was left out is said, or it is refused."""

import gzip
import json
import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from analysis.records.call import RecordError
from analysis.records.formats import format_of
from analysis.records.profile import make_profile
from analysis.statistics import phases
from tests.records.odd_fields import (
    EXAMPLES,
    EXTREME,
    ODD,
    fabric_or_error,
    is_clear,
    is_right,
    is_right_fabric,
    paths,
    with_odd,
)

pytestmark = pytest.mark.unit

FABRICS = sorted((Path(__file__).parent / "examples" / "nccl-tests").iterdir())


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.parametrize("count", [50, pytest.param(1000, marks=pytest.mark.proof)])
def test_an_odd_value_in_a_record_changes_nothing_unsaid(name, count, tmp_path):
    example = EXAMPLES[name]
    values = [(part, path, odd) for part, path in example.fields for odd in ODD]
    for part, path, odd in random.Random(count).sample(values, min(count, len(values))):
        found = example.found(tmp_path, example.text(part, path, odd))
        right = is_clear(found, example.names[0]) if isinstance(found, RecordError) else is_right(found, example.good)
        assert right, f"part {part}, {path}: {odd[:40]}"


@pytest.mark.proof
@pytest.mark.parametrize("name", EXAMPLES)
def test_an_odd_number_never_ends_in_another_error(name, tmp_path, monkeypatch):
    """A time that is read may still be too large for the steps up to the profile."""
    monkeypatch.setattr(phases, "RESAMPLINGS", 3)
    example, rng = EXAMPLES[name], random.Random(1)
    files = [tmp_path / each for each in example.names]
    files[1].write_text(example.other)
    refused = 0
    for _ in range(100):
        (part, path), odd = rng.choice(example.fields), rng.choice(EXTREME)
        files[0].write_text(example.text(part, path, odd))
        try:
            make_profile(files, "fuzz")
        except RecordError:
            refused += 1
    assert 0 < refused < 100


@settings(max_examples=100)
@given(data=st.data())
def test_an_odd_value_in_a_fabric_s_figures_changes_none(data, tmp_path_factory):
    path = tmp_path_factory.mktemp("odd") / "out.json"
    content = data.draw(st.sampled_from(FABRICS)).read_text()
    good, tree = fabric_or_error(path, content), [json.loads(content)]
    assert not isinstance(good, RecordError)
    field, odd = data.draw(st.sampled_from(list(paths(tree)))), data.draw(st.sampled_from(ODD))
    found = fabric_or_error(path, with_odd(tree, field, odd)[1:-1])
    if isinstance(found, RecordError):
        assert is_clear(found, path.name)
    else:
        assert is_right_fabric(found, good)


def with_bytes_of_no_text(text: str) -> bytes:
    """Give an event that is not read a name that is not UTF-8."""
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
def test_a_harmless_change_of_a_trace_changes_nothing(change, tmp_path):
    example = EXAMPLES["kineto"]
    path = tmp_path / example.names[0]
    path.write_text(example.text())
    before = format_of(path).read(path)
    changed = HARMLESS[change](example.text())
    assert changed != example.text().encode()
    path.write_bytes(changed)
    assert format_of(path).read(path) == before
