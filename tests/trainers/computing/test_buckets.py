# SPDX-License-Identifier: Apache-2.0
"""Buckets of gradients: which gradients they hold, and when a backward pass makes them ready."""

import itertools

import pytest
from hypothesis import given, strategies as st

from tests.trainers.host import COMPUTING, load

pytestmark = pytest.mark.unit

computing_buckets = load("computing_buckets", COMPUTING)
MIB = 2**20


class Parameter:
    """Stands for a parameter of PyTorch, of `size` bytes."""

    requires_grad = True

    def __init__(self, size: int) -> None:
        self.size = size

    def numel(self) -> int:
        return self.size // 4

    def element_size(self) -> int:
        return 4

    def register_post_accumulate_grad_hook(self, hook):
        self.accumulate = lambda: hook(self)
        return self

    def remove(self):
        self.accumulate = None


@pytest.fixture
def parameters() -> list[Parameter]:
    return [Parameter(size * MIB) for size in (2, 20, 10, 1)]


@pytest.fixture
def clock(parameters):
    instants = itertools.count()
    return computing_buckets.BucketClock(parameters, lambda: next(instants))


def backward(parameters: list[Parameter], order: tuple[int, ...]) -> None:
    for index in order:
        parameters[index].accumulate()


@given(sizes=st.lists(st.integers(1, 60 * MIB), max_size=40))
def test_a_bucket_is_closed_by_the_gradient_that_reaches_its_limit(sizes):
    buckets = computing_buckets.assign_buckets(sizes)
    assert [index for bucket in buckets for index in bucket] == list(range(len(sizes)))
    for place, bucket in enumerate(buckets):
        limit = 25 * MIB if place else MIB
        assert sum(sizes[index] for index in bucket[:-1]) < limit
        assert sum(sizes[index] for index in bucket) >= limit or place == len(buckets) - 1


def test_buckets_follow_the_order_of_the_first_backward_pass(parameters, clock):
    backward(parameters, (3, 2, 1, 0))
    clock.make_buckets()
    assert clock.buckets == [[3], [2, 1], [0]]
    assert clock.sizes() == [MIB, 30 * MIB, 2 * MIB]


def test_a_bucket_is_ready_with_its_last_gradient(parameters, clock):
    backward(parameters, (3, 2, 1, 0))
    clock.make_buckets()
    clock.begin()
    backward(parameters, (1, 3))
    assert clock.marks == [0, None, None]
    backward(parameters, (2, 0))
    assert clock.marks == [0, 1, 2]


def test_each_backward_pass_has_its_own_marks(parameters, clock):
    backward(parameters, (3, 2, 1, 0))
    clock.make_buckets()
    clock.begin()
    backward(parameters, (3, 2, 1, 0))
    first = clock.marks
    clock.begin()
    backward(parameters, (3, 2, 1, 0))
    assert (first, clock.marks) == ([0, 1, 2], [3, 4, 5])


@pytest.mark.parametrize("order", [(3, 2, 1), (3, 2, 1, 0, 0)])
def test_a_parameter_without_a_gradient_or_with_two_is_refused(parameters, clock, order):
    backward(parameters, order)
    with pytest.raises(ValueError, match="expected one of each of 4 parameters"):
        clock.make_buckets()


def test_closing_removes_the_hooks_that_would_keep_parameters_alive(parameters, clock):
    clock.close()
    assert [each.accumulate for each in parameters] == [None] * 4
