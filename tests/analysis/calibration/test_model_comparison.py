# SPDX-License-Identifier: Apache-2.0
"""What was predicted of cells, beside what a run measured of them."""

import json
from types import SimpleNamespace

import pytest

from analysis.calibration.model_comparison import ModelComparison, compare_predictions, refuse_another, table
from analysis.reading.cells import cells_of, experiment_of, first_shares
from analysis.reading.speedups import speedup
from analysis.render import screen
from analysis.statistics.intervals import mean_of
from roundabout.store import StoreError
from roundabout.terminal.screen import Screen

pytestmark = pytest.mark.unit


def predicted(run, share, gain, change=lambda levels: levels):
    """A prediction of each cell in which jobs meet."""
    cells = (cell for cell in experiment_of(run).cells if not cell.spec.one_job_at_a_time)
    return [
        SimpleNamespace(
            cell=SimpleNamespace(levels=change(cell.levels), variant=cell.variant), share=share, speedup=gain
        )
        for cell in cells
    ]


def measured(run):
    cells = {cell.variant: cell for cell in cells_of(run)}
    share = mean_of(first_shares(run, cells["unfair"], "j1", "j2"))
    return share, speedup(cells["fair"], cells["unfair"], None)


def test_measured_figures_stand_beside_predictions_with_intervals(run):
    (share, share_ci95), (gain, gain_ci95) = measured(run)
    fair, unfair = compare_predictions(predicted(run, share, gain), run)
    assert fair.speedup is None
    assert (unfair.share.measured, unfair.share.ci95) == (share, share_ci95)
    assert (unfair.speedup.measured, unfair.speedup.ci95) == (gain, gain_ci95)
    assert unfair.share.allowed == pytest.approx(0.1 * share)
    assert unfair.record()["speedup"]["foretold"] == gain
    assert json.dumps(unfair.record())
    assert "speedup" not in fair.record()


@pytest.mark.parametrize(
    ("ends", "word"),
    [((0.95, 1.05), "pass"), ((0.7, 0.8), "fail"), ((0.85, 1.0), "inconclusive"), ((0.5, 1.5), "inconclusive")],
)
def test_the_verdict_follows_the_interval(ends, word):
    assert ModelComparison(1.0, 0.1, 1.0, ends).verdict == word


def test_without_an_interval_nothing_is_decided_and_that_is_said(short_run, capsys):
    (share, ends), (gain, _) = measured(short_run)
    assert ends is None
    rows = compare_predictions(predicted(short_run, share, gain + 0.1), short_run)
    assert (rows[1].share.verdict, rows[1].speedup.verdict) == ("inconclusive", "inconclusive")
    Screen(width=120).print(screen.table_renderable(table(experiment_of(short_run), rows)))
    shown = capsys.readouterr().out
    assert "no interval" in shown
    assert f"{share:.2f}" in shown
    assert "inconclusive" in shown


def test_a_cell_that_was_not_measured_is_said_to_be(make_run):
    run = make_run(repetitions=1, spoilt=[("unfair", 1)])
    _, unfair = compare_predictions(predicted(run, 1.5, 1.2), run)
    assert unfair.share.verdict == unfair.speedup.verdict == "not measured"


def test_a_run_of_other_cells_is_refused(short_run):
    other = predicted(short_run, 1.0, 1.0, lambda levels: {**levels, "case": "other"})
    with pytest.raises(StoreError, match="no valid trial of a predicted cell"):
        compare_predictions(other, short_run)


def test_a_run_of_another_experiment_is_refused_even_with_the_same_levels(short_run):
    own = experiment_of(short_run)
    refuse_another(short_run, own)
    slower = {name: job.model_copy(update={"start_offset_ms": 7.0}) for name, job in own.cells[0].spec.jobs.items()}
    spec = own.cells[0].spec.model_copy(update={"jobs": slower})
    other = own.model_copy(update={"cells": (own.cells[0].model_copy(update={"spec": spec}), *own.cells[1:])})
    with pytest.raises(StoreError, match="found other jobs, transports or links in cell"):
        refuse_another(short_run, other)
