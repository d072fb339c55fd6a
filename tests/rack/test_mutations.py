# SPDX-License-Identifier: Apache-2.0
"""Thousands of spoilt inventories: each is read, or refused with one message that names the file."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from hypothesis import HealthCheck, given, settings, strategies as st

from roundabout.spec import SpecError
from roundabout.testbeds.rack.inventory import read_inventory
from roundabout.testbeds.rack.variables import playbook_variables

WORDS = st.sampled_from(
    ["", "all", "vars", "hosts", "s0", "s9", "tor0", "L1", "nic", "link", "inbox", "T_us", "-oProxyCommand=x",
     "{{ x }}", "10.10.0.1/24", "0.0.0.0/0", "fe80::1/64", "yes", "1", "~", "a/b", "ü", "\0", "ansible_become_password"]
)  # fmt: skip
JUNK = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.dates(), st.binary(), st.text(), WORDS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS | st.integers() | st.none(), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip
UNHURRIED = settings(max_examples=1000, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
KEPT = ("s0", "s2", "L1")  # a small inventory has all that a large one has


def small(inventory_file: Path) -> dict[str, Any]:
    """Two servers and two switches of the inventory."""
    tree: dict[str, Any] = yaml.safe_load(inventory_file.read_bytes())
    groups = tree["all"]["children"]
    groups["rack"]["hosts"] = {name: each for name, each in groups["rack"]["hosts"].items() if name in KEPT}
    for switch in groups["switches"]["hosts"].values():
        switch["ports"] = {link: port for link, port in switch["ports"].items() if link in KEPT}
    return tree


def places(tree: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where each value of `tree` is, but for the root."""
    for key, value in tree.items() if isinstance(tree, dict) else ():
        yield (*way, key)
        yield from places(value, (*way, key))


def spoil(tree: Any, draw: Any) -> None:
    """Drop, rename, replace or move one value of `tree`."""
    ways = list(places(tree))
    if not ways:
        return
    *way, last = draw(st.sampled_from(ways))
    around = value_at(tree, way)
    change = draw(st.sampled_from(["drop", "rename", "junk", "word", "wrap", "move"]))
    if change == "drop":
        del around[last]
    elif change == "rename":
        around[draw(WORDS)] = around.pop(last)
    elif change == "move":
        around[last] = json.loads(json.dumps(value_at(tree, draw(st.sampled_from(ways))), default=str))
    else:
        around[last] = draw(JUNK) if change == "junk" else draw(WORDS) if change == "word" else [around[last]]


def value_at(tree: Any, way: Any) -> Any:
    for step in way:
        tree = tree[step]
    return tree


def check(path: Path, content: bytes) -> None:
    """Fails on anything but an inventory that playbooks can use, or one message."""
    path.write_bytes(content)
    refusal = None
    try:
        json.dumps(playbook_variables(read_inventory(path)), allow_nan=False)
    except SpecError as error:
        refusal = error
    if refusal:
        assert refusal.message.startswith(str(path))
        assert "\n" not in refusal.message
        assert refusal.found and refusal.expected
        assert refusal.exit_code == 2


@UNHURRIED
@given(data=st.data())
def test_spoilt_values(inventory_file: Path, data: st.DataObject) -> None:
    path = inventory_file.with_name("spoilt")
    tree = small(inventory_file)
    for _ in range(data.draw(st.integers(1, 3))):
        spoil(tree, data.draw)
    check(path, yaml.safe_dump(tree, allow_unicode=True).encode())


@UNHURRIED
@given(data=st.data())
def test_spoilt_bytes(inventory_file: Path, data: st.DataObject) -> None:
    content = bytearray(yaml.safe_dump(small(inventory_file)).encode())
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(content)))
        content[start : start + data.draw(st.integers(0, 5))] = data.draw(
            st.binary(max_size=4) | st.sampled_from([b"\n", b": ", b"- ", b"&a ", b"*a", b"!!set ", b"\t", b"{", b"}"])
        )
    check(inventory_file.with_name("spoilt"), bytes(content))
