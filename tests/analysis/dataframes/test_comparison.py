# SPDX-License-Identifier: Apache-2.0
"""Comparisons of runs and published runs, and intervals."""

import json

import matplotlib.pyplot as plt
import numpy as np
import pytest

from analysis.reports.publishing.publication import RESULTS, Publication
from roundabout import api
from roundabout.core.errors import UsageError
from roundabout.store import StoreError
from tests.analysis.computed_run import compute

pytestmark = pytest.mark.unit

T_OF_3 = 3.182446
"""The 97.5 % quantile of Student's t with 3 degrees of freedom, from tables."""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Jobs alone and together, computed in a moment."""
    return compute(tmp_path_factory.mktemp("tiny"))


def test_a_published_run_is_compared_by_its_own_figures():
    found = api.compare(api.open_results("compare-all/packets"))
    cells = Publication(RESULTS / "compare-all/packets").summary["cells"]
    assert len(found) == len(cells)
    for row, cell in zip(found.to_dict("records"), cells, strict=True):
        assert (row["variant"], row["job"], row["median_ms"]) == (cell["variant"], cell["job"], cell["median_ms"])
        if cell["speedup"] is not None:
            assert [row["speedup_low"], row["speedup_high"]] == cell["speedup_ci95"]
            assert row["baseline"] == "fair"
        else:
            assert np.isnan(row["speedup"])


def test_a_run_is_compared_by_all_its_iterations(run):
    found = api.compare(run).set_index(["setting", "variant", "job"])
    times_ms = api.iterations(run).groupby(["setting", "variant", "job"])["iteration_ms"]
    assert found["iterations"].to_dict() == times_ms.count().to_dict()
    assert found["mean_ms"].to_dict() == pytest.approx(times_ms.mean().to_dict())


def test_verdicts_are_those_of_the_summary():
    found = api.verdicts(api.open_results("unfair-vgg19/packets"))
    stored = json.loads((RESULTS / "unfair-vgg19/packets/summary.json").read_text())["expectations"]
    assert list(found["verdict"]) == [each["verdict"] for each in stored]
    first = found.iloc[0]
    assert first["expectation"] == "speedup of median iteration time: unfair over fair, figure fig-1"
    assert (first["measured"], first["measured_low"], first["measured_high"]) == (
        stored[0]["measured"],
        *stored[0]["ci95"],
    )
    claims = found[found["measured"].isna()]
    assert set(claims["expectation"]) >= {each["claim"] for each in stored if each["claim"]}


def test_several_runs_are_compared_in_one_table():
    found = api.compare([api.open_results(f"unfair-vgg19/{testbed}") for testbed in ("packets", "lab")])
    assert list(found["testbed"].unique()) == ["packets", "lab"]
    unfair = found[(found["variant"] == "unfair") & (found["setting"] == "figure fig-1")]
    assert (unfair["speedup"] > 1.1).all()


def test_an_unknown_published_run_is_looked_for_among_runs(tmp_path):
    with pytest.raises(StoreError, match="no run 'no-such/packets'"):
        api.open_results("no-such/packets", tmp_path)


def test_an_interval_is_students_t_over_repetitions():
    repetitions = [np.array([1.0, 3.0]), np.array([2.0, 4.0]), np.array([2.0, 2.0]), np.array([5.0, 1.0])]
    means = [2, 3, 2, 3]
    off = T_OF_3 * np.std(means, ddof=1) / 2
    assert api.interval(repetitions) == pytest.approx((2.5, 2.5 - off, 2.5 + off))


def test_an_interval_needs_four_repetitions_and_a_tail_a_thousand_values():
    value, low, high = api.interval([[1, 2], [3, 4]], "median")
    assert value == 2.5
    assert np.isnan([low, high]).all()
    with pytest.raises(UsageError, match="99th percentile of 4 values"):
        api.interval([[1, 2], [3, 4]], "p99")
    with pytest.raises(UsageError, match="without values"):
        api.interval([[1], []])
    assert api.interval([np.arange(300.0)] * 4, "p99").value == pytest.approx(296.01)


def test_a_comparison_is_drawn_with_a_point_for_each_job_and_variant():
    found = api.compare(api.open_results("unfair-vgg19/packets"))
    rows = found[found["setting"] == "figure fig-1"]
    figure, axes = plt.subplots()
    api.draw_comparison(axes, rows)
    points = [each for each in axes.lines if each.get_marker() == "o"]
    assert [each.get_label() for each in points] == ["j1", "j2"]
    shown = rows.dropna(subset=["speedup"])
    assert sorted(np.concatenate([each.get_ydata() for each in points])) == sorted(shown["speedup"])
    assert [each.get_text() for each in axes.get_xticklabels()] == list(shown["variant"].unique())
    plt.close(figure)


def test_jobs_are_drawn_as_bars_of_computing_and_communicating(run):
    found = api.iterations(run)
    trial = found[found["trial"] == found["trial"].iloc[-1]]
    figure, axes = plt.subplots()
    api.draw_jobs(axes, trial)
    jobs = list(trial["job"].unique())
    assert [each.get_text() for each in axes.get_yticklabels()] == jobs
    sending = axes.collections[1]
    first = trial[trial["job"] == jobs[0]].iloc[0]
    (left, _), (right, _) = sending.get_paths()[0].get_extents().get_points()
    assert (left, right) == pytest.approx((first["compute_end_ms"], first["end_ms"]))
    plt.close(figure)
