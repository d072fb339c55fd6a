# SPDX-License-Identifier: Apache-2.0
"""Figures of disturbed trials: they are shown, marked, wider, and decide nothing."""

import json
import shutil
from types import SimpleNamespace

import numpy as np
import pytest
from rich.console import Console

from analysis.expectations.results import Summary
from analysis.expectations.verdicts import judge_expectation
from analysis.papers import Claim
from analysis.quantities import CachedReading
from analysis.reading.cells import cells_of
from analysis.reading.disturbance import widen
from analysis.reports import about
from analysis.reports.comparison import compare, table as comparison_table
from analysis.reports.guard import judge_rules, junit, parse_rule
from analysis.reports.report import terminal_report
from analysis.reports.scoreboard import newest_runs
from analysis.reports.summary import summarize_run
from analysis.reports.testbed_comparison import cell_tables, compare_testbeds
from analysis.studies.levels.figures import draw_times
from analysis.studies.load_sweep.degradation_figures import CurveSeries, draw_degradation
from roundabout.cli.runs.runs import describe_run
from roundabout.cli.runs.status import print_status, status_of
from roundabout.spec.expectation import Bound
from roundabout.store import Run
from roundabout.terminal.validity import UnmeasuredError, check_measured

pytestmark = pytest.mark.unit

EFFECT = 0.07
EACH = range(1, 6)
ALL_OF_ONE = {(variant, 1): EFFECT for variant in ("alone", "fair", "unfair")}
REASON = "other virtual machines took 7.0% of the CPU over the whole trial (limit 3%)"


def shown(renderable, width=80):
    console = Console(width=width, color_system=None)
    with console.capture() as captured:
        console.print(renderable)
    return captured.get()


def disturb(run, folder, effects, name=None, state=None):
    """Copy a run into `folder`, with the trials in `effects` (variant, repetition -> effect) disturbed."""
    name = name or run.id
    # What other tests wrote from the run's figures is not the copy's.
    copy = shutil.copytree(run.path, folder / run.experiment / name, ignore=shutil.ignore_patterns("summary.json"))
    manifest = json.loads((copy / "manifest.json").read_text())
    (copy / "manifest.json").write_text(json.dumps(manifest | {"run": name}))
    for path in copy.glob("trials/*/trial.json"):
        listed = json.loads(path.read_text())
        del listed["sha256"]
        listed["run"] = name
        if effect := effects.get((listed["variant"], listed["repetition"])):
            listed |= {"valid": False, "disturbed": True, "disturbance": effect, "reason": REASON, **(state or {})}
        path.write_text(json.dumps(listed))
    return Run(copy)


@pytest.fixture(scope="module")
def disturbed(run, tmp_path_factory):
    """The same figures, of which all of the variant fair were disturbed, and one of unfair."""
    effects = {("fair", repetition): EFFECT for repetition in EACH} | {("unfair", 2): 0.5}
    return disturb(run, tmp_path_factory.mktemp("disturbed"), effects)


@pytest.fixture(scope="module")
def marked(disturbed):
    return summarize_run(disturbed)


def test_a_cell_of_disturbed_trials_has_figures_and_a_mark(disturbed, marked):
    alone, fair, unfair = cells_of(disturbed)
    assert [cell.name for cell in (alone, fair, unfair)] == ["alone", "fair (disturbed)", "unfair"]
    assert (fair.disturbance, len(fair.trials)) == (EFFECT, 5)
    assert {cell.name: cell.repetitions for cell in marked.cells} == {"alone": 5, "fair (disturbed)": 5, "unfair": 4}
    assert [cell.invalid for cell in marked.cells if cell.variant == "unfair"] == [1, 1]


def test_a_quiet_repetition_is_preferred_and_the_others_are_named(marked):
    listed = {each.name: (each.counted, each.effect) for each in marked.disturbed_trials}
    assert listed == {f"fair, repetition {n}": (True, EFFECT) for n in EACH} | {"unfair, repetition 2": (False, 0.5)}
    assert marked.invalid_trials == ()


def test_intervals_are_wider_by_the_estimated_effect(results, marked):
    before = {(cell.variant, cell.job): cell for cell in results.cells}
    for cell in marked.cells:
        was = before[cell.variant, cell.job]
        if cell.variant == "alone":
            assert (cell.median_ms, cell.median_ci95_ms) == (was.median_ms, was.median_ci95_ms)
        if cell.variant == "fair":
            low, high = was.median_ci95_ms
            assert cell.median_ms == was.median_ms
            assert cell.median_ci95_ms == pytest.approx((low / (1 + EFFECT), high * (1 + EFFECT)))
        if cell.variant == "unfair":  # over a disturbed baseline
            assert cell.speedup_ci95[1] - cell.speedup_ci95[0] > 1.5 * EFFECT
    assert widen((5.0, None), EFFECT) == (5.0, None)
    assert widen((5.0, (4.0, 6.0)), None) == (5.0, (4.0, 6.0))


def test_verdicts_on_disturbed_trials_are_at_most_inconclusive_and_say_why(results, marked):
    assert "pass" in {each.verdict for each in results.expectations}
    for each, was in zip(marked.expectations, results.expectations, strict=True):
        if each.disturbed:
            assert each.disturbed == ("fair",)
            assert each.verdict not in ("pass", "fail")
            assert {part.verdict for part in each.parts} <= {"inconclusive", "not measured"}
            assert "; inconclusive because disturbed: fair" in each.found
        else:
            assert "fair" not in (each.of, each.over)
            assert each.of is not None
            assert each.verdict == was.verdict
    changed = zip(marked.expectations, results.expectations, strict=True)
    assert any(each.disturbed and was.verdict == "pass" for each, was in changed)


def test_verdicts_on_quiet_variants_stay(disturbed):
    reading = CachedReading(disturbed)

    def verdict(variant):
        bound = Bound(what="median iteration time", of=variant, at_least=1, basis="predicted")
        found = judge_expectation(reading, Claim(bound))
        return found.verdict, found.disturbed

    assert verdict("unfair") == ("pass", ())
    assert verdict("fair") == ("inconclusive", ("fair",))
    assert verdict(None) == ("inconclusive", ("fair",))


def test_the_terminal_report_marks_cells_verdicts_and_trials(marked):
    text = shown(terminal_report(marked))
    assert max(map(len, text.splitlines())) <= 80
    assert "(disturbed)" in text
    assert "disturbed, ±7%: fair, repetition 1: other virtual machines took" in " ".join(text.split())
    assert "disturbed, left out: unfair, repetition 2" in " ".join(text.split())
    assert "? inconclusive" in text


def test_the_page_begins_with_what_was_disturbed(marked, disturbed):
    head = str(about.page_header(disturbed, marked))
    assert "5 trials that count were disturbed by a lack of CPU time" in head
    assert "up to 7%" in head
    assert "other virtual machines took 7.0%" in head


def test_figures_have_hollow_points_and_a_note(marked):
    def notes(figure):
        return [text.get_text() for panel in figure.axes for text in panel.texts if "disturbed" in text.get_text()]

    line = SimpleNamespace(name="line", job="j1", cells=[cell for cell in marked.cells if cell.job == "j1"])
    shown_levels = draw_times(SimpleNamespace(factor="variant", lines=(line,)))
    assert notes(shown_levels) == ["hollow: disturbed"]
    (hollow,) = [each for each in shown_levels.axes[0].lines if each.get_markerfacecolor() == "white"]
    fair = next(cell for cell in line.cells if cell.variant == "fair")
    assert list(hollow.get_ydata()) == [fair.median_ms]
    loads, means = np.array([0.0, 10.0, 20.0]), np.array([1.0, 1.5, 4.0])
    for disturbed, expected in (((False, True, True), ["hollow: disturbed"] * 2), ((False,) * 3, [])):
        series = CurveSeries(loads, means, means, 24.0, disturbed=disturbed)
        assert notes(draw_degradation({"a sweep": series})) == expected


def test_a_quiet_page_says_nothing_of_it(run, results):
    assert "disturb" not in str(about.page_header(run, results))


def test_stored_results_keep_the_marks(marked):
    stored = json.loads(json.dumps(marked.record()))
    found = type(marked).model_validate(stored)
    assert found == marked
    assert stored["disturbed_trials"][0]["counted"]


def test_older_results_without_marks_are_read(marked):
    stored = marked.record()
    for cell in stored["cells"]:
        del cell["disturbance"]
    for each in stored["expectations"]:
        del each["disturbed"]
    del stored["disturbed_trials"]
    assert Summary.model_validate(stored).disturbed_trials == ()


def test_a_comparison_shows_which_side_was_disturbed(run, disturbed):
    both = compare(run, disturbed)
    listed = {(cell.variant, cell.a.disturbance, cell.b.disturbance) for cell in both.cells}
    assert listed == {("alone", None, None), ("fair", None, EFFECT), ("unfair", None, None)}
    text = shown(comparison_table(both), 100)
    assert text.count("B disturbed") == 2
    assert text.count("no difference shown") == 4


def test_no_rule_is_judged_on_disturbed_trials(run, disturbed):
    judged = judge_rules([parse_rule("median > 1 %")], run, [disturbed])
    words = {(each.cell, each.verdict) for each in judged}
    assert words == {("alone", "pass"), ("fair", "inconclusive"), ("unfair", "pass")}
    assert {each.why for each in judged if each.cell == "fair"} == {f"trials were disturbed in {disturbed.id}"}
    assert junit(judged).count("<skipped") == 2


def test_lists_of_runs_count_disturbed_trials(disturbed, tmp_path, capsys):
    disturbed.refresh_trials()
    found = describe_run(disturbed, tmp_path)
    assert {name: found[name] for name in ("valid", "disturbed", "invalid")} == {
        "valid": 14,
        "disturbed": 6,
        "invalid": 0,
    }
    status = status_of(disturbed, tmp_path)
    assert len(status["disturbed"]) == 6
    assert status["invalid"] == []
    print_status(status)
    assert capsys.readouterr().out.count("  disturbed: ") == 6


def test_a_run_with_disturbed_trials_alone_is_measured_with_a_warning(make_run, tmp_path, capsys):
    quiet = make_run(repetitions=1)
    check_measured(disturb(quiet, tmp_path / "disturbed", ALL_OF_ONE))
    warned = capsys.readouterr().err
    assert "disturbed by a lack of CPU time, 3 of 3 cells: alone, fair, unfair" in warned
    assert "up to 7% off" in warned
    with pytest.raises(UnmeasuredError):
        check_measured(disturb(quiet, tmp_path / "wrong", ALL_OF_ONE, state={"disturbed": False}))


def test_the_scoreboard_prefers_a_run_with_valid_trials(make_run, tmp_path):
    quiet = make_run(repetitions=1)
    newer = disturb(quiet, tmp_path / "runs", ALL_OF_ONE, "20261122T093012Z-7f3b")
    assert [run.path for run, _ in newest_runs(tmp_path / "runs", pytest.fail)] == [quiet.path]
    quiet.delete()
    assert [run.path for run, _ in newest_runs(tmp_path / "runs", pytest.fail)] == [newer.path]


def test_a_testbeds_quiet_run_stays_beside_a_newer_disturbed_one(make_run, tmp_path):
    quiet = make_run(repetitions=1)
    other = disturb(quiet, tmp_path / "runs", {}, "20261120T093012Z-7f3b")
    other.write_manifest({**other.manifest, "testbed": other.manifest["testbed"] | {"kind": "rack"}})
    newer = disturb(quiet, tmp_path / "runs", ALL_OF_ONE, "20261122T093012Z-7f3b")
    found = compare_testbeds(quiet.experiment, tmp_path / "runs")
    assert [each.run for each in found.runs] == [quiet.id, other.id]
    quiet.delete()
    found = compare_testbeds(newer.experiment, tmp_path / "runs")
    assert [each.run for each in found.runs] == [newer.id, other.id]
    assert {each.testbeds["lab"].disturbance for each in found.cells} == {EFFECT}
    cells = [table for table in cell_tables(found) if table.sections]
    marks = [row[0].note for table in cells for row in table.sections[0].rows]
    assert marks == ["disturbed: lab"] * 12
