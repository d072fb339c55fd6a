# SPDX-License-Identifier: Apache-2.0
"""docs/tutorials/first-half-hour.md in the lab, as written, and how long its commands take."""

import subprocess
import time
from pathlib import Path

import pytest

from roundabout.core.paths import ROOT
from roundabout.store import Run
from tests.lab.conftest import needs_root
from tests.tutorial import COMMANDS, MAY_END_WITH, write_file

pytestmark = [pytest.mark.lab, pytest.mark.quiet]


@needs_root
@pytest.mark.proof
def test_the_tutorial_as_it_is_written(tmp_path: Path) -> None:
    write_file(tmp_path)
    began = time.monotonic()
    for name, *words in COMMANDS:
        begin = time.monotonic()
        done = subprocess.run([ROOT / "rb", name, *words], cwd=tmp_path, capture_output=True, text=True)
        print(f"{time.monotonic() - begin:6.1f} s  roundabout {name} {' '.join(words)}")
        assert done.returncode in MAY_END_WITH.get(name, (0,)), done.stdout + done.stderr
    print(f"{(time.monotonic() - began) / 60:.1f} minutes from the first command to the last")
    runs = list(Run.all(tmp_path / "runs"))
    assert all((run.path / "report.html").exists() for run in runs)
    measured = [run for run in runs if run.manifest["testbed"]["kind"] == "lab"]
    assert {run.experiment for run in measured} == {"unfair-vgg19", "aggressive", "how-aggressive"}
    assert all(any(trial["valid"] for trial in run.trials()) for run in measured)
