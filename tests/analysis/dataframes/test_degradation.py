# SPDX-License-Identifier: Apache-2.0
"""Fits to sweeps as DataFrames. The fits that published summaries hold are the witness."""

import math

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from analysis.reading.cross_traffic.load_sweeps import job_sweeps
from analysis.reports.publishing.publication import RESULTS, Publication
from analysis.statistics.degradation.sweep import DegradationError
from analysis.statistics.intervals import repeated_looks
from roundabout import api
from roundabout.core.errors import UsageError
from tests.analysis.sweeps.sweep_runs import experiment, sweep_run

pytestmark = pytest.mark.unit

PUBLISHED = "cross-traffic-all/packets"
NAME = "ResNet-50, burst, TCP"
FIELDS = {"A": "a_s", "B": "b", "n": "n", "C": "capacity_gbps"}


@pytest.fixture(scope="module")
def sweeps():
    """The sweeps of the published run."""
    return api.sweeps(api.open_results(PUBLISHED))


@pytest.fixture(scope="module")
def sweep(sweeps):
    """One of them."""
    return sweeps[sweeps["sweep"] == NAME]


@pytest.fixture(scope="module")
def model(sweep):
    """The model that is chosen for it."""
    return api.fit_degradation(sweep)


def test_the_fit_to_published_levels_is_the_published_fit(sweep):
    summary = Publication(RESULTS / PUBLISHED).summary
    (published,) = (each["fit"] for each in summary["sweeps"] if each["name"] == NAME)
    with repeated_looks(summary["looks"]):
        model = api.fit_degradation(sweep)
    for name, field in FIELDS.items():
        row, expected = model.coefficients.loc[name], published[field]
        assert row["value"] == pytest.approx(expected["value"], rel=1e-4)
        assert (row["low"], row["high"]) == pytest.approx(expected["ci95"], rel=0.02)
    chosen = [each["chosen"] for each in published["chosen_by"]]
    assert list(model.candidates["chosen"]) == pytest.approx(chosen, abs=0.01)
    assert model.r_squared == pytest.approx(published["r_squared"]["log"], abs=1e-4)


def test_coefficients_of_made_up_times_are_found_again():
    loads_gbps = np.array([0, 5, 10, 13, 16, 18, 20, 21])
    rows = {
        "link_gbps": 25.0,
        "load_gbps": loads_gbps,
        "repetitions": 4,
        "mean_s": 0.2 * np.exp(7.281 / (25 - loads_gbps) ** 0.5),  # Salamy's BERT-large
        "scatter_s": 1e-4,
    }
    found = api.fit_degradation(pd.DataFrame(rows), held={"n": 0.5, "capacity_gbps": 25.0}).coefficients
    assert found.loc["A", "value"] == pytest.approx(0.2)
    assert found.loc["B", "value"] == pytest.approx(7.281)
    assert math.isnan(found.loc["n", "low"])
    free = api.fit_degradation(pd.DataFrame(rows), held={}).coefficients
    assert free.loc["n", "low"] < 0.5 < free.loc["n", "high"]
    assert free.loc["C", "low"] < 25 < free.loc["C", "high"]


def test_sweeps_of_a_run_are_those_of_its_report(tmp_path):
    run = sweep_run(tmp_path / "runs", experiment(tmp_path, loads=[0, 10, 18]))
    (reported,) = job_sweeps(run)
    found = api.sweeps(run)
    assert list(found["sweep"].unique()) == [reported.name]
    assert list(found["load_gbps"]) == pytest.approx(reported.sweep.loads_gbps)
    assert list(found["mean_s"]) == pytest.approx(reported.sweep.means_s)
    scatter_s = [level.means_s.std(ddof=1) for level in reported.sweep.levels]
    assert list(found["scatter_s"]) == pytest.approx(scatter_s)


def test_a_forecast_agrees_with_the_curve_and_says_where_it_extrapolates(model, sweep):
    heaviest = sweep["load_gbps"].max()
    found = model.forecast([12.0, (heaviest + model.capacity_gbps) / 2])
    assert list(found["extrapolates"]) == [False, True]
    assert list(found["time_s"]) == pytest.approx(model.times_s(found["load_gbps"].to_numpy()))
    low, high = model.band_s(found["load_gbps"].to_numpy())
    assert (found["time_s_low"] < low).all()
    assert (found["time_s_high"] > high).all()
    with pytest.raises(DegradationError, match="below the model's C"):
        model.forecast([model.capacity_gbps])


def test_a_sweep_is_drawn_with_its_curve_to_the_heaviest_load_and_beyond(model, sweep):
    figure, axes = plt.subplots()
    api.draw_degradation(axes, sweep, model, until_gbps=21.0)
    curve, beyond, points = axes.lines
    assert list(points.get_xdata()) == list(sweep["load_gbps"])
    assert curve.get_xdata()[-1] == beyond.get_xdata()[0] == sweep["load_gbps"].max()
    assert beyond.get_xdata()[-1] == 21.0
    assert axes.get_yscale() == "log"
    plt.close(figure)


def test_what_cannot_be_fitted_is_an_error(sweeps, sweep):
    with pytest.raises(UsageError, match="rows of 16 sweeps"):
        api.fit_degradation(sweeps)
    with pytest.raises(UsageError, match="coefficient A cannot be held"):
        api.fit_degradation(sweep, held={"A": 1.0})
    with pytest.raises(DegradationError, match="no column scatter_s"):
        api.fit_degradation(sweep.drop(columns="scatter_s"))
    with pytest.raises(DegradationError, match="found 3 levels"):
        api.fit_degradation(sweep.head(3))
    with pytest.raises(UsageError, match="no load sweep"):
        api.sweeps(api.open_results("compare-all/packets"))
