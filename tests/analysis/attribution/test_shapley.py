# SPDX-License-Identifier: Apache-2.0
"""Shapley values, against games with known ones."""

import random

import pytest

from analysis.statistics.shapley import MAX_EXACT, shapley_values

pytestmark = pytest.mark.unit


def test_glove_game_has_the_published_values():
    """One left and two right gloves, worth 1 a pair: 2/3, 1/6 and 1/6 (Osborne and Rubinstein, 1994, section 14.4)."""
    found = shapley_values(["l", "r1", "r2"], lambda have: float("l" in have and len(have) > 1))
    assert found == pytest.approx({"l": 2 / 3, "r1": 1 / 6, "r2": 1 / 6})


@pytest.mark.parametrize("count", [1, 2, MAX_EXACT, MAX_EXACT + 3])
def test_players_of_an_additive_game_get_what_they_add(count):
    worth = {f"p{place}": 1.5**place for place in range(count)}
    assert shapley_values([*worth], lambda have: 7 + sum(worth[each] for each in have)) == pytest.approx(worth)


@pytest.mark.parametrize("count", [3, MAX_EXACT, MAX_EXACT + 2])
def test_values_sum_to_the_whole(count):
    values: dict[frozenset[str], float] = {}

    def value(have: frozenset[str]) -> float:
        return values.setdefault(have, random.Random(str(sorted(have))).random())

    players = [f"p{place}" for place in range(count)]
    found = shapley_values(players, value)
    assert sum(found.values()) == pytest.approx(value(frozenset(players)) - value(frozenset()))


def test_drawn_orders_come_close_to_all_orders():
    """The value is the square of the sum of sizes, of which a player's share is its size times the whole sum."""
    sizes = {f"p{place}": 1.0 + place for place in range(MAX_EXACT + 2)}
    whole = sum(sizes.values())
    found = shapley_values([*sizes], lambda have: sum(sizes[each] for each in have) ** 2)
    assert found == pytest.approx({name: size * whole for name, size in sizes.items()}, rel=0.02)


def test_a_player_that_adds_nothing_gets_nothing():
    assert shapley_values(["a", "idle"], lambda have: 3.0 * ("a" in have)) == {"a": 3.0, "idle": 0.0}
