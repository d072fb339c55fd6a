# SPDX-License-Identifier: Apache-2.0
"""`roundabout compare --testbeds`: the newest run of an experiment on each testbed, side by side."""

import json
from pathlib import Path

import pytest

from analysis.reports.summary import summarize_run
from analysis.reports.testbed_comparison import compare_testbeds
from roundabout.cli.main import main
from roundabout.spec.load import build_experiment
from tests.computed_runs import RUNNER
from tests.packets.test_testbed import FILE, run

pytestmark = pytest.mark.unit

SHORT = {**FILE, "iterations": 2, "repetitions": 1}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on the flow-level model, and one packet by packet."""
    path = tmp_path_factory.mktemp("testbeds")
    RUNNER.start(build_experiment(SHORT), "small", path)
    run(SHORT, path)
    return path


def test_each_testbed_has_a_column_of_its_newest_run(folder: Path) -> None:
    found = compare_testbeds("small", folder)
    assert [each.testbed.kind for each in found.runs] == ["fluid", "packets"]
    alone = next(each for each in found.cells if (each.levels, each.job) == ({"variant": "alone"}, "j1"))
    assert alone.testbeds["fluid"].median_ms == pytest.approx(55)
    assert alone.testbeds["packets"].median_ms == pytest.approx(55, rel=0.01)
    fair = next(each for each in found.cells if (each.levels, each.job) == ({"variant": "fair"}, "j1"))
    assert fair.testbeds["packets"].speedup is None


def test_the_command_shows_a_table_or_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "small", "--testbeds", "--runs", str(folder)]) == 0
    shown = capsys.readouterr().out
    assert "computed: packet by packet" in shown
    # Titles are wider than these tables, and stay in one line.
    assert "\nMedian iteration time in ms, with 95 % intervals" in shown
    assert "\nSpeed-up of the median over the same testbed's baseline" in shown
    assert main(["compare", "small", "--testbeds", "--json", "--runs", str(folder)]) == 0
    assert [each["testbed"]["kind"] for each in json.loads(capsys.readouterr().out)["runs"]] == ["fluid", "packets"]


def test_one_testbed_is_too_few(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    summarize_run(RUNNER.start(build_experiment(SHORT), "small", tmp_path))
    assert main(["compare", "small", "--testbeds", "--runs", str(tmp_path)]) == 1
    assert "on these testbeds: fluid; expected two testbeds at least" in capsys.readouterr().err
    assert main(["compare", "small", "other", "--testbeds", "--runs", str(tmp_path)]) == 2
    assert main(["compare", "small", "--runs", str(tmp_path)]) == 2
