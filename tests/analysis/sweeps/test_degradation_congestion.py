# SPDX-License-Identifier: Apache-2.0
"""Demands, and congestion points, on Salamy's own figures and on links that share like water."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from analysis.papers.salamy import (
    BERT,
    BURST,
    CONSISTENT,
    DENSENET,
    FITS,
    IPERF,
    LINK_GBPS,
    MODELS,
    OBSERVED,
    RESNET,
    VGG,
)
from analysis.statistics.degradation.congestion_point import congestion_point
from analysis.statistics.degradation.demand import (
    bandwidth_delta_gbps,
    data_per_iteration_mb,
    experimental_mb,
    required_gbps,
    spare_capacity_gbps,
)
from analysis.statistics.degradation.model import iteration_time_s
from analysis.statistics.degradation.sweep import DegradationError, Level, Sweep

pytestmark = pytest.mark.unit

LOADS_GBPS = np.arange(0.0, 22.0)


def swept(means_s, loads_gbps=LOADS_GBPS, *, scatter=0.0, repetitions=5, seed=1):
    noise = np.exp(scatter * np.random.default_rng(seed).standard_normal((len(loads_gbps), repetitions)))
    rows = np.asarray(means_s)[:, None] * noise
    pairs = zip(loads_gbps, rows, strict=True)
    levels = tuple(Level(float(load), tuple(np.array([mean]) for mean in row)) for load, row in pairs)
    return Sweep(levels, LINK_GBPS)


def shared_like_water(data_mb, alone_s, loads_gbps=LOADS_GBPS):
    """Undisturbed until the link is full, then as fast as what is left of it."""
    return np.maximum(alone_s, data_mb * 8e-3 / (LINK_GBPS - loads_gbps))


# --- equation 3.1, Tables 3.1 to 3.8 ---------------------------------------------------------------------------------


def test_data_and_bandwidth_are_those_of_table_3_1_and_3_4():
    printed = {BERT: (2011.0, 1787.6), VGG: (830.1, 737.9), DENSENET: (172.1, 153.0), RESNET: (153.3, 136.3)}
    for name, model in MODELS.items():
        four_and_three = tuple(round(model.data_mb(workers), 1) for workers in (IPERF.workers, CONSISTENT.workers))
        assert four_and_three == printed[name]
        assert required_gbps(model.data_mb(4), model.alone_s) == pytest.approx(model.required_gbps, abs=0.03)


def test_equation_3_4():
    assert required_gbps(2011.0, 5.257) == pytest.approx(3.06, abs=0.005)


def test_the_data_at_the_thesis_congestion_points_are_those_of_its_tables():
    for setting, time_s in ((IPERF, 0.68), (CONSISTENT, 0.85), (BURST, 0.88)):
        (row,) = (each for each in OBSERVED if (each.setting, each.model) == (setting, VGG))
        assert experimental_mb(LINK_GBPS - row.congestion_gbps, time_s) == pytest.approx(row.congestion_mb, rel=0.01)


def test_every_model_was_observed_in_every_setting_above_its_theory():
    assert len({(each.setting, each.model) for each in OBSERVED}) == 12
    for row in OBSERVED:
        assert row.congestion_mb > MODELS[row.model].data_mb(row.setting.workers)
        assert row.worst_available_gbps > row.worst_required_gbps


@pytest.mark.parametrize(("parameters", "workers"), [(1e6, 1), (0, 4)])
def test_a_ring_of_one_worker_is_refused(parameters, workers):
    with pytest.raises(DegradationError, match="expected at least 2"):
        data_per_iteration_mb(parameters, workers)


def test_spare_capacity_is_the_mean_delta_over_saturated_levels():
    loads = np.array([0.0, 10.0, 18.0, 20.0, 24.0])
    sweep = swept([0.4, 0.5, 1.0, 2.0, 9.0], loads)
    deltas = bandwidth_delta_gbps(sweep, 500.0)
    assert deltas == pytest.approx([15, 7, 3, 3, 1 - 4 / 9])
    assert spare_capacity_gbps(sweep, 500.0, 18.0, heaviest_gbps=20.0) == pytest.approx(3)
    assert spare_capacity_gbps(sweep, 500.0, 18.0) == pytest.approx(deltas[2:].mean())
    with pytest.raises(DegradationError, match="found no level from 24.5"):
        spare_capacity_gbps(sweep, 500.0, 24.5)


# --- Appendix A.2 ----------------------------------------------------------------------------------------------------


@given(st.floats(5, 17), st.floats(0.1, 2))
@settings(max_examples=40)
def test_the_crossing_lies_where_a_link_shared_like_water_is_full(full_gbps, alone_s):
    data_mb = experimental_mb(LINK_GBPS - full_gbps, alone_s)
    point = congestion_point(swept(shared_like_water(data_mb, alone_s)))
    assert point.crossing_gbps == pytest.approx(full_gbps, abs=1.5)
    assert point.demand_mb >= data_mb * 0.9


def test_the_thesis_point_for_vgg_under_iperf_is_found_from_its_fit():
    printed = next(each for each in FITS if each.model == VGG)
    loads = np.arange(0, 18.5, 2)
    point = congestion_point(swept(iteration_time_s(loads, printed.a_s, printed.b, printed.n, 25.0), loads))
    assert point.load_gbps == pytest.approx(13.99, abs=2)  # as far as levels lie apart
    assert point.demand_mb == pytest.approx(928.7, rel=0.02)
    assert point.linear_slope == pytest.approx(0.42, abs=0.01)  # that of RDMA's large models is not flat


def test_a_hiccup_at_a_low_load_does_not_move_it():
    times_s = shared_like_water(500.0, 0.4)
    calm = congestion_point(swept(times_s))
    times_s[3] *= 1.2
    assert congestion_point(swept(times_s)).crossing_gbps == pytest.approx(calm.crossing_gbps, abs=1)


def test_the_congestion_points_interval_covers_the_true_point():
    times_s = shared_like_water(400.0, 0.35)
    true_gbps = congestion_point(swept(times_s)).crossing_gbps
    found = [congestion_point(swept(times_s, scatter=0.02, seed=seed)) for seed in range(100)]
    assert sum(each.crossing_ci95_gbps[0] <= true_gbps <= each.crossing_ci95_gbps[1] for each in found) >= 93
    assert np.median([np.ptp(each.crossing_ci95_gbps) for each in found]) < 3


def test_the_same_seed_gives_the_same_interval():
    sweep = swept(shared_like_water(400.0, 0.35), scatter=0.02)
    assert congestion_point(sweep) == congestion_point(sweep)
    assert congestion_point(sweep).demand_ci95_mb != congestion_point(sweep, seed=2).demand_ci95_mb


def test_below_four_repetitions_there_is_no_interval():
    point = congestion_point(swept(shared_like_water(400.0, 0.35), repetitions=3))
    assert point.crossing_ci95_gbps is None
    assert point.demand_ci95_mb is None


def test_a_link_full_at_the_lowest_load_has_no_uncongested_portion():
    with pytest.raises(DegradationError, match="expected a portion of at least 2 levels that is straight and nearly"):
        congestion_point(swept(shared_like_water(2000.0, 0.1)))


@pytest.mark.parametrize("third_s", [0.44, 0.5, 0.6])
def test_the_linear_portion_excludes_a_third_level_off_the_line(third_s):
    times_s = [0.4, 0.4, third_s, 0.9, 1.6, 3.0]
    assert congestion_point(swept(times_s, np.linspace(0, 20, 6))).linear_levels == 2
    times_s[2] = 0.41
    assert congestion_point(swept(times_s, np.linspace(0, 20, 6))).linear_levels == 3


@given(st.floats(0.75, 1.0))
@settings(max_examples=20, deadline=None)
def test_a_slow_rise_is_no_portion_without_congestion(share):
    rising_s = 0.4 * (LINK_GBPS / (LINK_GBPS - LOADS_GBPS)) ** share
    with pytest.raises(DegradationError, match="found iterations that lengthen from 0 Gbit/s on"):
        congestion_point(swept(rising_s))


@pytest.mark.parametrize("times_s", [np.full(22, 0.4), np.where(LOADS_GBPS < 21, 0.4, 0.6)])
def test_a_congestion_point_without_congested_levels_is_refused(times_s):
    with pytest.raises(DegradationError, match="found no bend between 0 and 21 Gbit/s"):
        congestion_point(swept(times_s))


def test_a_congestion_point_of_too_few_levels_is_refused():
    with pytest.raises(DegradationError, match="found 3 levels, expected at least 4"):
        congestion_point(swept([1.0, 1.0, 2.0], [0.0, 5.0, 10.0]))
