# SPDX-License-Identifier: Apache-2.0
"""How wide divided networks are, so that they send what a profile says; proofs measure it."""

import pytest
from hypothesis import given, strategies as st

from tests.trainers.host import load

pytestmark = pytest.mark.unit

sizes = load("training_sizes")


def job(sent: int, count: int) -> dict[str, object]:
    ring = [[rank, (rank + 1) % count, sent] for rank in range(count)]
    return {"workers": [{}] * count, "phases": [{"name": "send", "transfers": ring}]}


@given(sent=st.integers(10**6, 10**9), count=st.integers(2, 24), batch=st.integers(1, 64))
@pytest.mark.parametrize("parallel", ["pipeline", "tensor", "hybrid"])
def test_the_first_worker_sends_the_profiles_bytes(parallel, sent, count, batch):
    if parallel == "hybrid":
        count *= 4
    parts, tensors, copies = sizes.division(parallel, count)
    assert parts * tensors * copies == count
    width = sizes.divided_width(job(sent, count), batch, parts, tensors, copies)
    each = 4 * sizes.numbers_sent(parts, tensors, copies, batch)
    assert width * each == pytest.approx(sent, abs=each / 2 + 1)


def test_two_workers_send_each_others_activations_and_nothing_else():
    assert sizes.numbers_sent(2, 1, 1, batch=16) == 16
    assert sizes.numbers_sent(1, 2, 1, batch=16) == 2 * 16


def test_copies_all_reduce_what_a_worker_has():
    one_block = sizes.FEATURES + 1 + 2 * sizes.NARROW + 1 + sizes.CLASSES
    assert sizes.numbers_sent(1, 1, 2, batch=16) == one_block


@pytest.mark.parametrize("count", [2, 3, 6])
def test_a_hybrid_of_other_than_four_is_refused(count):
    with pytest.raises(ValueError, match=f"found {count} workers, expected a multiple of 4"):
        sizes.division("hybrid", count)


def test_too_few_bytes_for_a_width_are_refused():
    with pytest.raises(ValueError, match="found 9 bytes of the first worker"):
        sizes.divided_width(job(9, 2), 16, 2, 1, 1)
