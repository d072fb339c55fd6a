# SPDX-License-Identifier: Apache-2.0
"""The laws of the merge rule."""

import copy
from typing import Any

import pytest
from hypothesis import given, strategies as st

from roundabout.spec.assembly.merge import merge

pytestmark = pytest.mark.unit

KEYS = st.sampled_from(["name", "a", "b", "c"])
SCALARS = st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from(["x", "y"])
TREES = st.recursive(
    SCALARS | st.lists(SCALARS, max_size=2), lambda t: st.dictionaries(KEYS, t, max_size=3), max_leaves=8
)
BLOCKS = st.dictionaries(KEYS, TREES, max_size=4)


def without_nulls(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {key: without_nulls(value) for key, value in tree.items() if value is not None}
    return tree


def renames(base: dict[str, Any], overlay: dict[str, Any]) -> bool:
    names = (base.get("name"), overlay.get("name"))
    return all(isinstance(name, str) for name in names) and names[0] != names[1]


@given(BLOCKS)
def test_an_empty_overlay_changes_nothing(base: dict[str, Any]) -> None:
    assert merge(base, {}) == base


@given(BLOCKS)
def test_an_overlay_on_an_empty_mapping_is_itself_without_nulls(overlay: dict[str, Any]) -> None:
    assert merge({}, overlay) == without_nulls(overlay)


@given(BLOCKS, BLOCKS)
def test_merging_twice_is_merging_once(base: dict[str, Any], overlay: dict[str, Any]) -> None:
    once = merge(base, overlay)
    assert merge(once, overlay) == once


@given(BLOCKS, BLOCKS)
def test_neither_side_is_changed(base: dict[str, Any], overlay: dict[str, Any]) -> None:
    before = copy.deepcopy((base, overlay))
    merge(base, overlay)
    assert (base, overlay) == before


@given(BLOCKS, BLOCKS)
def test_a_block_whose_name_changes_is_replaced_whole(base: dict[str, Any], overlay: dict[str, Any]) -> None:
    base, overlay = {**base, "name": "x"}, {**overlay, "name": "y"}
    assert merge(base, overlay) == without_nulls(overlay)


@given(BLOCKS, BLOCKS)
def test_each_key_follows_the_overlay_and_else_the_base(base: dict[str, Any], overlay: dict[str, Any]) -> None:
    merged = merge(base, overlay)
    under = {} if renames(base, overlay) else base
    assert set(merged) == {
        key for key in {*under, *overlay} if overlay.get(key, under.get(key)) is not None or key not in overlay
    }
    for key, value in merged.items():
        if key not in overlay:
            assert value == under[key]
        elif isinstance(overlay[key], dict):
            assert value == merge(under[key] if isinstance(under.get(key), dict) else {}, overlay[key])
        else:
            assert value == overlay[key]


@given(BLOCKS, st.dictionaries(st.just("a"), TREES), st.dictionaries(st.just("b"), TREES))
def test_overlays_on_different_keys_commute(base: dict[str, Any], one: dict[str, Any], other: dict[str, Any]) -> None:
    assert merge(merge(base, one), other) == merge(merge(base, other), one)


def test_lists_replace() -> None:
    assert merge({"workers": ["s0", "s2"]}, {"workers": ["s1"]}) == {"workers": ["s1"]}


def test_the_design_example() -> None:
    base = {"j1": {"profile": "vgg19", "transport": {"name": "dcqcn", "T_us": 125, "g": 0.1}}}
    assert merge(base, {"j1": {"transport": {"T_us": 100, "g": None}}}) == {
        "j1": {"profile": "vgg19", "transport": {"name": "dcqcn", "T_us": 100}}
    }
    assert merge(base, {"j1": {"transport": {"name": "cubic"}}}) == {
        "j1": {"profile": "vgg19", "transport": {"name": "cubic"}}
    }
