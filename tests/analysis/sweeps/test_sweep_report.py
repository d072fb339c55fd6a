# SPDX-License-Identifier: Apache-2.0
"""The report of a run over loads: what a reader must find in it, and that too little data fails nothing."""

import re
from types import SimpleNamespace

import numpy as np
import pytest

from analysis.quantities import CachedReading, QuantityRequest, find_quantity
from analysis.reading.congestion.send_rates import READINGS_BY, SendRates, send_rates, skewness
from analysis.reading.cross_traffic.planned_flows import planned_flows
from analysis.reports.report import write_report
from analysis.reports.summary import summarize_run
from tests.analysis.sweeps.sweep_runs import experiment, sweep_run

pytestmark = pytest.mark.unit

KINDS = "  variant: {consistent: {}, burst: {cross_traffic: {cross: {kind: burst}}}}"


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """BERT-large over TCP under two kinds of traffic, whose sender was captured at 20 Gbit/s."""
    folder = tmp_path_factory.mktemp("pair")
    planned = experiment(
        folder, loads=[0, 8, 12, 15, 18, 20], profile="bert-large-tcp-ring3", transport="cubic", more=KINDS
    )
    return sweep_run(folder, planned, captured={20})


@pytest.fixture(scope="module")
def text(pair):
    pair.write_summary(summarize_run(pair).record())
    return write_report(pair).read_text()


@pytest.mark.parametrize(
    "words",
    [
        "Verdicts on what Salamy says",
        "At 80 % load burst traffic is the worse one",
        "equations 3.3, 3.5, 3.6",
        "Compare Salamy, Figure 3-4",
        "Tables 3.9 and 3.10, Figures 3-7 and B-3",  # whose coefficients stand beside ours
        "<td>3.667</td>",
        "<td>2344</td>",  # Table 3.6
        "extrapolated",
        "Figures 3-8 and B-5",
        "The flows that were requested of 8 Gbit/s of burst traffic: 8.00 Gbit/s in the mean",
        "schedule<br>held",
        "What this cannot show",
        "0123456789ab",
        "consistent: cubic",
        "No trial was invalid",
    ],
)
def test_the_sweep_report_contains(text, words):
    assert words in text


def test_all_figures_have_alternative_text(text):
    images = re.findall(r"<img [^>]+>", text)
    assert len(images) == 2 + 1 + 2 + 2 + 1 + 1  # degradation, fits, congestion, distributions, bursts, injection
    assert all(len(re.search(r'alt="([^"]*)"', image)[1]) > 20 for image in images)


def test_nothing_is_loaded_from_elsewhere_and_no_code_is_shown(text):
    assert not re.findall(r"<script[^>]", text)  # an attribute, such as src
    assert not re.findall(r"""(?:src|href)\s*=\s*["'](?!data:|\#)[^"']*""", text)
    assert "RUN =" not in re.sub(r"base64,[A-Za-z0-9+/=]+", "", text)


def test_injection_rates_are_the_requested_ones_and_bursts_have_a_tail(pair):
    burst, consistent = send_rates(pair)
    assert (burst.name, consistent.kind) == ("burst, 20 Gbit/s requested", "consistent")
    assert burst.gbps.mean() == pytest.approx(20, rel=0.1)
    assert consistent.gbps.mean() == pytest.approx(20, rel=0.1)
    assert np.quantile(burst.gbps, 0.99) > 1.5 * np.quantile(consistent.gbps, 0.99)


def test_a_capture_is_read_in_three_ways_that_weigh_moments_differently(pair):
    """Fast moments hold more packets than slow ones of the same length: once a packet, rates are higher on average."""
    for each in send_rates(pair):
        by = each.readings_gbps
        assert set(by) == set(READINGS_BY)
        assert by["time"].mean() == pytest.approx(each.asked_gbps, rel=0.1)
        assert by["window"].mean() == pytest.approx(each.asked_gbps, rel=0.02)  # all of the payload counts once
        assert by["packet"].mean() > by["time"].mean()
    measured = find_quantity("skewness of the injection rate, to either side").measure(
        QuantityRequest(CachedReading(pair))
    )
    assert {(case.properties["traffic"], case.properties["readings"]) for case in measured} == {
        (kind, way) for kind in ("burst", "consistent") for way in READINGS_BY
    }
    assert all(case.value >= 0 for case in measured)


def test_bursts_are_found_where_they_begin(pair):
    load = planned_flows(pair)
    assert load.asked_gbps == 8
    assert load.mean_gbps == pytest.approx(8, rel=1e-4)  # bytes are whole
    assert load.bursts_ms == pytest.approx(np.arange(0, 200, 10))
    assert len(load.at_ms) == len(load.megabytes) == 200


def test_a_run_without_burst_traffic_has_none(tmp_path):
    run = sweep_run(tmp_path, experiment(tmp_path, loads=[0, 18], repetitions=1))
    assert planned_flows(run) is None


def test_skewness_shows_a_tail():
    assert skewness(np.array([1.0, 2.0, 3.0])) == 0
    assert skewness(np.array([1.0, 1.0, 1.0, 5.0])) == pytest.approx(2 / 3**0.5)


def test_too_little_data_is_said_and_fails_nothing(tmp_path):
    run = sweep_run(tmp_path, experiment(tmp_path, loads=[0, 18], repetitions=1), spoilt={(0, 1)})
    run.write_summary(summarize_run(run).record())
    text = write_report(run).read_text()
    assert "found 1 level, expected at least 4" in text
    assert "this run captured none" in text
    assert "No job trained over TCP" in text
    assert "Too little was measured for this" in text


def test_a_sweep_without_a_valid_trial_has_a_report_too(tmp_path):
    run = sweep_run(tmp_path, experiment(tmp_path, loads=[0, 18], repetitions=1), spoilt={(0, 1), (18, 1)})
    run.write_summary(summarize_run(run).record())
    text = write_report(run).read_text()
    assert "Not held against Salamy: too little was measured" in text
    assert text.count("97% busy") == 2
    assert "<img" not in text


def test_skewness_has_an_interval_over_repetitions_and_no_sign():
    rates = [np.array(each) for each in ([1.0, 1, 1, 5], [1.0, 1, 2, 5], [1.0, 1, 1, 4], [1.0, 2, 2, 5])]

    def found(values):
        made = [SendRates("burst", 20.0, np.array([0]), each, dict.fromkeys(READINGS_BY, each)) for each in values]
        reading = SimpleNamespace(cached=lambda _: {"burst": made})
        return find_quantity("skewness of the injection rate, to either side").measure(QuantityRequest(reading))[0]

    tail, mirrored = found(rates), found([-each for each in rates])
    assert tail.value == pytest.approx(mirrored.value)
    assert tail.ci95 == pytest.approx(mirrored.ci95)
    assert tail.ci95[0] < tail.value < tail.ci95[1]
    assert found(rates[:2]).ci95 is None
