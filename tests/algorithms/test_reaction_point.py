# SPDX-License-Identifier: Apache-2.0
"""DCQCN's reaction point in C beside one in Python, written from the paper, through anything that a network may do."""

import ctypes
import itertools
import math
from dataclasses import dataclass, field

import pytest
from hypothesis import assume, given, settings, strategies as st

from roundabout.core.paths import ROOT
from roundabout.models.packets.structures import PS_PER_US
from roundabout.models.packets.transports import reaction_plan, transport_values
from roundabout.spec import Transport
from roundabout.spec.transports import registry
from roundabout.spec.transports.sets import find_published, read_set
from tests.algorithms.library import CLOCKS, LIBRARY, ONE_Q24, DcqcnCounters, DcqcnParams, HeldCnps, ReactionPoint

pytestmark = pytest.mark.unit

MAX_BYTE_EVENTS = 128
MAX_CNPS = 8


@dataclass
class Reference:
    """SIGCOMM'15, section 3.1 and Figure 7: exact in time, with rates and alpha as real numbers."""

    p: DcqcnParams
    now: float = 0
    R_C: float = 0
    R_T: float = 0
    alpha: float = 1
    alpha_due: float = 0
    timer_due: float = 0
    since_cnp: float = float("inf")
    held: list[float] = field(default_factory=list)
    is_marked: bool = False
    received_cnps: int = 0
    was_cut: bool = False
    rises: int = 0
    cuts: int = 0
    bytes: int = 0
    timer_stage: int = 0
    byte_stage: int = 0
    increases: dict[str, int] = field(default_factory=lambda: {"fast": 0, "additive": 0, "hyper": 0})

    def __post_init__(self) -> None:
        self.R_C = self.R_T = self.p.R_max
        self.alpha_due, self.timer_due = self.p.alpha_timer_us, self.p.T_us

    @property
    def is_at_line_rate(self) -> bool:
        """Return True if R_C is R_max in whole bytes/s, where no timer runs and the first CNP begins anew."""
        return self.p.R_max - self.R_C < 1

    @property
    def is_almost_at_line_rate(self) -> bool:
        """Return True if rounding may have made C reach R_max already, one increase before this reference."""
        return 1 <= self.p.R_max - self.R_C < 100

    def increase(self) -> None:
        if self.is_at_line_rate:
            return
        stages = (self.timer_stage, self.byte_stage if self.p.byte_counter_bytes else self.timer_stage)
        if max(stages) < self.p.F:
            kind, step = "fast", 0
        elif min(stages) > self.p.F:
            kind, step = "hyper", (min(stages) - self.p.F if self.p.hyper_by_stage else 1) * self.p.R_HAI
        else:
            kind, step = "additive", self.p.R_AI
        self.increases[kind] += 1
        self.R_T = min(self.R_T + step, self.p.R_max)
        self.R_C = (self.R_C + self.R_T) / 2
        self.rises += self.is_at_line_rate

    def wait(self, us: int) -> None:
        """Let time pass until an ACK. CNPs whose delay ends before it, in a silence, act then."""
        if self.held and us > self.p.cnp_delay_us:
            self.run_timers(self.p.cnp_delay_us)
            self.act(self.p.cnp_delay_us)
            us -= self.p.cnp_delay_us
        self.run_timers(us)

    def run_timers(self, us: int) -> None:
        """Equation 2's timer and the increase timer, each at its own times. Neither runs before the first CNP."""
        self.now += us
        self.since_cnp += us
        if not self.was_cut:
            return
        keeps = 1 - self.p.g_q24 / ONE_Q24
        while self.alpha_due <= self.now and self.received_cnps:
            self.alpha = 1 - (1 - self.alpha) * keeps
            self.received_cnps -= 1
            self.alpha_due += self.p.alpha_timer_us
        if self.alpha_due <= self.now:
            periods = (self.now - self.alpha_due) // self.p.alpha_timer_us + 1
            self.alpha *= keeps**periods
            self.alpha_due += periods * self.p.alpha_timer_us
        while self.timer_due <= self.now and not self.is_at_line_rate:
            self.timer_stage += 1
            self.increase()
            self.timer_due += self.p.T_us
        self.timer_due += max((self.now - self.timer_due) // self.p.T_us + 1, 0) * self.p.T_us

    def ack(self, marked: bool, acked_bytes: int, spacing_us: int) -> bool:
        """Receive an ACK, which may echo a mark; CNPs act at the ACK that is likely to be nearest to their time.

        Marks at two ACKs in turn were CNPs all the time between them.
        """
        goes_on, self.is_marked = self.is_marked and marked, marked
        if marked and self.since_cnp >= self.p.cnp_gap_us:
            gap = self.p.cnp_gap_us
            cnps = int(self.since_cnp // gap) if goes_on and gap else 1
            if goes_on and gap and cnps <= MAX_CNPS:
                last = self.now - self.since_cnp
                self.receive([last + gap * (number + 1) for number in range(cnps)])
            else:
                self.receive([self.now])
        if self.act(spacing_us):
            return True
        if self.p.byte_counter_bytes:
            self.count(acked_bytes)
        return False

    def act(self, spacing_us: int) -> int:
        """Cut the rate for each CNP that acts now, and return their number."""
        cuts = 0
        while cuts < MAX_CNPS and self.held and self.is_due(spacing_us):
            self.cut()
            cuts += 1
            self.cuts += 1
            # The program has the first and the last alone: others are evenly spread between them.
            first, last, left = self.held[0], self.held[-1], len(self.held) - 1
            self.held = [first + (last - first) // left, *self.held[2:]] if left else []
        periods = spacing_us // self.p.alpha_timer_us
        if self.received_cnps and cuts > 1 and periods > 1:
            self.received_cnps = min(cuts, periods)
        return cuts

    def receive(self, cnps: list[float]) -> None:
        """Hold CNPs of these times back."""
        self.held += cnps
        self.since_cnp = self.now - cnps[-1]

    def is_due(self, spacing_us: int) -> bool:
        """Return True if this ACK is nearest to the time of the oldest CNP."""
        return not self.p.cnp_delay_us or self.now - self.held[0] + spacing_us // 2 >= self.p.cnp_delay_us

    def count(self, acked_bytes: int) -> None:
        """Increase once for each whole byte counter."""
        self.bytes += acked_bytes
        events = min(self.bytes // self.p.byte_counter_bytes, MAX_BYTE_EVENTS)
        self.bytes -= events * self.p.byte_counter_bytes
        for _ in range(events):
            self.byte_stage += 1
            self.increase()

    def cut(self) -> None:
        """Equation 1; NICs without clamp_target keep the target until an increase, and may begin anew at R_max."""
        self.rises += self.is_almost_at_line_rate
        anew = not self.was_cut or (self.is_at_line_rate and self.p.alpha_initial_q24)
        if self.is_at_line_rate and 0 < self.p.rate_on_first_cnp < self.p.R_max:
            self.R_C = self.R_T = self.p.rate_on_first_cnp
        if anew:
            self.alpha = (self.p.alpha_initial_q24 or ONE_Q24) / ONE_Q24
            self.alpha_due = self.now + self.p.alpha_timer_us
        increased = self.byte_stage or (self.p.clamp_target_after_timer and self.timer_stage)
        if self.p.clamp_target or increased:
            self.R_T = self.R_C
        self.R_C = max(self.R_C * (1 - self.alpha / 2), self.p.R_min)
        if self.p.alpha_by_timer:
            self.received_cnps = int(not anew)
        else:
            self.alpha += (1 - self.alpha) * self.p.g_q24 / ONE_Q24
            self.alpha_due = self.now + self.p.alpha_timer_us
        self.timer_stage = self.byte_stage = self.bytes = 0
        self.was_cut = True
        self.timer_due = self.now + self.p.T_us


PARAMETERS = st.builds(
    DcqcnParams,
    T_us=st.integers(1, 5000),
    F=st.integers(1, 6),
    byte_counter_bytes=st.sampled_from([0, 100, 1000, 20_000, 150_000, 5 * 10**9]),
    R_AI=st.integers(0, 10**7),
    R_HAI=st.integers(0, 10**8),
    R_min=st.just(10**5),
    R_max=st.integers(10**6, 10**10),
    g_q24=st.integers(0, ONE_Q24),
    alpha_timer_us=st.integers(1, 5000),
    cnp_gap_us=st.integers(0, 5000),
    cnp_delay_us=st.sampled_from([0, 0, 700, 5000, 20_000]),
    clamp_target=st.integers(0, 1),
    clamp_target_after_timer=st.integers(0, 1),
    hyper_by_stage=st.integers(0, 1),
    alpha_by_timer=st.integers(0, 1),
    alpha_initial_q24=st.sampled_from([0, ONE_Q24 // 2, ONE_Q24]),
    rate_on_first_cnp=st.sampled_from([0, 5 * 10**5]),
)
ACKS = st.lists(st.tuples(st.floats(0, 20), st.booleans(), st.integers(0, 60_000)), max_size=60)


class InC:
    """A reaction point of reaction_point.h, with its parameters, counters and clock."""

    def __init__(self, p: DcqcnParams, clock: int = 0) -> None:
        self.rp, self.held, self.p, self.c, self.clock = ReactionPoint(), HeldCnps(), p, DcqcnCounters(), clock
        LIBRARY.reaction_point_begins(*map(ctypes.byref, (self.rp, self.held, p)), ctypes.c_uint32(clock))

    def ack(self, marked: bool, acked_bytes: int, after_us: int = 0) -> bool:
        """Take an ACK, and return True if a CNP acts, or acted in the silence before and the rate is still lower."""
        self.clock = (self.clock + after_us) % 2**32
        when = (ctypes.c_uint32(self.clock), ctypes.c_uint32(after_us))
        words = (*when, ctypes.c_int(marked), ctypes.c_uint64(acked_bytes))
        return bool(LIBRARY.reaction_point_receives(*map(ctypes.byref, (self.rp, self.held, self.p, self.c)), *words))


def compare(point: InC, reference: Reference) -> None:
    """Hold C's state to the reference's, in which nothing is rounded: C is exact to a byte/s and 2^-24 a step."""
    rp, p = point.rp, point.p
    assert rp.alpha_q24 / ONE_Q24 == pytest.approx(reference.alpha, rel=1e-4, abs=1e-4)
    assert pytest.approx(reference.R_C, rel=1e-3, abs=100) == rp.R_C
    assert pytest.approx(reference.R_T, rel=1e-3, abs=100) == rp.R_T
    assert p.R_min <= rp.R_C <= max(rp.R_T, p.R_min) and p.R_max >= rp.R_T
    if not math.isclose(reference.R_C, p.R_max, rel_tol=0, abs_tol=100):  # else no stage matters any more
        assert (rp.timer_stage, rp.byte_stage) == (min(reference.timer_stage, 0xFFFF), reference.byte_stage)


def follow(point: InC, reference: Reference, acks: list[tuple[int, bool, int]]) -> None:
    """Compare C with the reference at each ACK of a series, each after so many us."""
    p, c = point.p, point.c
    for us, marked, acked_bytes in acks:
        reference.cuts = 0
        reference.wait(us)
        in_silence = reference.cuts
        if p.alpha_initial_q24 or p.rate_on_first_cnp:  # rounding decides whether a flow is back at R_max
            assume(not 0.1 < p.R_max - reference.R_C < 100)
        counted, acts = c.cnps, point.ack(marked, acked_bytes, us)
        assert acts == reference.ack(marked, acked_bytes, us) or (acts and in_silence)
        assert c.cnps - counted == reference.cuts
        compare(point, reference)
    increases = (c.fast_increases, c.additive_increases, c.hyper_increases)
    differ = sum(abs(one - other) for one, other in zip(increases, reference.increases.values(), strict=True))
    arrivals = reference.rises + reference.is_almost_at_line_rate
    assert differ <= 7 * arrivals  # of rates that are equal within 100 bytes/s, one may need 7 halvings more to R_max


@given(p=PARAMETERS, clock=CLOCKS, acks=ACKS)
def test_the_reaction_point_follows_the_paper_step_by_step(
    p: DcqcnParams, clock: int, acks: list[tuple[float, bool, int]]
) -> None:
    waits = [(int(waited * min(p.T_us, p.alpha_timer_us)), *rest) for waited, *rest in acks]
    follow(InC(p, clock), Reference(p), waits)


def published(name: str) -> DcqcnParams:
    """Return the parameters of a published set, on a line of its own rate."""
    declared = registry.find_declaration("dcqcn")
    assert declared
    transport = Transport(name="dcqcn", set=find_published(declared, name))
    plan = reaction_plan(transport_values(transport, read_set(declared, name).line_rate_gbps))
    times = {f"{name}_us": getattr(plan, f"{name}_ps") // PS_PER_US for name in ("T", "alpha_timer", "cnp_gap")}
    same = {name for name, *_ in DcqcnParams._fields_} & set(dir(plan))
    return DcqcnParams(**times, **{name: getattr(plan, name) for name in same})


SETS = sorted(path.stem for path in (ROOT / "transports/dcqcn/sets").glob("*.yaml"))
SILENCES = st.one_of(st.integers(0, 100), st.integers(0, 5000), st.integers(0, 200_000))


@settings(max_examples=10)
@pytest.mark.parametrize("name", SETS)
@given(clock=CLOCKS, delay_us=st.sampled_from([0, 8]), cnps=st.integers(1, 40), acks=st.data())
def test_no_state_is_lost_at_any_silence(name: str, clock: int, delay_us: int, cnps: int, acks: st.DataObject) -> None:
    p = published(name)
    p.cnp_delay_us = delay_us
    series = [(p.cnp_gap_us, True, 0)] * cnps
    series += acks.draw(st.lists(st.tuples(SILENCES, st.booleans(), st.integers(0, 100_000)), max_size=8))
    follow(InC(p, clock), Reference(p), series)


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("begins_ms", [0, 3, 5, 10, 100])
def test_alpha_is_1_at_the_first_cut_whenever_a_flow_begins(name: str, begins_ms: int) -> None:
    """A silence before the first CNP, like one of a connection that was opened long before, decays nothing."""
    point = InC(published(name))
    point.ack(False, 1000, begins_ms * 1000)
    assert point.ack(True, 1000, 10)
    assert point.p.R_max - point.p.R_max // 2 == point.rp.R_C


@pytest.mark.parametrize(
    ("after_us", "gbps"), [(3519, 2.633), (3576, 2.71), (8000, 5.9), (20_000, 14.6), (60_000, 40.0)]
)
def test_the_rate_after_a_silence_is_what_sigcomm15s_additive_steps_reach(after_us: int, gbps: float) -> None:
    """Held to an independent simulator's figures for 8 CNPs and a silence."""
    point = InC(published("sigcomm15"))
    for _ in range(8):
        point.ack(True, 0, 50)
    point.ack(False, 0, after_us)
    assert pytest.approx(gbps, rel=0.004) == point.rp.R_C * 8e-9


def test_a_cnp_that_was_held_back_when_a_silence_began_acts_in_it() -> None:
    p = DcqcnParams(T_us=100, F=5, R_min=1, R_max=1000, g_q24=0, alpha_timer_us=10**6, cnp_delay_us=50)
    point = InC(p)
    point.ack(True, 0, 10)
    assert point.ack(False, 0, 50 + 2 * 100)
    assert (point.c.cnps, point.rp.timer_stage, point.rp.R_C) == (1, 2, 875)


def test_a_cut_in_a_silence_after_which_the_rate_has_recovered_is_none() -> None:
    p = DcqcnParams(T_us=100, F=50, R_min=1, R_max=1000, g_q24=0, alpha_timer_us=10**6, cnp_delay_us=50)
    point = InC(p)
    point.ack(True, 0, 10)
    assert not point.ack(False, 0, 50 + 20 * 100)
    assert (point.c.cnps, point.rp.R_C) == (1, 1000)


def test_a_flow_that_is_back_at_the_line_rate_begins_anew_with_its_initial_alpha() -> None:
    p = DcqcnParams(T_us=100, F=5, R_min=1, R_max=1000, alpha_timer_us=1, g_q24=ONE_Q24 // 2, alpha_initial_q24=ONE_Q24)
    point = InC(p)
    assert point.ack(True, 0)
    point.ack(False, 0, 100 * 8)
    assert (point.rp.R_C, point.rp.alpha_q24) == (999, 0)
    point.ack(False, 0, 100)
    assert point.rp.R_C == point.rp.R_T == 1000
    assert point.ack(True, 0, 10)
    assert point.rp.R_C == 500


@pytest.mark.parametrize(("clamp_target", "target"), [(1, 500), (0, 1000)])
def test_the_target_follows_a_second_cut_only_where_it_is_clamped(clamp_target: int, target: int) -> None:
    p = DcqcnParams(
        T_us=100,
        F=5,
        R_min=1,
        R_max=1000,
        g_q24=0,
        alpha_timer_us=10**6,
        cnp_gap_us=4,
        clamp_target=clamp_target,
        clamp_target_after_timer=1,
    )
    point = InC(p)
    assert point.ack(True, 0)
    assert (point.rp.R_T, point.rp.R_C) == (1000, 500)
    assert point.ack(True, 0, after_us=4)
    assert (target, 250) == (point.rp.R_T, point.rp.R_C)
    # Each increase halves the distance to the target, which the next cut then leaves in either case.
    point.ack(False, 0, after_us=100)
    risen = (target + 250) // 2
    assert risen == point.rp.R_C
    assert point.ack(True, 0, after_us=4)
    assert (risen, risen - risen // 2) == (point.rp.R_T, point.rp.R_C)


def test_an_increase_of_the_byte_counter_lets_the_target_follow_too() -> None:
    p = DcqcnParams(T_us=10**6, F=5, byte_counter_bytes=1000, R_min=1, R_max=1000, alpha_timer_us=10**6)
    point = InC(p)
    assert point.ack(True, 0)
    point.ack(False, 1000)
    assert point.rp.R_C == 750
    assert point.ack(True, 0)
    assert (point.rp.R_T, point.rp.R_C) == (750, 375)


def test_only_the_byte_counter_lets_the_target_follow_where_the_timer_does_not() -> None:
    p = DcqcnParams(T_us=100, F=5, byte_counter_bytes=1000, R_min=1, R_max=1000, alpha_timer_us=10**6)
    point = InC(p)
    assert point.ack(True, 0)
    point.ack(False, 0, after_us=100)
    assert point.ack(True, 0)
    assert (point.rp.R_T, point.rp.R_C) == (1000, 375)


@pytest.mark.parametrize(("by_stage", "steps"), [(1, [0, 5, 7, 14, 21]), (0, [0, 5, 7, 7, 7])])
def test_a_hyper_increase_counts_its_stage_or_not(by_stage: int, steps: list[int]) -> None:
    p = DcqcnParams(
        T_us=100, F=2, R_AI=5, R_HAI=7, R_min=1, R_max=1000, alpha_timer_us=10**6, clamp_target=1,
        hyper_by_stage=by_stage,
    )  # fmt: skip
    point = InC(p)
    point.rp.R_C = 600
    assert point.ack(True, 0)
    targets = [600]
    for _ in steps:
        point.ack(False, 0, after_us=100)
        targets.append(point.rp.R_T)
    assert [later - earlier for earlier, later in itertools.pairwise(targets)] == steps


def test_alpha_rises_at_each_cnp_or_once_a_period_of_its_timer() -> None:
    alphas = {}
    for by_timer in (0, 1):
        p = DcqcnParams(
            T_us=10**6, F=5, R_min=1, R_max=1000, g_q24=ONE_Q24 // 2, alpha_timer_us=100, alpha_by_timer=by_timer
        )
        point = InC(p)
        point.rp.was_cut, point.rp.alpha_q24, point.rp.R_C = True, 0, 900
        for after_us in (10, 10, 10):  # at 10, 20 and 30 us
            assert point.ack(True, 0, after_us)
        at = []
        for after_us in (60, 10, 30, 70):  # at 90, 100, 130 and 200 us
            point.ack(False, 0, after_us)
            at.append(point.rp.alpha_q24 / ONE_Q24)
        alphas[by_timer] = at
    assert alphas[0] == [7 / 8, 7 / 8, 7 / 16, 7 / 16]  # halved at 130 us, 100 after the last CNP
    assert alphas[1] == [0, 1 / 2, 1 / 2, 1 / 4]  # by a CNP in the first period, and by none in the second


def test_the_first_cnp_of_a_flow_at_the_highest_rate_begins_anew() -> None:
    p = DcqcnParams(
        T_us=100, F=5, R_min=1, R_max=1000, g_q24=ONE_Q24 // 2, alpha_timer_us=10, alpha_by_timer=1,
        alpha_initial_q24=ONE_Q24 // 2, rate_on_first_cnp=400, clamp_target_after_timer=1,
    )  # fmt: skip
    point = InC(p)
    point.ack(False, 0, after_us=95)
    assert point.ack(True, 0)
    assert (point.rp.R_T, point.rp.R_C, point.rp.alpha_q24) == (400, 300, ONE_Q24 // 2)
    point.ack(False, 0, after_us=10)  # this CNP has set alpha, and does not raise it
    assert point.rp.alpha_q24 == ONE_Q24 // 4
    assert point.ack(True, 0)
    assert (point.rp.R_T, point.rp.R_C) == (400, 263)  # neither anew nor from another rate


def byte_stages(B: int, acks: list[int]) -> int:  # noqa: N803
    """Return the byte counter's stage after ACKs of so many bytes."""
    point = InC(DcqcnParams(T_us=10**6, F=5, byte_counter_bytes=B, R_min=1, R_max=10**9, alpha_timer_us=10**6))
    for acked_bytes in acks:
        point.ack(False, acked_bytes)
    return point.rp.byte_stage


def test_an_ack_of_several_byte_counters_is_as_many_increases() -> None:
    assert byte_stages(1000, [4344]) == 4


def test_the_remainder_of_an_ack_counts_towards_the_next_increase() -> None:
    assert byte_stages(32767, [4344] * 1000) == 4344 * 1000 // 32767


@pytest.mark.parametrize("B", [5 * 10**9, 10**12])
def test_a_byte_counter_above_32_bits_counts_to_its_end(B: int) -> None:  # noqa: N803
    assert byte_stages(B, [2 * 10**9] * 5 * (B // 10**9)) == 10


def test_increases_above_the_bound_wait_for_the_next_ack() -> None:
    assert byte_stages(10, [10 * (MAX_BYTE_EVENTS + 3)]) == MAX_BYTE_EVENTS
    assert byte_stages(10, [10 * (MAX_BYTE_EVENTS + 3), 0]) == MAX_BYTE_EVENTS + 3


def test_the_highest_parameters_overflow_nothing() -> None:
    highest = round(1e9 * 125_000)  # bytes/s, of what dcqcn_params.h declares
    p = DcqcnParams(
        T_us=1, F=1, R_AI=highest, R_HAI=200 * highest, R_min=highest // 2, R_max=highest, g_q24=ONE_Q24,
        alpha_timer_us=10**9, cnp_gap_us=0,
    )  # fmt: skip
    point = InC(p)
    assert point.ack(True, 0)
    assert point.rp.R_C == highest // 2  # noqa: SIM300
    point.rp.timer_stage = 0xFFFF
    point.ack(False, 0, after_us=1)
    assert point.rp.R_T == highest  # noqa: SIM300


def acts_at(acks_us: list[int], marked: set[int], **values: int) -> list[int]:
    """Return when CNPs act, of ACKs at these times, some of which echo a mark."""
    p = DcqcnParams(T_us=10**6, F=5, R_min=1, R_max=10**9, alpha_timer_us=10**6, **values)
    point, found, before = InC(p), [], 0
    for at in acks_us:
        if point.ack(at in marked, 0, at - before):
            found.append(at)
        before = at
    return found


def test_cnps_act_after_their_delay_as_they_were_received() -> None:
    every = list(range(1, 60))
    at_once = acts_at(every, set(range(1, 20)), cnp_gap_us=4)
    assert at_once == [1, 5, 9, 13, 17]
    assert acts_at(every, set(range(1, 20)), cnp_gap_us=4, cnp_delay_us=10) == [each + 10 for each in at_once]
    assert acts_at(every, {1, 9}, cnp_gap_us=4, cnp_delay_us=30) == [31, 39]


@pytest.mark.parametrize(("spacing_us", "cnps"), [(1, 25), (3, 25), (7, 25), (16, 25), (37, 3)])
def test_a_lasting_mark_is_a_cnp_each_gap_however_rare_acks_are(spacing_us: int, cnps: int) -> None:
    """A flow with fewer ACKs is cut as often, unless they are so rare that they do not show how long a mark lasted."""
    p = DcqcnParams(T_us=10**6, F=5, R_min=1, R_max=10**9, g_q24=0, alpha_timer_us=10**6, cnp_gap_us=4)
    point = InC(p)
    for _ in range(100 // spacing_us + 1):
        point.ack(True, 0, spacing_us)
    assert point.c.cnps == pytest.approx(cnps, abs=1)


def test_alpha_rises_for_each_of_the_cnps_that_an_ack_stands_for() -> None:
    p = DcqcnParams(
        T_us=10**6, F=5, R_min=1, R_max=10**9, g_q24=ONE_Q24 // 2, alpha_timer_us=1, cnp_gap_us=4, alpha_by_timer=1
    )
    point = InC(p)
    point.rp.alpha_q24 = 0
    point.ack(True, 0, 1)
    point.ack(True, 0, 8)
    assert point.rp.alpha_q24 / ONE_Q24 == 1 / 2 / 2**7  # raised once, and 7 times halved
    point.rp.alpha_q24 = 0
    point.ack(False, 0, 2)
    assert point.rp.alpha_q24 / ONE_Q24 == 3 / 4


def test_a_cnp_acts_at_the_ack_that_is_nearest_to_the_end_of_its_delay() -> None:
    every = list(range(0, 200, 10))
    assert acts_at(every, {20}, cnp_delay_us=24) == [40]
    assert acts_at(every, {20}, cnp_delay_us=26) == [50]
    assert acts_at(every, {20}, cnp_delay_us=5) == [20]


def test_cnps_that_are_due_act_at_one_ack() -> None:
    p = DcqcnParams(T_us=10**6, F=5, R_min=1, R_max=10**9, alpha_timer_us=10**6, cnp_delay_us=20)
    point = InC(p)
    for marked, after_us in ((True, 1), (True, 4), (True, 5), (False, 90)):
        point.ack(marked, 0, after_us)
    assert point.c.cnps == 3


def test_what_a_cnp_was_held_back_is_counted() -> None:
    p = DcqcnParams(T_us=10**6, F=5, R_min=1, R_max=10**9, alpha_timer_us=10**6, cnp_delay_us=20)
    point = InC(p)
    for marked, after_us in ((True, 1), (False, 30), (True, 1), (False, 15)):
        point.ack(marked, 0, after_us)
    assert (point.c.cnps, point.c.held_us) == (2, 20 + 15)  # the first one acts in the silence
