# SPDX-License-Identifier: Apache-2.0
"""Random damage to a file in its bytes, words, lines or values, and the refusal that it may cause."""

import datetime
import json
import math
import random
from collections.abc import Iterator, Sequence
from copy import deepcopy
from typing import Any

import yaml

from roundabout.core.errors import RoundaboutError
from roundabout.spec import SpecError

MAX_BYTES = 20_000
ODD_VALUES: tuple[Any, ...] = (
    None, True, 0, 1, -1, 2**64, 10**30, 0.5, 1e300, math.nan, math.inf, "", "x", "\0", "ü", "\u2028\ufeff", "NaN",
    "1e999", b"\xff", datetime.date(2020, 1, 1), [], {}, [None], {None: 1}, {1: [True]}, [[]],
)  # fmt: skip
_WORDS = (
    r"\n|\t| |: |- |? |# |&a |*a |!!set |!x |{|}|[|]|<<: |>-\n|---\n|...\n|%YAML 9\n|'|\"|\\|~|null|true|-1|1e999|.inf|"
    r"NaN|1_000|1,5|0x8|#DIV/0!|2023-13-15 02:19|7/5/2023 2:19|{{ x }}|,|;|="
)
ODD_BYTES = (
    b"", b"|\n", b"\0", b"\xff", b"\xc3", b"\x80" * 20, "\u2028\ufeff\u0668".encode(), b"9" * 5000, b"[" * 100_000,
    *(word.encode().decode("unicode_escape").encode() for word in _WORDS.split("|")),
)  # fmt: skip


def damage(
    content: bytes, rng: random.Random, *, form: str = "", words: Sequence[str] = (), others: Sequence[bytes] = ()
) -> bytes:
    """Return the file with one to five changes.

    `form` is `json` or `yaml` for a file that is a tree: then half of the results have changed values. `words` are
    names that the tree may contain, and `others` are files from which pieces are taken.
    """
    tree = _parse(content, form) if rng.random() < 0.5 else None
    if tree is not None:
        for _ in range(rng.randint(1, 3)):
            _change_value(tree, rng, words)
        content = _dump(tree, form)
        if rng.random() < 0.8:
            return content
    for _ in range(rng.randint(1, 5)):
        content = rng.choice(_BYTE_CHANGES)(content, rng, [*others, content])
    return content[: max(MAX_BYTES, len(ODD_BYTES[8]) + 1)]


def _parse(content: bytes, form: str) -> Any:
    try:
        return json.loads(content) if form == "json" else yaml.safe_load(content) if form == "yaml" else None
    except (ValueError, yaml.YAMLError):
        return None


def _dump(tree: Any, form: str) -> bytes:
    if form == "json":
        return json.dumps(tree, default=str, skipkeys=True, indent=1).encode()
    return yaml.safe_dump(tree, allow_unicode=True).encode()


def _change_value(tree: Any, rng: random.Random, words: Sequence[str]) -> None:
    """Drop, rename, replace, wrap or move one value."""
    places = list(paths(tree))
    if not places:
        return
    *way, last = rng.choice(places)
    around = _value_at(tree, way)
    names = words or ("", "x")
    change = rng.choice(("drop", "rename", "odd", "odd", "word", "wrap", "move"))
    if change == "drop" or (change == "rename" and isinstance(around, list)):
        del around[last]
    elif change == "rename":
        around[rng.choice(names)] = around.pop(last)
    elif change == "wrap":
        around[last] = rng.choice(([around[last]], {rng.choice(names): around[last]}))
    elif change == "move":
        around[last] = deepcopy(_value_at(tree, rng.choice(places)))
    else:
        around[last] = deepcopy(rng.choice(ODD_VALUES)) if change == "odd" else rng.choice(names)


def paths(tree: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Return the way to each value of `tree`, except the root."""
    children = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in children:
        yield (*way, key)
        yield from paths(value, (*way, key))


def _value_at(tree: Any, way: Sequence[Any]) -> Any:
    for step in way:
        tree = tree[step]
    return tree


def _replace_bytes(content: bytes, rng: random.Random, _others: Sequence[bytes]) -> bytes:
    at = rng.randrange(len(content) + 1)
    piece = rng.choice(ODD_BYTES) if rng.random() < 0.7 else rng.randbytes(rng.randint(1, 4))
    return content[:at] + piece + content[at + rng.randrange(rng.choice((1, 4, 40))) :]


def _replace_cell(content: bytes, rng: random.Random, _others: Sequence[bytes]) -> bytes:
    """Replace the text between two separators of a table, a list or a mapping."""
    edges = [at for at, each in enumerate(content) if each in b',"\n: ']
    if len(edges) < 2:
        return content
    begin = rng.randrange(len(edges) - 1)
    return content[: edges[begin] + 1] + rng.choice(ODD_BYTES) + content[edges[begin + 1] :]


def _change_line(content: bytes, rng: random.Random, _others: Sequence[bytes]) -> bytes:
    """Drop, repeat, swap, indent or outdent a line."""
    lines = content.splitlines(keepends=True) or [b""]
    at, to = rng.randrange(len(lines)), rng.randrange(len(lines))
    change = rng.choice(("drop", "repeat", "swap", "indent", "outdent"))
    if change == "drop":
        del lines[at]
    elif change == "repeat":
        lines.insert(to, lines[at])
    elif change == "swap":
        lines[at], lines[to] = lines[to], lines[at]
    else:
        lines[at] = b"  " + lines[at] if change == "indent" else lines[at].removeprefix(b"  ")
    return b"".join(lines)


def _insert_piece(content: bytes, rng: random.Random, others: Sequence[bytes]) -> bytes:
    at = rng.randrange(len(content) + 1)
    return content[:at] + rng.choice(others)[rng.randrange(200) :][: rng.randrange(200)] + content[at:]


def _cut(content: bytes, rng: random.Random, _others: Sequence[bytes]) -> bytes:
    return content[: rng.randrange(len(content) + 1)]


_BYTE_CHANGES = (_replace_bytes, _replace_bytes, _replace_cell, _replace_cell, _change_line, _insert_piece, _cut)


def assert_one_message(refusal: RoundaboutError, path: str) -> None:
    """Check that a refusal names the path in one line, and says what was found and what is expected."""
    assert path in refusal.message
    assert "\n" not in refusal.message
    assert len(refusal.message) < 2000
    assert refusal.exit_code in (1, 2)
    if isinstance(refusal, SpecError):
        assert refusal.found
        assert refusal.expected
        assert refusal.exit_code == 2
