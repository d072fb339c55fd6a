# SPDX-License-Identifier: Apache-2.0
"""What flows of cross traffic leave to jobs, against a queue that is played flow by flow."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st

from roundabout.models.fluid import Schedule, residual_of_loads, residual_of_schedules
from roundabout.models.fluid.cross_traffic import BYTES_PER_MS_OF_GBPS, STEP_MS
from roundabout.models.fluid.jobs import ComputePhase, FluidJob, make_send_phase
from roundabout.plan import expected_duration_s, make_plan
from roundabout.runner.trial.cross_traffic import LEAD_MS, plan_arguments
from roundabout.runner.trial.load_files import LoadError
from roundabout.spec import load_experiment
from roundabout.spec.patterns import all_transfers
from roundabout.testbeds.fluid.loads import plan_loads, read_load
from tests.fluid.fluid_trials import beside, ring
from tests.fluid.oracle.model import Simulation, capacity_at

pytestmark = pytest.mark.unit

RATE = 43 * BYTES_PER_MS_OF_GBPS
LASTS_MS = 4000.0
# Sizes are whole bytes; the lab's is 100 of the papers'. A burst's bytes, off by half a byte of each, are split in two,
# at 0.9 at most: each part has one byte at least, and the first is rounded down, by almost one of the lab's.
BURST_OFF_BYTES = 0.9 * (100 + 1) / 2 + (2 * 0.9 - 1) * (100 - 1) + 100
# A quiet part's bytes are off by one of each. It has 8 flows or more; the largest has 30 MB of 8 times the mean size,
# 2.4349 MB, and is rounded to the nearest byte.
QUIET_OFF_BYTES = (100 + 1) * 30 / (8 * 2.4349) + (100 + 1) / 2
INTO, BACK = ("tor", "s0"), ("s0", "tor")

flows = st.lists(st.tuples(st.floats(-LEAD_MS, LASTS_MS), st.integers(1, 10**8)), max_size=60).map(sorted)


def schedule(drawn, receivers=None):
    starts_ms, sizes = (np.array(column, float) for column in zip(*drawn, strict=True)) if drawn else (np.empty(0),) * 2
    places = np.zeros(len(drawn), int) if receivers is None else np.array(receivers)
    return Schedule(starts_ms, sizes, places, -LEAD_MS, LASTS_MS)


def left_beside(drawn):
    return residual_of_schedules(beside(ring(), s2=(["s0"], 10)), {"from-s2": schedule(drawn)})


def spared(drawn, ms):
    """What a link that carries these flows one after the other has had to spare since the jobs began."""
    had = []
    for until in (0.0, ms):
        now, waiting, spare = -LEAD_MS, 0.0, 0.0
        for start, size in [*(flow for flow in drawn if flow[0] < until), (until, 0)]:
            carried = (start - now) * RATE
            spare += max(carried - waiting, 0.0)
            waiting = max(waiting - carried, 0.0) + size
            now = start
        had.append(spare)
    return had[1] - had[0]


@given(flows)
def test_at_each_steps_end_jobs_have_had_what_flows_spared(drawn):
    left = left_beside(drawn)
    ends_ms = np.arange(0.0, LASTS_MS + STEP_MS, 40 * STEP_MS)
    expected = [spared(drawn, ms) for ms in ends_ms]
    assert left.bytes_until(ends_ms, INTO) == pytest.approx(expected, rel=1e-9, abs=1.0)
    rates = np.array([capacity_at(left, ms)[0][INTO] for ms in np.arange(0.0, LASTS_MS, STEP_MS)])
    assert rates.min() >= 0 and rates.max() <= RATE * (1 + 1e-9)
    assert {capacity_at(left, ms)[0][BACK] for ms in ends_ms} == {RATE}  # the other way there is no cross traffic


@settings(deadline=None)
@given(flows, st.floats(0, 200), st.integers(10**6, 3 * 10**8))
def test_a_job_sends_the_residual_capacity_to_within_a_step(drawn, compute_ms, size):
    # It wants all that there is.
    phase = make_send_phase(all_transfers("ring", size, ((0, 1),)), ((INTO,), (BACK,)), size / RATE / 2)
    course = Simulation([FluidJob((ComputePhase(compute_ms), phase), workers=2, iterations=5)], left_beside(drawn))
    for _ in course:
        pass
    for each in course.iterations[0][0]:
        if each.end_ms < LASTS_MS:
            had = spared(drawn, each.end_ms) - spared(drawn, each.compute_end_ms)
            assert had >= phase.streams[0].size - RATE * STEP_MS
            before = spared(drawn, each.end_ms - STEP_MS) - spared(drawn, each.compute_end_ms)
            assert before <= phase.streams[0].size + RATE * STEP_MS


@given(st.floats(0, 42), st.integers(1, 5))
def test_flows_that_come_evenly_leave_what_an_even_load_leaves(load_gbps, each_step):
    spec = beside(ring(), s2=(["s0", "s1"], load_gbps))
    starts_ms = np.arange(-LEAD_MS, LASTS_MS, STEP_MS)
    drawn = [(ms, load_gbps * BYTES_PER_MS_OF_GBPS * STEP_MS / each_step) for ms in starts_ms for _ in range(each_step)]
    both = [*((ms, size / 2) for ms, size in drawn for _ in range(2))]
    left = residual_of_schedules(spec, {"from-s2": schedule(both, [0, 1] * len(drawn))})
    rates, until = capacity_at(left, 1000.0)
    assert rates == pytest.approx(residual_of_loads(spec), rel=1e-6, abs=1.0)
    assert until == 1000.0 + STEP_MS


def test_without_schedules_loads_are_even_for_ever():
    spec = beside(ring(), s2=(["s0"], 10))
    assert capacity_at(residual_of_schedules(spec, {}), 1e9) == (residual_of_loads(spec), float("inf"))


# --- load files ------------------------------------------------------------------------------------------------------


def pace(scale):
    return SimpleNamespace(
        scale=scale, dilation=1.0, ms_on_host=float, rate_on_host_bps=lambda paper_gbps: paper_gbps * 1e9 / scale
    )


@pytest.fixture(scope="module")
def trial():
    """Of ResNet-50 beside bursts at 17.5 Gbit/s."""
    plan = make_plan(load_experiment("bursts-resnet", length="quick"), {}, {})
    return next(each for each in plan.trials if each.variant == "burst" and each.levels["cause"] == "as-printed")


@settings(max_examples=10, deadline=None)
@example(seed=6244471, load_gbps=1.5361288330512828, kind="burst")  # 203 bytes off
@given(seed=st.integers(0, 2**63 - 1), load_gbps=st.floats(1, 22), kind=st.sampled_from(["consistent", "burst"]))
def test_the_model_has_the_flows_of_the_labs_load_file(trial, seed, load_gbps, kind):
    changed = {"load_gbps": load_gbps, "kind": kind}
    traffic = {name: each.model_copy(update=changed) for name, each in trial.spec.cross_traffic.items()}
    spec = trial.spec.model_copy(update={"cross_traffic": traffic})
    own = replace(trial, seed=seed, spec=spec, expected_s=expected_duration_s(spec))
    computed = plan_loads(own, pace(1))["websearch"].schedule
    labs = read_load(plan_arguments(pace(100), own, "websearch")).schedule
    assert computed.ends_ms == labs.ends_ms
    assert len(computed.starts_ms) == len(labs.starts_ms)
    assert np.abs(computed.starts_ms - labs.starts_ms).max() < 1e-5
    assert np.abs(computed.sizes - labs.sizes * 100).max() <= max(BURST_OFF_BYTES, QUIET_OFF_BYTES)
    assert (computed.receivers == labs.receivers).all()


def test_a_load_without_a_flow_is_refused():
    with pytest.raises(LoadError, match="at least one flow"):
        read_load(["--load-gbps", "0.001", "--duration-s", "1"])
