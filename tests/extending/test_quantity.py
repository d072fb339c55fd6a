# SPDX-License-Identifier: Apache-2.0
"""docs/how-to/add/quantity.md: a file outside the tree, and an experiment that expects it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.unit

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/how-to/add/quantity.md").read_text()
QUANTITY, OF_COUNTERS = (part.partition("```")[0] for part in PAGE.split("```python\n")[1:])
EXPECTED = PAGE.partition("```yaml\n")[2].partition("```")[0]
PROGRAM = (ROOT / "docs/how-to/add/transport.md").read_text().partition("```c\n")[2].partition("```")[0]

EXPERIMENT = """\
name: mine
about: Two fair jobs
topology: dumbbell-2x2
jobs:
  j1: {profile: vgg19-fig1, workers: [s0, s2]}
  j2: {profile: vgg19-fig1, workers: [s1, s3]}
iterations: 5
transport: {name: dcqcn}
factors: {variant: {fair: {}}}
"""
WITH_COUNTERS = """\
name: counted
about: A job whose transport counts ACKs
topology: dumbbell-2x2
jobs: {j1: {profile: vgg19-fig1, workers: [s0, s2]}}
iterations: 3
transport: {file: ./steady.bpf.c, rate_mbps: 20000}
expect:
  - {what: segments delivered with one ACK, at_least: 1, at_most: 64, basis: predicted}
"""
JUDGE = """
import sys
from pathlib import Path
from types import SimpleNamespace
from analysis.quantities import QuantityRequest, CachedReading, all_quantities
from roundabout.store import Identity, Run, Units, build_table

run = Run.create(Path(sys.argv[1]), "counted", {"experiment": {}, "testbed": {}, "plan": []}, "20261121T093012Z-7f3a")
attempt = run.begin_attempt("0123456789abcdef")
where = {"host": ["s0", "s2"], "host_ns": [0, 0], "controller_ns": [0, 0], "offset_bound_ns": [0, 0]}
counted = {"transport": ["steady"] * 2, "counter": ["segments_per_ack"] * 2, "before": [1.0, 1.0], "after": [2.0, 4.0]}
who = Identity(run.id, "0123456789abcdef", "base", "{}", 1, 1)
attempt.write("reactions", build_table("reactions", who, where | counted, Units()))
attempt.commit({**vars(who), "valid": True, "reason": "", "started_utc": "2026-11-21", "spec": {}})
cases = all_quantities()["segments delivered with one ACK"].measure(QuantityRequest(CachedReading(run)))
print({case.name: case.value for case in cases})
"""


def call(folder: Path, *words: str, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Python with these words in `folder`, and with `path` as ROUNDABOUT_PATH."""
    environment = os.environ | ({"ROUNDABOUT_PATH": str(path)} if path else {})
    return subprocess.run(
        [sys.executable, *words], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def roundabout(folder: Path, *words: str, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    return call(folder, "-m", "roundabout.cli.main", *words, path=path)


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder for ROUNDABOUT_PATH with the quantity, and the experiment beside it: two files."""
    room = tmp_path / "outside" / "analysis" / "quantities"
    room.mkdir(parents=True)
    (room / "unevenness.py").write_text(QUANTITY)
    (tmp_path / "mine.yaml").write_text(EXPERIMENT + EXPECTED)
    assert len([each for each in tmp_path.rglob("*") if each.is_file()]) == 2
    return tmp_path / "outside"


def test_two_files_bring_a_quantity_its_expectation_and_its_verdict(outside: Path, tmp_path: Path) -> None:
    done = roundabout(tmp_path, "run", "mine.yaml", "--testbed", "fluid", "--json", path=outside)
    assert done.returncode == 0, done.stderr
    (found,) = json.loads(done.stdout)["expectations"]
    assert (found["what"], found["kind"], found["basis"]) == ("unevenness of iteration time", "bound", "predicted")
    assert (found["verdict"], found["unit"], found["at_most"]) == ("pass", "%", 10)
    assert [part["name"] for part in found["parts"]] == ["j1", "j2"]
    assert found["measured"] == pytest.approx(0, abs=2)
    assert "unevenness of iteration time" in done.stderr  # the table on the screen
    page = next((tmp_path / "runs").rglob("report.html")).read_text()
    assert "unevenness of iteration time: fair" in page


def test_a_plugin_quantity_is_known_only_if_its_folder_is_on_the_path(outside: Path, tmp_path: Path) -> None:
    assert roundabout(tmp_path, "validate", "mine.yaml", path=outside).returncode == 0
    unknown = roundabout(tmp_path, "validate", "mine.yaml")
    assert unknown.returncode == 2
    assert "mine.yaml:11: expect[0].what: found 'unevenness of iteration time', expected a quantity" in unknown.stderr
    listed = roundabout(tmp_path, "scoreboard", "--quantities", path=outside)
    assert "unevenness of iteration time" in listed.stdout


def test_a_misspelt_one_gets_a_suggestion(outside: Path, tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(path.read_text().replace("what: unevenness", "what: uneveness"))
    done = roundabout(tmp_path, "validate", "mine.yaml", path=outside)
    assert done.returncode == 2
    assert "did you mean unevenness of iteration time" in done.stderr


def test_a_quantity_of_new_samples_takes_three_files(tmp_path: Path) -> None:
    room = tmp_path / "outside" / "analysis" / "quantities"
    room.mkdir(parents=True)
    files = {
        tmp_path / "steady.bpf.c": PROGRAM,
        room / "segments.py": OF_COUNTERS,
        tmp_path / "counted.yaml": WITH_COUNTERS,
    }
    for path, text in files.items():
        path.write_text(text)
    done = roundabout(tmp_path, "validate", "counted.yaml", path=tmp_path / "outside")
    assert done.returncode == 0, done.stderr
    judged = call(tmp_path, "-c", JUDGE, str(tmp_path / "made"), path=tmp_path / "outside")
    assert judged.stdout.strip() == "{'s0': 2.0, 's2': 4.0}", judged.stderr
    made = {each for each in tmp_path.rglob("*") if each.is_file() and each.suffix in (".c", ".py", ".yaml")}
    assert made == set(files)
