# SPDX-License-Identifier: Apache-2.0
"""The sentence and the picture at the top of a report say what the run measured."""

import json
import re

import pytest

from analysis.expectations.outcomes import ALONE
from analysis.expectations.results import Summary
from analysis.reports.outcome import MAX_ROWS, describe_outcome, outcome_html
from analysis.reports.publishing.row_tables import expand_tables
from analysis.studies import find_study
from roundabout.core.paths import ROOT

pytestmark = pytest.mark.unit


def published(experiment, testbed, results=Summary):
    """The summary of a published run."""
    record = json.loads((ROOT / "results" / experiment / testbed / "summary.json").read_text())
    return results.model_validate({name: expand_tables(value) for name, value in record.items()})


def changed(results, **fields):
    """The same results with these fields in every cell of a job."""
    return results.model_copy(update={"cells": tuple(cell.model_copy(update=fields) for cell in results.cells)})


def rows_of(html):
    """The text of each row's cells, without the rows of the axis and of groups."""
    rows = re.findall(r"<tr>\n?<td class=\"name\".*?</tr>", html, re.DOTALL)
    return [[re.sub(r"<[^>]+>", "", cell) for cell in re.findall(r"<td[^>]*>(.*?)</td>", row)] for row in rows]


def test_each_speed_up_has_a_row_with_its_interval(results):
    shown = [(*row[:2], row[3]) for row in rows_of(outcome_html(results))]
    assert shown == [
        (cell.variant, cell.job, f"{cell.speedup:.2f} {cell.speedup_ci95[0]:.2f} to {cell.speedup_ci95[1]:.2f}")
        for cell in results.cells
        if cell.speedup
    ]


def test_marks_stand_in_the_order_of_their_figures(results):
    html = outcome_html(results)
    places = [float(at) for at in re.findall(r'<circle cx="([\d.]+)%"', html)]
    speeds = [cell.speedup for cell in results.cells if cell.speedup]
    assert sorted(range(len(speeds)), key=places.__getitem__) == sorted(range(len(speeds)), key=speeds.__getitem__)
    assert all(0 <= place <= 100 for place in places)


def test_the_sentence_gives_one_figure_for_jobs_that_are_alike(results):
    alike = changed(results, speedup=1.5, speedup_ci95=(1.4, 1.6), baseline="fair")
    assert describe_outcome(alike).startswith(
        "Emulated (lab): compared with fair, both jobs are 1.50 times as fast (1.40 to 1.60) under fair"
    )


def test_the_sentence_leaves_out_jobs_that_run_alone(results):
    assert "under unfair" in describe_outcome(results)
    assert "alone" not in describe_outcome(results)
    assert ["alone", "j1"] in [row[:2] for row in rows_of(outcome_html(results))]


def test_an_interval_with_1_in_it_shows_no_difference(results):
    assert "no difference shown" in describe_outcome(changed(results, speedup=1.01, speedup_ci95=(0.98, 1.04)))


def test_without_a_baseline_jobs_are_compared_with_the_model_alone(results):
    steady = changed(results, speedup=None, speedup_ci95=None, baseline=None, limit="fair")
    assert {speed.baseline for speed in steady.speeds} == {ALONE}
    for speed, cell in zip(steady.speeds, steady.cells, strict=True):
        assert speed.speed == pytest.approx(cell.fluid.alone_ms / cell.typical_ms)
        assert speed.interval[0] < speed.speed < speed.interval[1]


def test_a_load_sweep_is_compared_with_its_least_load():
    results = published("cross-traffic-all", "packets")
    times_ms = {(json.dumps(cell.levels, sort_keys=True), cell.job): cell.typical_ms for cell in results.cells}
    for speed in results.speeds:
        own, base = (json.dumps(speed.levels | {"load_gbps": load}, sort_keys=True) for load in (
            speed.levels["load_gbps"], 0
        ))  # fmt: skip
        assert speed.speed == pytest.approx(times_ms[base, speed.job] / times_ms[own, speed.job])
    assert "compared with load 0 Gbit/s" in describe_outcome(results)


def test_many_figures_share_the_rows_of_one_factor():
    results = published("cross-traffic-all", "packets")
    assert len(results.speeds) > MAX_ROWS
    html = outcome_html(results)
    assert html.count("<circle") == len(results.speeds)
    assert [row[0] for row in rows_of(html)] == [f"load {load} Gbit/s" for load in (6, 11, 14, 16, 18, 20)]


def test_a_cluster_has_a_row_for_each_scheduler_beside_its_baseline():
    results = published("cluster-poisson", "fluid", find_study("cluster").results)
    found = {speed.levels["variant"]: speed.speed for speed in results.speeds}
    expected = {cell.name: cell.speedup_mean.value for cell in results.pooled if cell.speedup_mean}
    assert found == expected
    assert len(found) > 5
    assert "ideal" not in describe_outcome(results)  # each job in a cluster of its own


def test_a_run_that_measured_nothing_has_no_picture(results):
    empty = results.model_copy(update={"cells": ()})
    assert describe_outcome(empty) == ""
    assert outcome_html(empty) == ""
