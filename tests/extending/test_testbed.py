# SPDX-License-Identifier: Apache-2.0
"""docs/how-to/add/testbed.md: a folder outside the tree runs an experiment from its file to its report."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from roundabout.store import Run

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/how-to/add/testbed.md").read_text()
PROVIDER = PAGE.partition("```python\n")[2].partition("```")[0]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    testbed = tmp_path / "mine/roundabout/testbeds/ideal"
    testbed.mkdir(parents=True)
    (testbed / "__init__.py").touch()
    (testbed / "provider.py").write_text(PROVIDER)
    return tmp_path


def roundabout(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"ROUNDABOUT_PATH": str(folder / "mine")}
    command = [sys.executable, "-m", "roundabout.cli.main", *words]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)


def test_a_testbed_takes_one_folder(folder: Path) -> None:
    files = [path for path in (folder / "mine").rglob("*") if path.is_file()]
    assert sorted(path.name for path in files) == ["__init__.py", "provider.py"]  # one folder
    runs = str(folder / "runs")
    done = roundabout(
        folder, "run", "unfair-vgg19", "--testbed", "ideal", "--repetitions", "2", "--runs", runs, "--json"
    )
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert [cell["median_ms"] for cell in summary["cells"]] == pytest.approx([293] * 6 + [207] * 4)
    assert summary["testbed"]["fidelity"]["stamp"] == "computed: an ideal network"
    run = Run.open("last", folder / "runs")
    assert run.manifest["where"] == {"testbed": "ideal"}
    page = (run.path / "report.html").read_text()
    assert "computed: an ideal network" in page and "Jobs never meet." in page
    # Jobs of each figure have plots of their own, rows of their own, and the fair ones beside them as a baseline.
    assert page.count("<b>figure fig-2</b>") == page.count("The same: figure fig-2.") == 5
    rows = {(cell["levels"]["figure"], cell["variant"]): cell for cell in summary["cells"]}
    assert [rows["fig-2", name]["limit"] for name in ("fair", "unfair")] == ["fair", "interleaved"]
    assert rows["fig-2", "unfair"]["speedup"] == pytest.approx(1)


def test_a_testbed_that_is_not_there_names_those_that_are(folder: Path) -> None:
    done = roundabout(folder, "run", "unfair-vgg19", "--testbed", "idle")
    assert done.returncode == 2
    assert "found testbed 'idle', expected one of: fluid, ideal, lab, packets, rack" in done.stderr
