# SPDX-License-Identifier: Apache-2.0
"""Where in its iteration a job is: C beside Python where bytes and gap are given, and what is learned where not."""

from collections.abc import Iterator
from ctypes import byref, c_uint64 as u64
from dataclasses import dataclass

import pytest
from hypothesis import assume, given, strategies as st

from tests.algorithms.library import LIBRARY, ONE_Q24, Iteration, MltcpParams

pytestmark = pytest.mark.unit

QUARTER = ONE_Q24 // 4
MIN_GAP_US, PATIENCE = 1000, 4
CLOCKS = st.sampled_from([1, 2**31 - 50_000, 2**32 - 50_000])
"""Where the clock may stand: also where 32 bits of it wrap soon."""


@dataclass
class Job:
    """The state of one after its ACKs."""

    p: MltcpParams
    now_us: int = 1

    def __post_init__(self) -> None:
        self.it = Iteration()

    def ack(self, wait_us: int, size: int) -> None:
        self.now_us += wait_us
        LIBRARY.iteration_receives(byref(self.it), byref(self.p), u64(self.now_us), u64(size))

    @property
    def ratio(self) -> float:
        return LIBRARY.iteration_ratio(byref(self.it), byref(self.p)) / ONE_Q24

    def iterate(self, compute_us: int, pauses_us: list[int], size: int) -> Iterator[int]:
        """One iteration: bytes that were acknowledged so far, ACK by ACK."""
        for number, pause_us in enumerate(pauses_us):
            self.ack(compute_us if number == 0 else pause_us, size)
            yield (number + 1) * size


ACKS = st.lists(st.tuples(st.integers(0, 30_000), st.integers(1, 10**6)), max_size=100)


@given(total=st.integers(1, 10**7), gap_us=st.integers(1, 20_000), clock=CLOCKS, acks=ACKS)
def test_given_bytes_and_gap_are_the_paper(total: int, gap_us: int, clock: int, acks: list[tuple[int, int]]) -> None:
    """bytes_ratio = min(1, sent / total), anew after a silence as long as the gap."""
    job, sent, ended = Job(MltcpParams(iteration_bytes=total, gap_us=gap_us), clock), 0, 0
    for number, (wait_us, size) in enumerate(acks):
        if number and wait_us >= gap_us:
            sent, ended = 0, ended + 1
        sent += size
        job.ack(wait_us, size)
        assert (job.it.sent, job.it.ended) == (sent, ended)
        assert job.ratio == pytest.approx(min(1, sent / total), abs=1e-6)


@given(clock=CLOCKS, acks=ACKS, behind=st.lists(st.integers(0, 900), min_size=100, max_size=100))
def test_sockets_whose_clocks_are_behind_change_nothing(
    clock: int, acks: list[tuple[int, int]], behind: list[int]
) -> None:
    """Two sockets of a job get ACKs in turn; the second one's clock is read a little late."""
    p = MltcpParams(iteration_bytes=10**6, gap_us=2000)
    one, two = Job(p, clock + 1000), Job(p, clock + 1000)
    for (wait_us, size), late_us in zip(acks, behind, strict=False):
        one.ack(wait_us, size)
        two.ack(wait_us, size)
        one.ack(0, size)
        two.now_us -= late_us
        two.ack(0, size)
        two.now_us += late_us
        assert (one.it.sent, one.it.ended, one.it.last_ack_us) == (two.it.sent, two.it.ended, two.it.last_ack_us)


@given(
    clock=CLOCKS,
    compute_us=st.integers(20_000, 500_000),
    pauses=st.lists(st.floats(0, 0.1), min_size=2, max_size=30),
    size=st.integers(1, 10**6),
    jitter=st.lists(st.floats(0.9, 1.1), min_size=12, max_size=12),
)
def test_a_periodic_jobs_bytes_and_silence_are_learned(
    clock: int, compute_us: int, pauses: list[float], size: int, jitter: list[float]
) -> None:
    pauses_us = [int(pause * compute_us) for pause in pauses]
    assume(sum(pauses_us) < 3 * compute_us)
    job, total = Job(MltcpParams(learn_q24=QUARTER), clock), size * len(pauses)
    for number, factor in enumerate(jitter):
        for sent in job.iterate(int(compute_us * factor), pauses_us, size):
            if number > 3:  # two to believe in the silence, one to count its bytes
                assert job.it.learned_bytes == total
                assert job.ratio == pytest.approx(sent / total, abs=1e-6)
    assert job.it.silence_us == pytest.approx(compute_us, rel=0.11)


@given(
    before_us=st.lists(st.integers(100, 5_000_000), min_size=1, max_size=10),
    compute_us=st.integers(50_000, 300_000),
    acks=st.integers(5, 40),
)
def test_silences_before_training_are_forgotten(before_us: list[int], compute_us: int, acks: int) -> None:
    """Some small messages, seconds apart, and then training: what it learned does not keep the job from learning."""
    job = Job(MltcpParams(learn_q24=QUARTER))
    for wait_us in before_us:
        job.ack(wait_us, 200)
    pauses_us, begun_us = [compute_us // 20] * acks, job.now_us
    while job.now_us < begun_us + 2 * PATIENCE * max(before_us) + 120 * compute_us:
        list(job.iterate(compute_us, pauses_us, 10_000))
    assert job.it.learned_bytes == pytest.approx(10_000 * acks, rel=0.01)
    assert job.it.silence_us == pytest.approx(compute_us, rel=0.3)


@given(pauses_us=st.lists(st.integers(0, 60_000), min_size=2, max_size=40), after=st.integers(0, 60_000_000))
def test_silences_between_bursts_do_not_hide_an_iterations_end(pauses_us: list[int], after: int) -> None:
    job, compute_us = Job(MltcpParams(learn_q24=QUARTER)), 600_000
    job.ack(after, 200)
    for _ in range(6):
        list(job.iterate(compute_us, pauses_us, 1000))
    assert job.it.learned_bytes == 1000 * len(pauses_us)
    assert job.it.silence_us == compute_us


@given(pause_us=st.integers(250_000, 3_600_000_000), jitter=st.lists(st.floats(0.9, 1.1), min_size=5, max_size=5))
def test_a_pause_in_training_costs_nothing(pause_us: int, jitter: list[float]) -> None:
    """While a model is checked or stored a job is silent for as long as it pleases."""
    job, pauses_us = Job(MltcpParams(learn_q24=QUARTER)), [2000] * 20
    for _ in range(6):
        list(job.iterate(100_000, pauses_us, 1000))
    for compute_us in [pause_us, *(int(100_000 * factor) for factor in jitter)]:
        for sent in job.iterate(compute_us, pauses_us, 1000):
            assert job.ratio == pytest.approx(sent / 20_000, abs=1e-6)
    assert job.it.silence_us == pytest.approx(100_000, rel=0.11)


@given(factor=st.floats(0.2, 5), size=st.integers(1000, 10**6))
def test_learned_bytes_follow_a_job_that_changes(factor: float, size: int) -> None:
    job, later = Job(MltcpParams(learn_q24=QUARTER)), max(int(size * factor), 1)
    for each in [size] * 5 + [later] * 40:
        list(job.iterate(100_000, [1000] * 20, each))
    assert job.it.learned_bytes == pytest.approx(20 * later, rel=0.01)


def test_a_job_that_is_never_silent_has_no_iterations() -> None:
    job = Job(MltcpParams(learn_q24=QUARTER))
    for _ in range(10_000):
        job.ack(MIN_GAP_US - 1, 1000)
    assert (job.it.ended, job.it.learned_bytes, job.it.sent) == (0, 0, 10_000_000)
