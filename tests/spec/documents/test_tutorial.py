# SPDX-License-Identifier: Apache-2.0
"""docs/tutorials/first-half-hour.md in the fluid testbed: every command of it, one after the other, but for pages."""

from pathlib import Path

import pytest

import analysis.reports.report
import roundabout.cli.results.report
from roundabout.cli.main import main
from roundabout.store import Run
from tests.tutorial import COMMANDS, MAY_END_WITH, write_file

pytestmark = pytest.mark.unit


def test_every_command_is_taken_in_its_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for module in (analysis.reports.report, roundabout.cli.results.report):
        monkeypatch.setattr(module, "write_report", lambda run: run.path)
    monkeypatch.setitem(MAY_END_WITH, "doctor", (0, 1))  # what this machine lacks is not the tutorial's
    write_file(tmp_path)
    for name, *words in COMMANDS:
        where = [] if name != "run" or "fluid" in words else ["--testbed", "fluid"]
        assert main([name, *words, *where]) in MAY_END_WITH.get(name, (0,)), (name, words)
    runs = {run.experiment: run for run in Run.all(Path("runs"))}
    assert set(runs) == {"unfair-vgg19", "aggressive", "my-first", "how-aggressive"}
    levels = [trial["levels"] for trial in runs["how-aggressive"].trials()]
    assert len(levels) == 3
    assert (tmp_path / "csv/iterations.csv").exists()
    assert (tmp_path / "rules.xml").exists()


def test_the_tutorial_has_commands() -> None:
    assert len(COMMANDS) > 12
    assert {"new", "plan", "run", "compare", "export"} <= {name for name, *_ in COMMANDS}
