# SPDX-License-Identifier: Apache-2.0
"""Thousands of spoilt files: each is read, or refused with one message that names the file. Nothing else happens."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings, strategies as st

from roundabout.plan import make_plan
from roundabout.spec import SpecError, load_experiment

FILES = [
    "catalog/rich.yaml",
    "catalog/unfair-vgg19.yaml",
    "topologies/dumbbell-2x2.yaml",
    "profiles/vgg19-fig1.yaml",
    "profiles/bert-8.yaml",
]
WORDS = st.sampled_from(
    ["", "name", "j1", "s0", "s9", "dcqcn", "variant", "fair", "bert-8", "../bert-8", "yes", "1", "~", "a.b", "ü", "\0"]
)  # fmt: skip
JUNK = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.dates(), st.binary(), st.text(), WORDS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS | st.integers() | st.none(), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip


def places(tree: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where each value of `tree` is, but for the root."""
    children = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in children:
        yield (*way, key)
        yield from places(value, (*way, key))


def spoil(tree: Any, draw: Any) -> None:
    """Drop, rename, replace, move or repeat one value of `tree`."""
    ways = list(places(tree))
    if not ways:
        return
    *way, last = draw(st.sampled_from(ways))
    around = tree
    for step in way:
        around = around[step]
    change = draw(st.sampled_from(["drop", "rename", "junk", "junk", "word", "wrap", "move"]))
    if change == "drop" or (change == "rename" and isinstance(around, list)):
        del around[last]
    elif change == "rename":
        around[draw(WORDS)] = around.pop(last)
    elif change == "move":
        around[last] = json.loads(json.dumps(value_at(tree, draw(st.sampled_from(ways))), default=str))
    else:
        around[last] = draw(JUNK) if change == "junk" else draw(WORDS) if change == "word" else [around[last]]


def value_at(tree: Any, way: tuple[Any, ...]) -> Any:
    for step in way:
        tree = tree[step]
    return tree


class Spoilt:
    """The library with one file spoilt, for as long as it takes to read the experiments that use it."""

    def __init__(self, library: Path, file: str, content: bytes) -> None:
        self.library = library
        self.path = library / file
        self.content = content

    def check(self) -> bool:
        """Whether the file was accepted; fails on anything but a plan that can be written, or one message."""
        refusal = None
        whole = self.path.read_bytes()
        self.path.write_bytes(self.content)
        name = self.path if self.path.parent.name == "catalog" else self.library / "catalog" / "rich.yaml"
        try:
            experiment = load_experiment(name, self.library)
        except SpecError as error:
            refusal = error
        finally:
            self.path.write_bytes(whole)
        if refusal:
            assert str(self.library) in refusal.message
            assert "\n" not in refusal.message
            assert refusal.found
            assert refusal.expected
            assert refusal.exit_code == 2
            return False
        assert len(make_plan(experiment, {}, {}).trials) == experiment.trial_count
        json.dumps(experiment.model_dump(mode="json"), allow_nan=False)
        return True


@pytest.fixture(scope="module")
def library(library: Path) -> Path:
    """The copy as it is before any spoiling: accepted."""
    for file in FILES:
        assert Spoilt(library, file, (library / file).read_bytes()).check()
    return library


@settings(max_examples=1500, deadline=None)
@given(data=st.data())
def test_spoilt_values(library: Path, data: st.DataObject) -> None:
    file = data.draw(st.sampled_from(FILES))
    tree = yaml.safe_load((library / file).read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        spoil(tree, data.draw)
    Spoilt(library, file, yaml.safe_dump(tree, allow_unicode=True).encode()).check()


@settings(max_examples=1000, deadline=None)
@given(data=st.data())
def test_spoilt_bytes(library: Path, data: st.DataObject) -> None:
    file = data.draw(st.sampled_from(FILES))
    content = bytearray((library / file).read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(content)))
        end = start + data.draw(st.integers(0, 5))
        content[start:end] = data.draw(
            st.binary(max_size=4) | st.sampled_from([b"\n", b": ", b"- ", b"&a ", b"*a", b"!!set ", b"\t"])
        )
    Spoilt(library, file, bytes(content)).check()


@settings(max_examples=500, deadline=None)
@given(data=st.data())
def test_spoilt_lines(library: Path, data: st.DataObject) -> None:
    file = data.draw(st.sampled_from(FILES))
    lines = (library / file).read_text().splitlines()
    for _ in range(data.draw(st.integers(1, 3))):
        at, to = data.draw(st.tuples(*[st.integers(0, len(lines) - 1)] * 2))
        change = data.draw(st.sampled_from(["swap", "repeat", "indent", "outdent"]))
        if change == "swap":
            lines[at], lines[to] = lines[to], lines[at]
        elif change == "repeat":
            lines.insert(to, lines[at])
        else:
            lines[at] = "  " + lines[at] if change == "indent" else lines[at].removeprefix("  ")
    Spoilt(library, file, "\n".join(lines).encode()).check()


@pytest.mark.parametrize(
    "text",
    [
        "", "null", "[]", "a", "---\n---\n", "a: 1\n---\nb: 2", "%YAML 9.9\n---\na: 1", "{" * 5000, "[" * 50 + "]" * 50,
        "a: &x [*x]", "a: &x 1\nb: *x", "<<: {a: 1}", "? [a]\n: 1", "? {a: b}\n: 1", "1: 2", "true: 2", "~: 2",
        "a: !!int x", "a: !!binary x", "a: 2020-01-01", "\ufeffname: x", "a: \"\\ud800\"", "name: \"\\u0000\"",
        "x" * 1_100_000, "factors: {a: " + str(list(range(50))) + ", b: " + str(list(range(50))) + "}",
        "a: 1_", "a: 0x", "a: =",
    ],
)  # fmt: skip
def test_odd_files(tmp_path: Path, text: str) -> None:
    path = tmp_path / "odd.yaml"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    with pytest.raises(SpecError, match=r"odd\.yaml"):
        load_experiment(path)
