# SPDX-License-Identifier: Apache-2.0
"""docs/how-to/add/study.md: its folder, outside the tree, computes, stores and shows results."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/how-to/add/study.md").read_text()
FILES = dict(
    zip(
        ("study.py", "tables.py", "notebook.py"),
        (part.partition("```")[0] for part in PAGE.split("```python\n")[1:]),
        strict=True,
    )
)
EXPERIMENT = """\
name: mine
about: Two jobs, one of them the heavier
topology: dumbbell-2x2
jobs:
  j1: {profile: vgg19-fig1, workers: [s0, s2]}
  j2: {profile: vgg19-1400, workers: [s1, s3]}
iterations: 5
transport: {name: dcqcn}
factors: {variant: {both: {}, less: {jobs: {j2: null}}}}
study: {kind: evenness, baseline: both}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    room = tmp_path / "outside/analysis/studies/evenness"
    room.mkdir(parents=True)
    (room / "__init__.py").touch()
    for name, text in FILES.items():
        (room / name).write_text(text)
    (tmp_path / "mine.yaml").write_text(EXPERIMENT)
    return tmp_path


def roundabout(folder: Path, *words: str, known: bool = True) -> subprocess.CompletedProcess[str]:
    environment = os.environ | ({"ROUNDABOUT_PATH": str(folder / "outside")} if known else {})
    command = [sys.executable, "-m", "roundabout.cli.main", *words]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_a_study_takes_one_folder(folder: Path) -> None:
    files = [path.relative_to(folder / "outside/analysis/studies") for path in (folder / "outside").rglob("*.py")]
    assert {path.parts[0] for path in files} == {"evenness"}  # one folder,
    assert sorted(path.name for path in files) == ["__init__.py", "notebook.py", "study.py", "tables.py"]
    done = roundabout(folder, "run", "mine.yaml", "--testbed", "fluid", "--json")
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert summary["study"] == {"kind": "evenness", "baseline": "both", "over": None}
    both, less = summary["ratios"]
    assert (both["levels"], both["slowest"]) == ({"variant": "both"}, "j2")
    assert both["ratio"] > 1.01
    assert less["ratio"] == 1
    (path,) = folder.glob("runs/mine/*")
    assert json.loads((path / "summary.json").read_text()) == summary
    assert "How evenly jobs share" in done.stderr  # the screen
    page = (path / "report.html").read_text()
    assert "Who gets less" in page
    assert f"<td>{both['ratio']:.3f}</td>" in page


def test_a_plugin_study_is_known_only_if_its_folder_is_on_the_path(folder: Path) -> None:
    assert roundabout(folder, "validate", "mine.yaml").returncode == 0
    unknown = roundabout(folder, "validate", "mine.yaml", known=False)
    assert unknown.returncode == 2
    assert "found no study 'evenness', expected one of those in analysis/studies (" in unknown.stderr
