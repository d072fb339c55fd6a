# SPDX-License-Identifier: Apache-2.0
"""DCQCN's mean field against closed forms: the papers' fixed point, renewal theory, and what must hold for any flow."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.optimize import root

from roundabout.models.fluid.dcqcn import PACKET_BYTES, FlowState, Reaction, advance, marking_probability
from tests.fluid.dcqcn_theory import MBPS, conext_16, reaction

pytestmark = pytest.mark.unit


def settled(reacting: Reaction, p: float, us: float = 20.0, steps: int = 4000, rate: float | None = None) -> FlowState:
    """The state that a steady share of marks leads to."""
    flow = FlowState.start(reacting)
    for _ in range(steps):
        advance(flow, reacting, flow.R_C if rate is None else np.full_like(flow.R_C, rate), np.array([p]), us)
    return flow


def fixed_point(reacting: Reaction, flows: int, capacity: float) -> float:
    """The share of marks at which our flows rest at an equal share of the link: nothing changes in a moment."""
    rate = np.array([capacity / flows])

    def changes(unknown: tuple[float, float, float]) -> list[float]:
        above, alpha, p = np.exp(unknown)
        hazard = -np.log1p(-p) * rate / PACKET_BYTES
        flow = FlowState(rate.copy(), rate * (1 + above), np.array([alpha]), 1 / hazard, np.zeros(1))
        cnps = advance(flow, reacting, rate, np.array([p]), 1e-3) * 1e-3
        found = (flow.R_C / rate - 1, flow.R_T / rate - 1 - above, flow.alpha / alpha - 1)
        return [float((each / cnps)[0]) for each in found]

    found = root(changes, np.log([0.01, 0.1, 1e-3]), tol=1e-10)
    assert found.success, found.message
    return float(np.exp(found.x[2]))


@pytest.mark.parametrize("flows", [2, 10, 64])
def test_the_fixed_point_is_that_of_conext_16(flows):
    # Rare CNPs: what the papers leave out (the gap before the next CNP, half of a step in R_C) vanishes beside them.
    reacting = reaction(R_AI=0.4 * MBPS, R_HAI=0.0, cnp_gap_us=1.0, R_max=1e9)
    capacity = 40_000 * MBPS
    assert fixed_point(reacting, flows, capacity) == pytest.approx(conext_16(reacting, flows, capacity), rel=0.04)


@pytest.mark.parametrize("flows", [2, 10, 64])
def test_with_the_papers_parameters_the_fixed_point_is_near(flows):
    reacting, capacity = reaction(), 40_000 * MBPS
    assert fixed_point(reacting, flows, capacity) == pytest.approx(conext_16(reacting, flows, capacity), rel=0.25)


@given(p=st.floats(1e-5, 1.0), gap=st.floats(0.0, 100.0), rate=st.floats(100.0, 6000.0))
@settings(deadline=None, max_examples=50)
def test_cnp_rate_and_alpha_follow_from_the_gap_and_the_marking_rate(p, gap, rate):
    reacting = reaction(cnp_gap_us=gap, alpha_timer_us=gap + 10.0)
    flow = settled(reacting, p, us=1e5, steps=300, rate=rate)
    cnps = advance(flow, reacting, np.array([rate]), np.array([p]), 5.0)
    hazard = -np.log1p(-min(p, 1 - 1e-6)) * rate / PACKET_BYTES
    assert cnps[0] == pytest.approx(1 / (gap + 1 / hazard), rel=1e-6)
    # Between two CNPs the alpha timer fires once for each of its periods that the time between them exceeds.
    fires = np.exp(-10.0 * hazard) / -np.expm1(-(gap + 10.0) * hazard)
    assert flow.alpha[0] == pytest.approx(1 / (1 + fires), rel=1e-3)


@given(F=st.integers(1, 6), mean=st.floats(0.3, 30.0))
@settings(deadline=None, max_examples=30)
def test_targets_rise_by_what_the_algorithm_adds_at_each_stage(F, mean):  # noqa: N803
    """Without a byte counter; times between CNPs are exponential, `mean` periods of the timer after the gap."""
    reacting = reaction(byte_counter_bytes=0.0, F=F, R_HAI=100 * MBPS, R_max=1e9)
    hazard, rate = 1 / (mean * 55.0), 1000.0
    p = np.array([-np.expm1(-hazard * PACKET_BYTES / rate)])
    flow = FlowState(np.array([rate]), np.array([rate]), np.zeros(1), np.array([1 / hazard]), np.zeros(1))
    cnps = advance(flow, reacting, np.array([rate]), p, 1e-3)
    steps = (0 if k < F else 40 * MBPS if k == F else (k - F) * 100 * MBPS for k in range(1, 2000))
    expected = cnps[0] * sum(step * np.exp(-(55.0 * k - 50.0) * hazard) for k, step in enumerate(steps, 1))
    assert (flow.R_T[0] - rate) / 1e-3 == pytest.approx(expected, rel=1e-3, abs=1e-9)


@pytest.mark.parametrize("byte_counter_bytes", [0.0, 40_000.0])
def test_the_target_follows_every_cut_where_each_has_an_increase_before_it(byte_counter_bytes):
    # The timer or the byte counter counts within the gap: 40 kB at 1000 bytes/us take 40 us.
    kept, clamped = (
        settled(
            reaction(byte_counter_bytes=byte_counter_bytes, cnp_gap_us=60.0 if not byte_counter_bytes else 45.0,
                     clamp_target=clamp), 0.01, steps=500, rate=1000.0,
        )
        for clamp in (0.0, 1.0)
    )  # fmt: skip
    assert (kept.R_T, kept.R_C) == (clamped.R_T, clamped.R_C)


def test_an_unclamped_target_stays_where_nothing_increases_the_rate():
    reacting = reaction(byte_counter_bytes=0.0, T_us=1e9, clamp_target=0.0)
    flow = settled(reacting, 0.5, steps=100, rate=1000.0)
    assert flow.R_C[0] < 0.5 * reacting.R_max[0]
    assert flow.R_T[0] == pytest.approx(reacting.R_max[0], rel=1e-6)


parameters = st.fixed_dictionaries(
    {
        "T_us": st.floats(1.0, 1000.0),
        "F": st.integers(1, 10).map(float),
        "byte_counter_bytes": st.one_of(st.just(0.0), st.floats(1e3, 1e8)),
        "R_AI": st.floats(0.0, 100.0),
        "R_HAI": st.floats(0.0, 100.0),
        "g": st.floats(1e-4, 1.0),
        "alpha_timer_us": st.floats(1.0, 1000.0),
        "cnp_gap_us": st.floats(0.0, 200.0),
        **dict.fromkeys(
            ("clamp_target", "clamp_target_after_timer", "hyper_by_stage", "alpha_by_timer", "alpha_initial"),
            st.sampled_from([0.0, 1.0]),
        ),
    }
)


@given(parameters, st.lists(st.tuples(st.floats(0.0, 1.0), st.floats(0.0, 1.0)), min_size=1, max_size=60))
@settings(deadline=None)
def test_rates_stay_within_their_bounds_whatever_comes(changed, course):
    reacting = reaction(**changed)
    flow = FlowState.start(reacting)
    for p, share in course:
        advance(flow, reacting, share * flow.R_C, np.array([p]), 10.0)
        assert reacting.R_min <= flow.R_C <= flow.R_T <= reacting.R_max
        assert 0 <= flow.alpha <= 1 and flow.age_us > 0


@given(parameters, st.floats(1e-4, 1e-2))
@settings(deadline=None, max_examples=30)
def test_flows_that_are_alike_are_treated_alike(changed, p):
    one, three = reaction(**changed), reaction(3, **changed)
    alone, together = (settled(each, p, steps=200).R_C for each in (one, three))
    assert together == pytest.approx(alone.repeat(3), rel=1e-12)


@given(st.floats(0, 1e6), st.floats(0, 1e5), st.floats(0, 1e5), st.floats(0, 1))
def test_marks_grow_with_the_queue_between_the_thresholds(queue, kmin, more, pmax):
    p = marking_probability(np.array([queue]), np.array(kmin), np.array(kmin + more), np.array(pmax))[0]
    if queue <= kmin:
        assert p == 0
    elif queue > kmin + more:
        assert p == 1
    else:
        assert p == pytest.approx(pmax * (queue - kmin) / max(more, 1), abs=1e-12)


def test_a_smaller_timer_gets_more_of_equal_marks():
    slower, quicker = (settled(reaction(T_us=each), 1e-3).R_C[0] for each in (125.0, 100.0))
    assert quicker > slower
