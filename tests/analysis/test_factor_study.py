# SPDX-License-Identifier: Apache-2.0
"""The study of levels: any factor along the x-axis, in numbers or in names."""

from pathlib import Path

import pytest

from analysis.reports.report import write_report
from analysis.reports.summary import summarize_run
from analysis.studies.levels import figures
from analysis.studies.levels.tables import time_table
from roundabout.spec import load_experiment
from roundabout.store import Run
from tests.analysis.synthetic_runs import manifest
from tests.analysis.unfair_runs import SCALE, add_trial

pytestmark = pytest.mark.unit

EXPERIMENT = """
name: timers
about: Two jobs, whose timers are changed
topology: dumbbell-2x2
iterations: 4
jobs: {j1: {profile: vgg19-fig1, workers: [s0, s2]}, j2: {profile: vgg19-fig1, workers: [s1, s3]}}
transport: {name: dcqcn}
factors:
  variant: {fair: {}, unfair: {}}
  %s
study: levels
"""
NO_VARIANTS = EXPERIMENT.replace("  variant: {fair: {}, unfair: {}}\n", "").replace("study: levels\n", "")
NUMBERS = "transport.T_us: [100, 125, 400]"
NAMES = "timer: {short: {transport: {T_us: 100}}, long: {transport: {T_us: 400}}}"


def made(folder, timers, text=EXPERIMENT):
    path = folder / "timers.yaml"
    path.write_text(text % timers)
    experiment = load_experiment(path, Path(__file__).parents[2] / "experiments")
    run = Run.create(folder, experiment.name, manifest(experiment, SCALE, "build/bin/replay"), "20261121T093012Z-7f3a")
    for cell in experiment.cells:
        add_trial(run, cell, None, 1)
    return run


def test_a_factor_in_numbers_lies_at_its_values(tmp_path):
    run = made(tmp_path, NUMBERS)
    results = summarize_run(run)
    assert results.factor == "transport.T_us"
    assert [(line.name, line.job, len(line.cells)) for line in results.lines] == [
        ("fair", "j1", 3), ("fair", "j2", 3), ("unfair", "j1", 3), ("unfair", "j2", 3)
    ]  # fmt: skip
    for line in results.lines:
        assert line.best == min(line.cells, key=lambda cell: cell.median_ms).levels["transport.T_us"]
    panel, _ = figures.draw_times(results).axes
    assert panel.get_xlabel() == "transport.T_us"
    assert panel.lines[0].get_xdata().tolist() == [100, 125, 400]
    run.write_summary(results.record())
    page = write_report(run).read_text()
    assert page.count("<img ") == 1
    assert page.count(">least<") == 4


def test_a_factor_in_names_lies_in_their_order(tmp_path):
    results = summarize_run(made(tmp_path, NAMES))
    panel, _ = figures.draw_times(results).axes
    assert panel.lines[0].get_xdata().tolist() == [0, 1]
    assert [tick.get_text() for tick in panel.get_xticklabels()] == ["short", "long"]
    assert [row[1].value for row in time_table(results).sections[0].rows] == ["short", "long"]


@pytest.mark.parametrize("factor", ["timer", "variant"])
def test_the_factor_may_be_named(tmp_path, factor):
    run = made(tmp_path, NAMES)
    run.write_manifest(
        run.manifest | {"experiment": {**run.manifest["experiment"], "study": {"over": factor, "kind": "levels"}}}
    )
    assert {len(line.cells) for line in summarize_run(run).lines} == {2}
    assert summarize_run(run).factor == factor


def test_levels_are_compared_with_the_first_or_the_named_baseline(tmp_path):
    results = summarize_run(made(tmp_path, NUMBERS, NO_VARIANTS))
    assert (results.study.kind, results.study.baseline) == ("levels", 100)
    assert {cell.baseline for cell in results.cells} == {None, "100"}
    assert [cell.speedup is None for cell in results.lines[0].cells] == [True, False, False]
    assert [cell.name for cell in results.lines[0].cells] == ["T_us 100", "T_us 125", "T_us 400"]
    (tmp_path / "other").mkdir()
    named = summarize_run(made(tmp_path / "other", NUMBERS, f"{NO_VARIANTS}study: {{baseline: 125}}\n"))
    assert [cell.speedup is None for cell in named.lines[0].cells] == [False, True, False]
