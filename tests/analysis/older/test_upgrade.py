# SPDX-License-Identifier: Apache-2.0
"""Runs of older versions after an upgrade: reported, compared, resumed or refused.

`releases.tar.xz` has one experiment of the fluid testbed as version 0.1 stored it, in the words of 0.1 (`takes`,
`needs`, `queue: meant`), and the same experiment after a Ctrl-C under 0.1 and under 0.2.
"""

import json
import re
import tarfile
from pathlib import Path

import pytest

from roundabout.cli.main import main
from roundabout.store import Run

pytestmark = pytest.mark.unit

RUNS = Path(__file__).with_name("releases.tar.xz")


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    with tarfile.open(RUNS) as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # type: ignore[assignment]
        archive.extractall(tmp_path)
    return tmp_path


def test_a_run_of_0_1_is_reported(stored: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = Run.open("older", stored / "0.1")
    assert run.manifest["sessions"][0]["code"]["version"] == "0.1.0"
    assert main(["report", "--json", str(run.path)]) == 0
    cells = json.loads(capsys.readouterr().out)["cells"]
    assert [(cell["variant"], cell["job"], round(cell["median_ms"], 1)) for cell in cells] == [
        ("alone", "j1", 293.0),
        ("alone", "j2", 293.0),
        ("fair", "j1", 363.8),
        ("fair", "j2", 363.8),
    ]


def test_an_interrupted_run_of_0_2_is_compared_and_not_mixed_with_trials_of_todays_engine(
    stored: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, older = Run.open("older", stored / "0.2-interrupted"), Run.open("older", stored / "0.1")
    assert run.manifest["sessions"][0]["code"]["version"] == "0.2.0"
    assert main(["compare", str(older.path), str(run.path), "--fail-if", "mean > 0.1 %"]) == 0
    assert re.findall(r"(alone|fair) +(j\d) +\+0.0% +1 +✓ pass", capsys.readouterr().out) == [("alone", "j2")]
    before = sorted(run.path.rglob("*"))
    assert main(["resume", str(run.path)]) == 1
    message = capsys.readouterr().err
    assert "its trials would not be what they were\n" in message
    assert re.search(r"\n  artefacts\.fluid/\w+\.py: was", message)
    assert "restore that, or start a new run" in message
    assert sorted(run.path.rglob("*")) == before


def test_an_interrupted_run_of_0_1_is_refused_with_the_current_name(
    stored: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Run.open("older", stored / "0.1-interrupted")
    assert main(["status", str(run.path)]) == 0
    before = sorted(run.path.rglob("*"))
    assert main(["resume", str(run.path)]) == 2
    assert "it is called depends_on since version 1.0" in capsys.readouterr().err
    assert sorted(run.path.rglob("*")) == before
