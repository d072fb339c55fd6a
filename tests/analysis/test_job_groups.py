# SPDX-License-Identifier: Apache-2.0
"""Variants whose jobs differ, as the groups of HotNets'22, Table 1, have their place in tables and figures."""

import re
from pathlib import Path

import pytest

from analysis.reports.report import terminal_report, write_report
from analysis.reports.summary import summarize_run
from analysis.studies import study_of
from roundabout.spec import load_experiment
from roundabout.store import Run
from tests.analysis.synthetic_runs import manifest
from tests.analysis.unfair_runs import SCALE, add_trial

pytestmark = pytest.mark.unit

GROUPS = """
name: groups
about: Five groups of jobs, each alone on the link
topology: dumbbell-2x2
iterations: 6
transport: {name: dcqcn}
jobs: {j1: {profile: vgg19-fig1, workers: [s0, s2]}, j2: {profile: vgg19-fig1, workers: [s1, s3]}}
factors:
  variant:
    one: {}
    two:
      jobs:
        {j1: null, j2: null, j3: {profile: bert-8, workers: [s0, s2]}, j4: {profile: bert-8, workers: [s1, s3]}}
    three: {jobs: {j2: null, j5: {profile: vgg16-1700, workers: [s1, s3]}}}
    four: {jobs: {j1: null}}
    five: {jobs: {j1: null, j2: null, j6: {profile: resnet50-1600, workers: [s0, s3]}}}
study: {baseline: one}
"""


@pytest.fixture(scope="module")
def groups(tmp_path_factory):
    folder = tmp_path_factory.mktemp("groups")
    path = folder / "groups.yaml"
    path.write_text(GROUPS)
    experiment = load_experiment(path, Path(__file__).parents[2] / "experiments")
    made = manifest(experiment, SCALE, "build/bin/replay")
    run = Run.create(folder, experiment.name, made, "20261121T093012Z-7f3a")
    for cell in experiment.cells:
        add_trial(run, cell, None, 1)
    assert study_of(experiment).kind == "interleaving"
    return run


@pytest.mark.proof
def test_groups_of_other_jobs_have_a_report(groups):
    results = summarize_run(groups)
    groups.write_summary(results.record())
    text = write_report(groups).read_text()
    assert len(re.findall("<img ", text)) == 7
    for words in ("<b>one</b>", "<b>five</b>", "speed-up<br/>over one", "j6"):
        assert words in text
    assert terminal_report(results)


def test_variants_have_their_own_jobs_and_the_studys_baseline(groups):
    results = summarize_run(groups)
    assert [(cell.variant, cell.job) for cell in results.cells] == [
        ("one", "j1"), ("one", "j2"), ("two", "j3"), ("two", "j4"), ("three", "j1"), ("three", "j5"), ("four", "j2"),
        ("five", "j6"),
    ]  # fmt: skip
    compared = {(cell.variant, cell.job): cell.baseline for cell in results.cells}
    assert compared["three", "j1"] == compared["four", "j2"] == "one"
    assert compared["one", "j1"] is None
    assert compared["three", "j5"] is None
