# SPDX-License-Identifier: Apache-2.0
"""docs/how-to/guarding: what is there to be copied is taken by the program as it is, in the fluid testbed.

History.py too.
"""

import csv
import re
import runpy
import shlex
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

import analysis.reports.report
from roundabout.cli.main import main
from roundabout.store import Run

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "docs/how-to/guarding"
GITHUB, GITLAB = (yaml.safe_load((FOLDER / name).read_text()) for name in ("github.yml", "gitlab.yml"))
SCRIPTS: dict[str, list[str]] = {
    "github": [step["run"] for step in GITHUB["jobs"]["guard"]["steps"] if "run" in step],
    "gitlab": GITLAB["guard"]["script"],
}


def commands(script: list[str]) -> list[list[str]]:
    """What it requires of roundabout."""
    found = [re.fullmatch(r"(?:sudo )?roundabout (.+)", line) for line in script]
    return [shlex.split(each[1]) for each in found if each]


def expanded(words: list[str]) -> list[str]:
    """As a shell gives them on."""
    return [name for word in words for name in (sorted(map(str, Path().glob(word))) if "*" in word else [word])]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where both revisions are checked out, and commands are given; pages are not made."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(analysis.reports.report, "write_report", lambda run: run.path)
    for revision in ("before", "after"):
        (tmp_path / revision).mkdir()
        shutil.copy(FOLDER / "guard.yaml", tmp_path / revision)
    return tmp_path


@pytest.mark.parametrize("where", SCRIPTS)
def test_the_documented_ci_commands_run(where: str, folder: Path) -> None:
    doctor, *runs, compare = commands(SCRIPTS[where])
    assert doctor == ["doctor"]
    if where == "github":  # whose runners are not root; doctor fails without, since a lab needs it
        assert "sudo roundabout doctor" in SCRIPTS[where]
    assert [words[:2] for words in runs] == [["run", "before/guard.yaml"], ["run", "after/guard.yaml"]]
    for words in runs:
        assert main([*words, "--testbed", "fluid"]) == 0
    assert main(expanded(compare)) == 0  # a computed run has one repetition, and is exact
    assert (folder / "rules.xml").exists()
    assert {run.experiment for run in Run.all(folder / "runs/after")} == {"guard"}


def test_both_ci_examples_set_roundabout_up_and_keep_results() -> None:
    assert all(any("make --directory roundabout setup" in line for line in script) for script in SCRIPTS.values())
    (kept,) = [step for step in GITHUB["jobs"]["guard"]["steps"] if step.get("if") == "always()"]
    assert kept["with"]["path"].split("\n") == GITLAB["guard"]["artifacts"]["paths"] == ["runs", "rules.xml"]
    assert GITLAB["guard"]["artifacts"]["reports"] == {"junit": "rules.xml"}


def test_the_history_of_runs_is_a_table(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    short: dict[str, Any] = yaml.safe_load((FOLDER / "guard.yaml").read_text()) | {"iterations": 2}
    (folder / "short.yaml").write_text(yaml.safe_dump(short))
    for _ in range(2):
        assert main(["run", "short.yaml", "--testbed", "fluid"]) == 0
    capsys.readouterr()
    monkeypatch.setattr(sys, "argv", ["history.py", "guard"])
    runpy.run_path(str(FOLDER / "history.py"))
    rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert [row["commit"] for row in rows] == sorted(run.id for run in Run.all(Path("runs")))
    assert all(float(row["base-j1"]) > 200 for row in rows)
    guard = yaml.safe_load((FOLDER / "otava.yaml").read_text())["tests"]["guard"]
    assert {guard["time_column"], *guard["attributes"], *guard["metrics"]} == set(rows[0])
