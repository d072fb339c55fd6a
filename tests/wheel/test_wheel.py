# SPDX-License-Identifier: Apache-2.0
"""A wheel and a source archive: what they carry, and that they run outside the checkout."""

import json
import os
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path

import pytest

from roundabout.core.paths import REVISION
from roundabout.runner.code_facts import revision_of
from roundabout.runner.program_list import program_paths

pytestmark = pytest.mark.unit

REPOSITORY = Path(__file__).parents[2]
SETUPTOOLS = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["tool"]["setuptools"]
CARRIED = "roundabout.carried"
# Without what leads to the checkout.
OUTSIDE = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "ROUNDABOUT"))}


def test_the_wheel_contains_all_deployed_programs() -> None:
    patterns = SETUPTOOLS["package-data"][CARRIED]
    carried = {str(path.relative_to(REPOSITORY)) for pattern in patterns for path in REPOSITORY.glob(pattern)}
    assert {path for path in program_paths("hosts", "controller", "lab") if (REPOSITORY / path).exists()} <= carried
    assert {path for path in patterns if path.startswith("build/bin/")} == {
        path for path in program_paths("hosts", "controller", "lab") if path.startswith("build/bin/")
    }


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel's program, in an environment that has its dependencies from the checkout's."""
    folder = tmp_path_factory.mktemp("wheel")
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check")
    build = [*pip, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", folder, REPOSITORY]
    subprocess.run(build, env=OUTSIDE, check=True, capture_output=True)
    (made,) = folder.glob("*.whl")
    assert made.name.endswith(f"-py3-none-{sysconfig.get_platform().replace('-', '_')}.whl")
    fresh = folder / "fresh"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", fresh], check=True)
    install = [*pip, "--python", fresh / "bin/python", "install", "--no-deps", made]
    subprocess.run(install, env=OUTSIDE, check=True, capture_output=True)
    (packages,) = fresh.glob("lib/python*/site-packages")
    # Its own .pth files, of an editable install of the checkout for one, are not followed.
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    return fresh / "bin/roundabout"


def call(program: Path, folder: Path, *words: str) -> str:
    """What it prints, run in `folder`."""
    done = subprocess.run([program, *words], cwd=folder, env=OUTSIDE, capture_output=True, text=True)
    return f"{done.stdout}{done.stderr}" if done.returncode == 0 else f"failed: {done.stderr}"


@pytest.mark.proof
def test_the_installed_wheel_runs_outside_the_checkout(installed: Path, tmp_path: Path) -> None:
    assert "unfair-vgg19" in call(installed, tmp_path, "list")
    assert "mine.yaml" in call(installed, tmp_path, "new", "mine")
    assert "nothing wrong" in call(installed, tmp_path, "validate", "mine.yaml")
    assert "16 trials" in call(installed, tmp_path, "plan", "mine.yaml")
    assert "report.html" in call(installed, tmp_path, "run", "unfair-vgg19", "--testbed", "fluid")
    (run,) = (tmp_path / "runs/unfair-vgg19").iterdir()
    assert len((run / "report.html").read_text()) > 100_000
    code = json.loads((run / "manifest.json").read_text())["sessions"][0]["code"]
    revision = subprocess.run(["git", "rev-parse", "HEAD"], cwd=REPOSITORY, capture_output=True, text=True).stdout
    assert (code["source"], code["revision"]) == ("wheel", revision.strip())
    script = "import roundabout; print(roundabout.__file__, roundabout.open_run().table('iterations').num_rows)"
    where, rows = call(installed.with_name("python"), tmp_path, "-c", script).split()
    assert Path(where).is_relative_to(installed.parents[1])
    assert int(rows) > 100


@pytest.mark.proof
def test_the_installed_wheel_has_the_programs_that_a_rack_runs_on_its_hosts(installed: Path, tmp_path: Path) -> None:
    imported = "from roundabout.runner.session import host_facts; from roundabout.testbeds.rack import provider"
    assert call(installed.with_name("python"), tmp_path, "-c", imported) == ""


@pytest.mark.proof
def test_programs_that_it_lacks_are_named_with_what_mends_it(installed: Path, tmp_path: Path) -> None:
    (crossgen,) = installed.parents[1].glob("lib/python*/site-packages/roundabout/carried/build/bin/crossgen")
    aside = crossgen.rename(crossgen.with_name("aside"))
    try:
        said = call(installed, tmp_path, "run", "unfair-vgg19", "--testbed", "fluid")
    finally:
        aside.rename(crossgen)
    assert said.startswith("failed: ")
    assert "error: not built: build/bin/crossgen\n" in said
    assert "install a wheel that `make wheel` made" in said


def test_a_recorded_revision_is_that_of_the_code(tmp_path: Path) -> None:
    recorded = {"revision": "0123456789abcdef" * 2, "dirty": None}
    (tmp_path / REVISION).write_text(json.dumps(recorded))
    assert revision_of(tmp_path) == recorded


def git(*words: str) -> list[str]:
    """Return the words of what git says of the repository."""
    return subprocess.run(["git", *words], cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout.split()


@pytest.mark.proof
def test_a_source_archive_has_all_files_and_their_revision(tmp_path: Path) -> None:
    listed = subprocess.run(["make", "--silent", "archive"], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    subprocess.run(["tar", "xzf", REPOSITORY / listed.stdout.strip(), "-C", tmp_path], check=True)
    (root,) = tmp_path.iterdir()
    files, revision = git("ls-tree", "-r", "--name-only", "HEAD"), git("rev-parse", "HEAD")
    found = {str(path.relative_to(root)) for path in root.rglob("*") if not path.is_dir()}
    assert found == {*files, REVISION}
    assert revision_of(root) == {"revision": revision[0], "dirty": None}
