# SPDX-License-Identifier: Apache-2.0
"""Random mistakes in YAML files, and what a reader owes whoever made them: one message each."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

import yaml
from hypothesis import strategies as st

from roundabout.spec import SpecError

Draw = Any
Way = tuple[Any, ...]
PIECES = st.binary(max_size=4) | st.sampled_from([b"\n", b": ", b"- ", b"&a ", b"*a", b"!!set ", b"\t", b"{", b"}"])


class Mistakes:
    """Spoils a file's values; `words` are what somebody might write there."""

    def __init__(self, words: Sequence[str]) -> None:
        self._words = word = st.sampled_from(words)
        self._junk = st.recursive(
            st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.dates(), st.binary(), st.text(), word),
            lambda inner: (
                st.lists(inner, max_size=3) | st.dictionaries(word | st.integers() | st.none(), inner, max_size=3)
            ),
            max_leaves=6,
        )

    def spoilt(self, tree: Any, draw: Draw) -> bytes:
        """A file with `tree`, which is changed, in up to three places."""
        for _ in range(draw(st.integers(1, 3))):
            self._spoil(tree, draw)
        return yaml.safe_dump(tree, allow_unicode=True).encode()

    def _spoil(self, tree: Any, draw: Draw) -> None:
        """Drop, rename, replace, move or repeat one value of `tree`."""
        ways = list(places(tree))
        if not ways:
            return
        *way, last = draw(st.sampled_from(ways))
        around = value_at(tree, way)
        change = draw(st.sampled_from(["drop", "rename", "junk", "junk", "word", "wrap", "move"]))
        if change == "drop" or (change == "rename" and isinstance(around, list)):
            del around[last]
        elif change == "rename":
            around[draw(self._words)] = around.pop(last)
        elif change == "move":
            around[last] = json.loads(json.dumps(value_at(tree, draw(st.sampled_from(ways))), default=str))
        elif change == "wrap":
            around[last] = [around[last]]
        else:
            around[last] = draw(self._junk if change == "junk" else self._words)


def spoilt_bytes(content: bytes, draw: Draw) -> bytes:
    """The file with up to four pieces of it replaced."""
    spoilt = bytearray(content)
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(spoilt)))
        spoilt[start : start + draw(st.integers(0, 5))] = draw(PIECES)
    return bytes(spoilt)


def places(tree: Any, way: Way = ()) -> Iterator[Way]:
    """Where each value of `tree` is, but for the root."""
    children = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in children:
        yield (*way, key)
        yield from places(value, (*way, key))


def value_at(tree: Any, way: Sequence[Any]) -> Any:
    """What is there."""
    for step in way:
        tree = tree[step]
    return tree


def assert_one_message(refusal: SpecError, file: str) -> None:
    """It names the file, what was found and what was expected."""
    assert file in refusal.message
    assert "\n" not in refusal.message
    assert refusal.found
    assert refusal.expected
    assert refusal.exit_code == 2
