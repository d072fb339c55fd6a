# SPDX-License-Identifier: Apache-2.0
"""The command line that benchmarks share."""

import sys

import pytest

from benchmarks.shared.command import read_options

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(("words", "rounds", "seconds"), [
    ([], 10, 15.0),
    (["--short"], 1, 0.5),
    (["--short", "--rounds", "3"], 3, 0.5),
    (["--rounds", "10", "--short"], 10, 0.5),
])  # fmt: skip
def test_given_options_win_over_those_of_the_short_form(
    monkeypatch: pytest.MonkeyPatch, words: list[str], rounds: int, seconds: float
) -> None:
    monkeypatch.setattr(sys, "argv", ["benchmark", *words])
    options = read_options("about", {"rounds": 1, "seconds": 0.5}, rounds=10, seconds=15.0)
    assert (options.rounds, options.seconds) == (rounds, seconds)
