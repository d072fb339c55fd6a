# SPDX-License-Identifier: Apache-2.0
"""When jobs are interleaved, how far apart they are, and the study that shows variants beside each other."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st
from jsonschema import Draft202012Validator

from analysis.quantities import CachedReading, QuantityRequest, find_quantity
from analysis.reading.cells import cells_of
from analysis.reading.congestion.marks_and_drops import count_signals, counts_of_cell
from analysis.reading.phase_overlap import (
    LASTING_ITERATIONS,
    OVERLAP,
    compute_offsets,
    compute_overlaps,
    first_lasting,
    simulate_from_spans,
)
from analysis.reading.traces import read_traces, spans_of_cells
from analysis.render.link_use import draw_link_use
from analysis.reports.report import terminal_report, write_report
from analysis.reports.summary import summarize_run
from analysis.studies.variants.figures import draw_gain_by_score, draw_losses, prepare_cell
from analysis.studies.variants.study import Gain
from tests.computed_runs import compute_run
from tests.fluid.mltcp_theory import iterations_to_reach

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[2]
PERIOD = 100.0


def spans(begin, length, count=20):
    begins = begin + PERIOD * np.arange(count)
    return np.stack([begins, begins + length], axis=1)


# --- overlap and offsets ---------------------------------------------------------------------------------------------


@given(st.floats(0, 50), st.floats(10, 45), st.floats(10, 45))
def test_an_overlap_is_over_the_shorter_phase(late, one, other):
    found = compute_overlaps({"j1": spans(0, one), "j2": spans(late, other, count=21)})
    assert found == pytest.approx(np.full(20, np.clip(one - late, 0, other) / min(one, other)), abs=1e-9)


def test_any_two_jobs_count_and_each_iteration_by_itself():
    j1, j2, j3 = spans(0, 20), spans(30, 20), spans(60, 20)
    assert not compute_overlaps({"j1": j1, "j2": j2, "j3": j3}).any()
    j3[7:] -= 20  # half of j2's phase, from the eighth on
    found = compute_overlaps({"j1": j1, "j2": j2, "j3": j3})
    # What begins after the first job has ended its eighth iteration's communication is of its ninth.
    assert np.flatnonzero(found).tolist() == list(range(8, 20))
    assert found[8:] == pytest.approx(0.5)


def test_after_a_job_has_ended_nothing_is_called_interleaved():
    assert len(compute_overlaps({"j1": spans(0, 20), "j2": spans(10, 20, count=5)})) == 5


@pytest.mark.parametrize("first", [1, 4, 20])
def test_interleaved_is_what_lasts(first):
    apart = np.full(first - 1 + LASTING_ITERATIONS, OVERLAP)
    apart[first - 1 :] = 0.99 * OVERLAP
    assert first_lasting(apart) == first
    assert first_lasting(apart[:-1]) is None  # one iteration too few
    apart[first - 1 + LASTING_ITERATIONS // 2] = OVERLAP
    assert first_lasting(apart) is None


@given(st.floats(-49, 49))
def test_an_offset_is_a_distance_on_the_circle(late):
    found = compute_offsets({"j1": spans(1000, 20), "j2": spans(1000 + late, 20, count=25)})["j2"]
    assert found == pytest.approx(np.full(20, abs(late)))
    slipped = compute_offsets({"j1": spans(1000, 20), "j2": spans(1000 + late - 2 * PERIOD, 20, count=25)})["j2"]
    assert slipped == pytest.approx(found)


# --- a run of the fluid model ----------------------------------------------------------------------------------------

EXPERIMENT = """
name: ways
about: Two jobs, fair and with MLTCP
topology: dumbbell-2x2
jobs:
  j1: {profile: saturating, workers: [s0, s2], flows: 4}
  j2: {profile: saturating, workers: [s1, s3], flows: 4}
iterations: 20
transport: {name: reno}
factors:
  jobs.j2.start_offset_ms: [0.14, 14]
  variant:
    alone: {one_job_at_a_time: true, iterations: 3}
    fair: {}
    mltcp: {transport: {name: mltcp_reno}}
study: variants
expect:
  - {what: offset between jobs by iteration, of: mltcp, at: {jobs.j2.start_offset_ms: 0.14},
     curve: [[1, 0.14], [20, 140]], tolerance: 0.1, basis: by construction}
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = tmp_path_factory.mktemp("ways") / "ways.yaml"
    path.write_text(EXPERIMENT)
    return compute_run(path)


@pytest.fixture(scope="module")
def results(run):
    return summarize_run(run)


def values(run, what, **options):
    return {
        case.name: case.value for case in find_quantity(what).measure(QuantityRequest(CachedReading(run), **options))
    }


def test_mltcp_comes_apart_as_the_theory_says_and_fair_shares_never(run):
    found = values(run, "iterations until jobs are apart", of="mltcp")
    assert list(found.values()) == [iterations_to_reach(0.99, part, 1.75, 0.25) for part in (0.001, 0.1)]
    (never,) = set(values(run, "iterations until jobs are apart", of="fair").values())
    assert never == np.inf
    assert list(values(run, "growth of the offset in an iteration, in odds", of="mltcp").values()) == pytest.approx(
        [8, 8]
    )
    apart = values(run, "iteration from which jobs stay interleaved", of="mltcp")
    assert all(1 < each < 8 for each in apart.values())


def test_the_theory_begun_where_a_trial_began_is_the_trial(run):
    cells = cells_of(run)
    found = spans_of_cells(run, cells)
    for cell in (each for each in cells if each.spec.has_concurrent_jobs):
        (trial,) = cell.trials
        sending, times = simulate_from_spans(cell.spec, found[trial])
        for job in cell.jobs:
            assert times[job] == pytest.approx(cell.repetitions(job)[0], abs=1e-3)
        assert compute_offsets(sending)["j2"] == pytest.approx(compute_offsets(found[trial])["j2"], abs=1e-3)


def test_speedups_are_over_the_cell_of_the_same_other_levels(run):
    gains = values(run, "speedup of mean iteration time", of="mltcp", over="fair")
    assert len(gains) == 4
    assert gains["start_offset_ms 14, j2"] > 1.3
    pooled = values(run, "speedup of mean iteration time, mean of cells", of="mltcp", over="fair")
    for job in ("j1", "j2"):
        assert pooled[job] == pytest.approx(np.mean([gain for name, gain in gains.items() if name.endswith(job)]))
    settled = values(run, "speedup of median iteration time, last half", of="mltcp", over="alone")
    assert list(settled.values()) == pytest.approx([1.0] * 4, abs=1e-3)
    tails = values(run, "speedup of 99 % tail of iteration time", of="mltcp", over="fair")
    assert all("max of 20 over 20" in name for name in tails)


def test_the_study_has_a_row_a_cell_and_says_what_was_not_counted(results):
    schema = json.loads((ROOT / "docs/reference/summary.schema.json").read_text())
    Draft202012Validator(schema).validate(json.loads(json.dumps(results.record(), allow_nan=False)))
    assert [(gain.name, gain.job) for gain in results.gains] == 2 * [
        ("alone", "j1"), ("alone", "j2"), ("mltcp", "j1"), ("mltcp", "j2")
    ]  # fmt: skip
    # The first job has the link to itself for as long as the offset, and 2 x (140 - offset) ms in halves.
    assert [gain.possible for gain in results.gains if gain.job == "j1"] == pytest.approx(
        [(430 - offset_ms) / 290 for offset_ms in (0.14, 0.14, 14, 14)], rel=1e-3
    )
    assert all(gain.at_most == pytest.approx(gain.possible) for gain in results.gains)  # two that fit lose nothing
    never = [(each.name, each.interleaved is None) for each in results.meetings]
    assert never == 2 * [("fair", True), ("mltcp", False)]
    assert {each.told for each in results.meetings if each.name == "fair"} == {"never"}
    assert all(each.marks is None for each in results.meetings)
    assert [verdict.verdict for verdict in results.expectations] == ["pass"]
    assert terminal_report(results)


def test_the_page_shows_every_group(run, results):
    run.write_summary(results.record())
    text = write_report(run).read_text()
    assert len(re.findall("<img ", text)) == 8
    for words in (
        "Use of L1 over time",
        "L1: circles before and after rotation",
        "start_offset_ms 0.14",
        "fluid, interleaved",
        "Not counted: marks and drops.",
    ):
        assert words in text


def test_link_use_is_stacked_up_to_what_the_link_carries(run):
    cells = [cell for cell in cells_of(run) if cell.spec.has_concurrent_jobs][:2]
    drawn = draw_link_use([each[0] for each in read_traces(run, cells)], settled=True)
    assert [panel.get_title("left") for panel in drawn.axes] == [cell.variant for cell in cells]
    tops = []
    for panel in drawn.axes:
        assert panel.lines[0].get_ydata()[0] == 43
        tops.append([stack.get_paths()[0].vertices[:, 1].max() for stack in panel.collections])
    # Fair shares stand on each other up to the link's rate. Once apart, each of two that saturate it has it for itself.
    assert tops[0] == pytest.approx([43, 43], rel=0.05) or tops[0] == pytest.approx([21.5, 43], rel=0.05)
    assert tops[1] == pytest.approx([43, 43], rel=0.05)


# --- marks and drops -------------------------------------------------------------------------------------------------


def test_each_mark_of_a_port_is_in_an_iteration(short_run):
    cells = cells_of(short_run)
    found = count_signals(short_run, cells, ["marks"])
    fair = next(cell for cell in cells if cell.variant == "fair")
    (per_iteration,) = counts_of_cell(found, fair)
    assert len(per_iteration) in (49, 50)  # the last one may end after the last sample
    assert per_iteration.mean() > 50  # the toy marks 2.5 a ms while both send
    lost = values(short_run, "marks and drops per iteration", of="fair")
    assert list(lost.values()) == [pytest.approx(per_iteration.mean())]
    alone = values(short_run, "marks and drops per iteration", of="alone")
    assert list(alone.values()) == [0]
    (fewer,) = find_quantity("fewer marks and drops per iteration").measure(
        QuantityRequest(CachedReading(short_run), of="alone", over="fair")
    )
    assert fewer.value == np.inf


def test_gains_of_time_shifts_are_drawn_against_the_score():
    def gain(level, score, mean=1.2, ci95=None):
        others = dict.fromkeys(("tail_ci95", "possible", "at_most"))
        measured = {"mean": mean, "mean_ci95": ci95, "tail": 1.1, "tail_of": "", "score": score}
        return Gain(levels={"pair": level, "variant": "cassini"}, over="variant", job="j1", **measured, **others)

    colours = {"cassini": "#000000"}
    found = draw_gain_by_score([gain("near", 0.9), gain("far", 0.6, 1.01, (0.99, 1.03)), gain("fair", None)], colours)
    (panel,) = found.axes
    drawn = [tuple(map(float, line.get_xydata()[0])) for line in panel.lines if line.get_marker() == "o"]
    assert drawn == [(0.9, 1.2), (0.6, 1.01)]
    assert {"pair near", "pair far", "no gain"} == {text.get_text() for text in panel.texts}
    assert draw_gain_by_score([gain("near", 0.9), gain("fair", None)], colours) is None


def test_losses_are_drawn_of_jobs_that_train(run):
    cells = cells_of(run)
    some = [prepare_cell(cell.name, cell, {}) for cell in cells]
    colours = dict.fromkeys([each.name for each in some], "#000000")
    assert draw_losses(some, {}, colours) is None
    trains = cells[1]
    fallen = np.array([2.0, 1.0, 0.5])
    drawn = draw_losses(some, {(trains.trials[0], "j2"): fallen}, colours)
    assert [(panel.get_title("left"), len(panel.lines)) for panel in drawn.axes] == [("j1: loss", 0), ("j2: loss", 1)]
    assert drawn.axes[1].lines[0].get_ydata() == pytest.approx(fallen)
    assert [text.get_text() for text in drawn.legends[0].get_texts()] == [trains.name]
