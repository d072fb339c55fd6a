# SPDX-License-Identifier: Apache-2.0
"""Injection rates, by moving average and by windows, against what was injected."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from analysis.reading.cross_traffic.injection import flows_of_packets, moving_average_gbps
from roundabout.store import schemas

pytestmark = pytest.mark.unit

MS = 1_000_000


def steady(count: int, gap_ns: int = 1000, payload: int = 1250) -> tuple[np.ndarray, np.ndarray]:
    """10 Gbit/s, unless given otherwise."""
    return np.arange(count, dtype=np.int64) * gap_ns, np.full(count, payload, dtype=np.int64)


@pytest.mark.parametrize("width", [1, 18, 50])
def test_a_steady_flow_has_one_rate_whatever_the_width(width: int) -> None:
    at_ns, payload = steady(200)
    when, rate = moving_average_gbps(at_ns, payload, width)
    assert rate == pytest.approx(10)
    assert when.tolist() == at_ns[width:].tolist()


def test_a_pause_lowers_as_many_values_as_the_width() -> None:
    at_ns, payload = steady(200)
    at_ns[100:] += MS
    _, rate = moving_average_gbps(at_ns, payload, 30)
    assert np.count_nonzero(rate < 9.9) == 30
    assert rate[69 + 1] == pytest.approx(30 * 1250 * 8 / (30 * 1000 + MS))


def test_packets_of_one_stamp_have_no_rate_of_their_own() -> None:
    at_ns, payload = np.array([0, 1000, 1000, 2000]), np.full(4, 1250)
    assert moving_average_gbps(at_ns, payload, 1)[1].tolist() == pytest.approx([10, np.nan, 10], nan_ok=True)
    assert moving_average_gbps(at_ns, payload, 2)[1].tolist() == pytest.approx([20, 20])


def test_too_few_packets_have_no_average() -> None:
    assert all(len(each) == 0 for each in moving_average_gbps(*steady(18), 18))


def test_a_width_of_0_packets_is_refused() -> None:
    with pytest.raises(ValueError, match="width is 0, expected at least 1 packet"):
        moving_average_gbps(*steady(5), 0)


@given(st.lists(st.integers(1, 10**6), min_size=20, max_size=100), st.integers(1, 19))
def test_the_average_of_all_widths_is_payload_over_time(gaps: list[int], width: int) -> None:
    at_ns = np.cumsum(gaps)
    payload = np.arange(1, len(gaps) + 1)
    _, rate = moving_average_gbps(at_ns, payload, width)
    expected = [
        payload[last - width + 1 : last + 1].sum() * 8 / (at_ns[last] - at_ns[last - width])
        for last in range(width, len(gaps))
    ]
    assert rate.tolist() == pytest.approx(expected)


def test_only_outbound_packets_with_payload_are_injected() -> None:
    rows = [
        ("s0", "out", 0, 1000, 30),
        ("s0", "out", 0, 0, 20),  # an acknowledgement
        ("s0", "in", 1, 900, 25),
        ("s0", None, 2, 900, 26),
        ("s0", "out", 0, 500, 10),
        ("s1", "out", 0, 9000, 11),
    ]
    columns = {column.name: [None] * len(rows) for column in schemas.columns("packets")}
    names = ("host", "direction", "flow", "payload_bytes", "controller_ns")
    columns |= dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)) | {"trial": ["k"] * len(rows)}
    columns["destination"] = ["10.0.0.9"] * len(rows)
    table = pa.table(columns, schema=schemas.schema("packets"))
    found = flows_of_packets(table)
    assert [(each.host, each.at_ns.tolist(), each.payload_bytes.tolist()) for each in found] == [
        ("s1", [11], [9000]),
        ("s0", [10, 30], [500, 1000]),
    ]
