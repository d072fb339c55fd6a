# SPDX-License-Identifier: Apache-2.0
"""The study of traffic patterns: what its quantities are of jobs alone, and of jobs on one circle."""

import pytest

from analysis.reading.cells import cells_of
from analysis.reading.traces import read_traces
from analysis.reports.summary import summarize_run
from analysis.studies.traffic_patterns.figures import draw_pattern
from analysis.studies.traffic_patterns.tables import computing_deg
from roundabout.spec import load_experiment
from tests.computed_runs import RUNNER

pytestmark = pytest.mark.unit


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The experiment of the catalog, computed at flow level."""
    experiment = load_experiment("traffic-patterns")
    return RUNNER.start(experiment, experiment.name, tmp_path_factory.mktemp("patterns") / "runs")


@pytest.fixture(scope="module")
def results(run):
    """The results of its study."""
    return summarize_run(run)


def figures(results, what, of):
    (found,) = {tuple(part.measured for part in each.parts) for each in results.expectations
                if (each.what, each.of) == (what, of)}  # fmt: skip
    return found


def test_quantities_of_jobs_alone(results):
    assert figures(results, "mean iteration time", "vgg16") == pytest.approx((255,), abs=0.1)
    assert figures(results, "parts of an iteration alone", "vgg16") == pytest.approx((141, 114), abs=0.1)
    assert figures(results, "arc of computing", "vgg16") == pytest.approx((360 * 141 / 255,), abs=0.1)
    assert figures(results, "lighter phases of communication", "gpt2-pipeline") == (3,)
    assert figures(results, "bandwidth of communication", "gpt3-tensor") == pytest.approx((25,), abs=0.01)
    assert figures(results, "phases of communication", "gpt3-hybrid") == (6,)


def test_quantities_of_jobs_on_one_circle(results):
    assert figures(results, "perimeter of the unified circle", "two-periods") == (120,)
    assert figures(results, "rotation on the unified circle", "two-periods") == (30,)
    assert figures(results, "compatibility score", "two-periods") == (1,)


def test_the_results_have_each_jobs_circle(results):
    by_name = {each.profile: each for each in results.patterns}
    assert [round(arc.gbps) for arc in by_name["gpt2-pipeline"].arcs] == [16, 16, 16, 35]
    assert computing_deg(by_name["period-40ms"]) == 270
    assert (by_name["period-40ms"].rotation_deg, by_name["period-60ms"].rotation_deg) == (30, 0)
    assert by_name["vgg16-fig3"].score is None


def test_a_pattern_is_drawn_over_time_and_around_a_circle(run, results):
    cell = next(each for each in cells_of(run) if each.variant == "vgg16")
    pattern = next(each for each in results.patterns if each.variant == "vgg16")
    time, circle = draw_pattern(pattern, read_traces(run, [cell])[0][0]).axes
    assert time.get_xlim() == (0, 765)
    assert time.lines[0].get_ydata().max() == pytest.approx(38.8, abs=0.2)
    ring, arc = circle.patches
    assert arc.get_width() / ring.get_width() == pytest.approx(114 / 255)
