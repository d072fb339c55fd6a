# SPDX-License-Identifier: Apache-2.0
"""Iterations timed by marks that a GPU passes later, with a stand-in for its events: no GPU was here."""

import time

import numpy as np
import pytest
from hypothesis import given, strategies as st

from tests.trainers.host import load

pytestmark = pytest.mark.lab

times = load("training_times")


class Queue:
    """A GPU's: `at_ms` is how far it has come, `ends_ms` where what is queued ends. Events are marks in it."""

    def __init__(self):
        self.at_ms, self.ends_ms, self.waits = 0.0, 0.0, 0

    def event(self):
        return Event(self)


class Event:
    def __init__(self, queue):
        self.queue, self.ms = queue, None

    def record(self):
        self.ms = self.queue.ends_ms

    def query(self):
        return self.queue.at_ms >= self.ms

    def synchronize(self):
        self.queue.waits += 1
        self.queue.at_ms = max(self.queue.at_ms, self.ms)

    def elapsed_time(self, later):
        assert self.query() and later.query(), "CUDA raises for what has not come to pass"
        return float(np.float32(later.ms - self.ms))


@given(lasting_ms=st.lists(st.tuples(st.floats(0.1, 500), st.floats(0.1, 500)), min_size=1, max_size=200))
def test_gpu_steps_are_reported_in_order_without_waiting_for_them(lasting_ms):
    queue, reported, ends_ms = Queue(), [], []
    clock = times.DeviceClock(queue.event)
    begin_ns = clock.host_ns(clock.mark())
    steps = times.Steps(clock, lambda ready_ns, end_ns, number: reported.append((number, ready_ns, end_ns)))
    for number, (computing_ms, sending_ms) in enumerate(lasting_ms):
        queue.ends_ms += computing_ms
        ready = clock.mark()
        queue.ends_ms += sending_ms
        steps.ended(ready, clock.mark(), number=number)
        ends_ms.append(queue.ends_ms)
    assert reported == []
    assert queue.waits == 1
    queue.at_ms = queue.ends_ms / 2
    steps.poll()
    assert [number for number, *_ in reported] == [
        number for number, end_ms in enumerate(ends_ms) if end_ms <= queue.at_ms
    ]
    steps.finish()
    assert [number for number, *_ in reported] == list(range(len(lasting_ms)))
    found_ms = [(at_ns - begin_ns) / 1e6 for _, ready_ns, end_ns in reported for at_ns in (ready_ns, end_ns)]
    assert found_ms == pytest.approx(list(np.cumsum(np.ravel(lasting_ms))), abs=1e-4 * len(lasting_ms))


def test_far_marks_are_distinguished_from_near_ones():
    """A distance of an hour is a 32-bit float of 0.25 ms; what is reported is better."""
    queue, reported = Queue(), []
    clock = times.DeviceClock(queue.event)
    steps = times.Steps(clock, lambda _ready_ns, end_ns: reported.append(end_ns))
    for _ in range(36_000):
        queue.ends_ms += 100.03
        queue.at_ms = queue.ends_ms
        mark = clock.mark()
        steps.ended(mark, mark)
    assert (reported[-1] - reported[-2]) / 1e6 == pytest.approx(100.03, abs=1e-4)


def test_on_a_cpu_the_same_steps_are_reported_at_once():
    clock, reported = times.HostClock(), []
    steps = times.Steps(clock, lambda ready_ns, end_ns, **fields: reported.append((ready_ns, end_ns, fields)))
    before_ns = time.monotonic_ns()
    ready, end = clock.mark(), clock.mark()
    steps.ended(ready, end, number=0)
    assert reported == [(ready, end, {"number": 0})]
    assert before_ns <= ready <= end <= time.monotonic_ns()
    steps.finish()
    assert len(reported) == 1


def test_only_the_first_communication_is_held():
    pace = times.Pace(times.HostClock(), 20_000_000)
    begin_ns = time.monotonic_ns()
    pace.begin(begin_ns)
    assert pace.hold("gradient") == "gradient"
    first = pace.ready
    assert first - begin_ns >= 20_000_000
    pace.hold("another")
    assert pace.ready == first


def test_paced_computing_starts_after_the_gpus_previous_iteration():
    """Let the host be far ahead of a GPU that still sends: computing by the host's clock would take no time."""
    queue = Queue()
    clock = times.DeviceClock(queue.event)
    pace = times.Pace(clock, 20_000_000)
    queue.ends_ms += 30
    pace.begin(time.monotonic_ns(), after=(sent := clock.mark()))
    pace.hold(None)
    assert queue.at_ms >= 30, "computing was counted while the GPU was still sending"
    assert time.monotonic_ns() >= clock.host_ns(sent) + 20_000_000
