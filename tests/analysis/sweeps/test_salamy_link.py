# SPDX-License-Identifier: Apache-2.0
"""What Salamy's link can have carried: readings of its tables, as docs/results/salamy-link.md shows them."""

from pathlib import Path

import numpy as np
import pytest

from analysis.papers import salamy_link
from analysis.papers.salamy import BERT, BURST, CONSISTENT, FITS, IPERF, LINK_GBPS, MODELS, RESNET, VGG
from analysis.papers.salamy_link import Counting
from analysis.statistics.degradation.congestion_point import congestion_point
from analysis.statistics.degradation.demand import bandwidth_delta_gbps, experimental_mb
from analysis.statistics.degradation.model import iteration_time_s
from analysis.statistics.degradation.sweep import DegradationError, Level, Sweep

pytestmark = pytest.mark.unit

DOCS = (Path(__file__).parents[3] / "docs/results/salamy-link.md").read_text()
DATA_MB = MODELS[BERT].data_mb(CONSISTENT.workers)
LENGTHENS = "found iterations that lengthen"


def of(cases, model):
    (found,) = [each for each in cases if each.observed.model == model]
    return found


@pytest.mark.parametrize(
    "lines",
    [salamy_link.remaining_bandwidth, salamy_link.congestion_points, salamy_link.slopes],
    ids=lambda each: each.__name__,
)
def test_the_docs_have_the_tables_as_they_come_out(lines):
    assert "\n".join(lines()) in DOCS, "run `python -m analysis.papers.salamy_link` and put in what it prints"


def test_bandwidth_left_of_25_gbps_is_as_printed():
    as_printed = Counting(None)
    left = [as_printed.left_gbps(case) for case in salamy_link.most_congested(IPERF)]
    assert left == pytest.approx([1.48, 1.33, 1.38, 1.31])
    assert [as_printed.left_gbps(case) for case in salamy_link.saturated(BURST)] == pytest.approx(
        [2.62, 2.51, 2.75, 2.52]
    )


def test_the_times_of_congestion_points_are_those_of_the_text():
    for setting, time_s in ((IPERF, 0.68), (CONSISTENT, 0.85), (BURST, 0.88)):
        case = of(salamy_link.at_congestion(setting), VGG)
        assert salamy_link.congestion_time_s(case.observed, case.load_gbps) == pytest.approx(time_s, abs=0.006)


def test_at_mtu_1500_the_heaviest_bursts_exceed_the_link():
    for model in (BERT, RESNET):
        case = of(salamy_link.most_congested(BURST), model)
        assert Counting(1500).left_gbps(case) < -1
        assert Counting(1500, frames=True).left_gbps(case) == pytest.approx(-0.13, abs=0.02)
        assert 0 <= Counting(9000).left_gbps(case) < 0.03


def test_frames_are_no_matter_to_what_iperf_says_of_itself():
    for case in salamy_link.most_congested(IPERF):
        assert Counting(1500, frames=True).left_gbps(case) == Counting(1500).left_gbps(case)
        assert abs(Counting(1500).left_gbps(case)) < 0.2  # all of the link, and nothing more


@pytest.mark.parametrize("fit", FITS, ids=lambda fit: f"{fit.model} {fit.traffic} {fit.transport}")
def test_no_point_of_a_printed_curve_has_less_than_its_least(fit):
    loads = np.linspace(0, 24, 481)
    times_s = iteration_time_s(loads, fit.a_s, fit.b, fit.n, LINK_GBPS)
    data_mb = experimental_mb(LINK_GBPS - loads, times_s)
    assert data_mb.min() == pytest.approx(salamy_link.least_mb(fit), rel=1e-4)
    assert loads[data_mb.argmin()] == pytest.approx(salamy_link.full_from_gbps(fit), abs=0.06)
    steepness = np.gradient(np.log(times_s), loads)[1:-1] * (LINK_GBPS - loads[1:-1])
    assert steepness[:100] == pytest.approx(
        [salamy_link.slope_of_full_link(fit, load) for load in loads[1:101]], rel=1e-3
    )


def swept(loads_gbps, means_s, link_gbps):
    pairs = zip(loads_gbps, means_s, strict=True)
    return Sweep(tuple(Level(float(load), (np.array([mean]),)) for load, mean in pairs), link_gbps)


def test_berts_consistent_curve_has_a_point_only_if_any_slope_counts():
    fit = next(each for each in FITS if (each.model, each.traffic, each.transport) == (BERT, "consistent", "RDMA"))
    loads = np.arange(0, 21, 2.0)
    sweep = swept(loads, iteration_time_s(loads, fit.a_s, fit.b, fit.n, LINK_GBPS), LINK_GBPS)
    with pytest.raises(DegradationError, match=LENGTHENS):
        congestion_point(sweep)
    point = congestion_point(sweep, nearly_flat=np.inf)
    assert point.load_gbps == 10
    assert point.linear_slope == pytest.approx(0.63, abs=0.01)
    assert point.demand_mb >= salamy_link.least_mb(fit) > 1.06 * 2296.4  # so the printed point is none of this curve


def test_a_sweep_of_the_lab_with_one_number_throughout():
    """Levels of an early run of websearch-bert, by the link's rate: docs/results/salamy-link.md."""
    loads_gbps = [0, 4.12, 8.07, 11.07, 14.14, 17.03, 20.02]
    means_s = [0.843, 0.964, 1.186, 1.477, 1.908, 2.768, 5.108]
    above, unused, as_taken = {}, {}, {}
    for link_gbps in (23.5, LINK_GBPS):
        sweep = swept(loads_gbps, means_s, link_gbps)
        with pytest.raises(DegradationError, match=LENGTHENS):
            congestion_point(sweep)
        above[link_gbps] = float(experimental_mb(link_gbps - loads_gbps[4], means_s[4]) / DATA_MB - 1)
        unused[link_gbps] = bandwidth_delta_gbps(sweep, DATA_MB)
        as_taken[link_gbps] = congestion_point(sweep, nearly_flat=np.inf)
    assert above == pytest.approx({23.5: 0.25, LINK_GBPS: 0.45}, abs=0.005)
    assert unused[23.5][-1] == pytest.approx(0.68, abs=0.01)
    assert unused[LINK_GBPS][-1] == pytest.approx(2.18, abs=0.01)
    assert unused[LINK_GBPS][4:].mean() == pytest.approx(2.78, abs=0.01)
    assert as_taken[LINK_GBPS].load_gbps == 8.07
    assert as_taken[LINK_GBPS].demand_mb / DATA_MB - 1 == pytest.approx(0.40, abs=0.005)
    assert unused[LINK_GBPS][2:].mean() == pytest.approx(3.5, abs=0.05)
