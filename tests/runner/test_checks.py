# SPDX-License-Identifier: Apache-2.0
"""What of a machine's trouble makes a trial invalid, from tables made up."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from roundabout.runner.trial import checks

END_NS = 10_000_000_000
PERIOD_NS = 10_000_000
COUNT = END_NS // PERIOD_NS + 1
RATE = 537_500.0  # bytes in a period at 43 Gbit/s, divided by 100


def cpu(steal, host="controller"):
    count = len(steal)
    at = np.arange(1, count + 1) * 1_000_000_000
    share = {"busy_share": [0.5] * count, "steal_share": steal, "softnet_dropped": [0] * count}
    return pa.table({"host": [host] * count, "controller_ns": at, "window_ms": [1000.0] * count, **share})


def port(sent, waiting, at_ns=None, towards="tor1"):
    at = np.arange(len(sent)) * PERIOD_NS if at_ns is None else at_ns
    where = {"host": ["tor0"] * len(sent), "link": ["L1"] * len(sent), "towards": [towards] * len(sent)}
    counts = {"tx_bytes": np.cumsum(sent).astype(np.int64), "backlog_bytes": np.asarray(waiting) * 4344}
    return pa.table({**where, "host_ns": at, "controller_ns": at, **counts})


def steady(standing=0.0, waiting=0.5, seed=0):
    """A port that has packets waiting through a share of all periods, and sends nothing through a share of those."""
    generator = np.random.default_rng(seed)
    has = np.arange(COUNT) < waiting * COUNT
    moves = generator.permutation(has.sum()) >= standing * has.sum()
    sent = np.where(has, RATE, generator.uniform(0, RATE, COUNT))
    sent[: has.sum()] = RATE * moves * generator.uniform(0.97, 1.03, has.sum())
    return sent, has


def measured(queue=None, steal=(0.0,) * 10):
    late = {"job": ["j1"] * 10, "iteration": range(10), "late_ms": [0.1] * 10, "iteration_ms": [300.0] * 10}
    tables = {
        "cpu": cpu(list(steal)),
        "iterations": pa.table(late),
        "queue": port(*steady()) if queue is None else queue,
    }
    return checks.strain(tables, 0, END_NS)


def test_a_second_that_was_stolen_is_shown_and_spoils_nothing():
    found = measured(steal=[0.0] * 9 + [0.2])
    assert found["steal_max"] == pytest.approx(0.2)
    assert found["steal_mean"] == pytest.approx(0.02)
    assert found["steal_mean"] < checks.STOLEN_MAX


def test_what_was_stolen_counts_on_the_host_with_most():
    quiet, robbed = cpu([0.0] * 10, "s0"), cpu([0.06] * 10, "s1")
    late = pa.table({"job": ["j1"], "iteration": [0], "late_ms": [0.0]})
    tables = {"cpu": pa.concat_tables([quiet, robbed]), "iterations": late, "queue": port(*steady())}
    assert checks.strain(tables, 0, END_NS)["steal_mean"] == pytest.approx(0.06)


@given(st.floats(0.0, 0.3), st.floats(0.2, 1.0), st.integers(0, 100))
def test_a_link_that_stood_still_is_known_by_what_it_did_not_send(standing, waiting, seed):
    found = measured(port(*steady(standing, waiting, seed)))["stalled_share"]
    assert found == pytest.approx(standing * waiting, abs=0.01)


def test_a_link_without_waiting_packets_may_be_as_slow_as_it_likes():
    sent, _ = steady()
    assert measured(port(sent, np.zeros(COUNT, dtype=bool)))["stalled_share"] == 0


def test_a_pause_of_the_whole_machine_in_which_nobody_sampled_counts():
    at = np.arange(COUNT - 30) * PERIOD_NS
    at[200:] += 30 * PERIOD_NS
    found = measured(port([RATE] * len(at), [True] * len(at), at))["stalled_share"]
    assert found == pytest.approx(0.03, abs=0.001)


def test_the_worst_of_a_links_directions_counts():
    other = port(*steady(0.1, 1.0), towards="tor0")
    assert measured(pa.concat_tables([port(*steady()), other]))["stalled_share"] == pytest.approx(0.1, abs=0.01)


def test_what_nobody_sampled_is_not_known():
    assert measured(port([], []))["stalled_share"] is None
