# SPDX-License-Identifier: Apache-2.0
"""The notebooks of a run, and those on published results: they work from any folder, and stay as they were left."""

import ast
import json
import os
import pwd
import random
import re
import subprocess
import sys
import urllib.request
from itertools import islice

import jupytext
import nbformat
import pytest
from nbclient import NotebookClient

import roundabout
from analysis.notebooks import (
    COMPARISON,
    DEGRADATION,
    ONE_ITERATION,
    REPORT,
    fitting_notebook,
    notebook_on_run,
    source_of,
    write_notebooks,
)
from analysis.notebooks.execution import execute
from roundabout import api
from roundabout.cli.main import main
from roundabout.cli.results import notebook as command
from tests.analysis.sweeps.sweep_runs import experiment, sweep_run
from tests.captures.capture_frames import pcap, random_frame
from tests.two_jobs import two_jobs

pytestmark = pytest.mark.unit


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A computed run with a capture, as if it had been measured."""
    experiment = roundabout.build_experiment(two_jobs(5))
    runs = tmp_path_factory.mktemp("runs")
    run = roundabout.run_experiment(experiment, testbed="packets", runs=runs, quiet=True)
    (trial,) = run.path.glob("trials/*")
    folder = trial / "captures/s0"
    folder.mkdir(parents=True)
    generator = random.Random(3)
    frames = [random_frame(generator, number * 1000) for number in range(30)]
    (folder / "0.pcap").write_bytes(pcap(frames))
    return run


def read(path):
    """A notebook's cells, from its file or its source."""
    return (jupytext if path.suffix == ".md" else nbformat).read(path, as_version=4).cells


def executed(paths, folder):
    """What the cells of each notebook show, executed by one kernel in another folder than their own."""
    done = nbformat.v4.new_notebook()
    by_path = {path: read(path) for path in paths}
    done.cells = [cell for cells in by_path.values() for cell in cells]
    NotebookClient(done, timeout=300, startup_timeout=300, resources={"metadata": {"path": str(folder)}}).execute()
    cells = iter(done.cells)
    return {
        path.stem: json.dumps([cell.outputs for cell in islice(cells, len(own)) if cell.cell_type == "code"])
        for path, own in by_path.items()
    }


def test_notebooks_run_from_another_folder(run, tmp_path, monkeypatch):
    """On a run with packets, and on the published runs that their sources name."""
    for name in ("JUPYTER_RUNTIME_DIR", "IPYTHONDIR"):  # else in the home directory
        monkeypatch.setenv(name, str(tmp_path))
    of_run = write_notebooks(run)
    assert [path.name for path in of_run] == ["one-iteration.ipynb", "report.ipynb"]
    shown = executed([*of_run, source_of(DEGRADATION), source_of(COMPARISON)], tmp_path)
    assert {"speedup_low", "median_ms_high"} <= set(re.findall(r"\w+", shown["report"]))
    assert {name: text.count("image/png") for name, text in shown.items()} == {
        REPORT: 3,
        ONE_ITERATION: 3,
        DEGRADATION: 1,
        COMPARISON: 2,
    }
    assert "frame_bytes" in shown[ONE_ITERATION]
    assert {"coefficient", "time_s_high", "chosen"} <= set(re.findall(r"\w+", shown[DEGRADATION]))
    assert {"cassini", "mltcp", "unfair", "fair"} <= set(re.findall(r"\w+", shown[COMPARISON]))


@pytest.mark.parametrize("name", [DEGRADATION, COMPARISON, ONE_ITERATION, REPORT])
def test_notebooks_use_the_interface_alone(name):
    """Other imports than of these packages, and names that `roundabout.api` does not export, would be internal."""
    code = "\n".join(cell.source for cell in read(source_of(name)) if cell.cell_type == "code")
    tree = ast.parse(code)
    modules = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    assert {module.partition(".")[0] for module in modules} <= {"numpy", "pandas", "matplotlib", "pyshark"}
    taken = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert [(node.module, [each.name for each in node.names]) for node in taken] == [("roundabout", ["api"])]
    used = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "api"
    }
    assert used <= set(api.__all__)
    assert len(used) >= 4


def test_the_notebook_that_fits_a_run_is_opened(run, tmp_path):
    assert fitting_notebook(run) == ONE_ITERATION
    assert fitting_notebook(sweep_run(tmp_path / "sweep", experiment(tmp_path, loads=[0, 10, 18]))) == DEGRADATION
    factors = {"variant": {"fair": {}, "unfair": {"jobs": {"j1": {"transport": {"T_us": 55}}}}}}
    both = roundabout.build_experiment({**two_jobs(5), "iterations": 1, "factors": factors})
    compared = roundabout.run_experiment(both, testbed="fluid", runs=tmp_path, quiet=True)
    assert fitting_notebook(compared) == COMPARISON
    for name in (COMPARISON, ONE_ITERATION, REPORT):  # without intervals, marks and queues, which the model lacks
        notebook = notebook_on_run(source_of(name), compared)
        execute(notebook, 100)
        assert [
            each for cell in notebook.cells for each in cell.get("outputs", ()) if each.get("name") == "stderr"
        ] == []


def test_an_edited_notebook_is_not_overwritten(run):
    write_notebooks(run)
    edited = run.path / "notebooks/one-iteration.ipynb"
    (run.path / "notebooks/report.ipynb").unlink()
    before = edited.read_text()
    edited.write_text("mine")
    assert write_notebooks(run) == {edited: False, run.path / "notebooks/report.ipynb": True}
    assert edited.read_text() == "mine"
    edited.write_text(before)


def test_notebooks_name_a_kernel_and_no_paired_source(run):
    """A pairing with the source, or no kernel, JupyterLab would prompt for instead of showing it."""
    for path in write_notebooks(run):
        assert list(nbformat.read(path, as_version=4).metadata) == ["kernelspec"]


def test_jupyterlab_stays_on_this_machine(run, monkeypatch, capsys):
    started = []
    monkeypatch.setattr(os, "execv", lambda _, words: started.append(words))
    monkeypatch.setattr(command, "find_spec", lambda _: True)
    monkeypatch.delenv("SUDO_UID", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.setenv("DISPLAY", ":0")
    assert main(["notebook", str(run.path)]) == 0
    monkeypatch.delenv("DISPLAY")
    assert main(["notebook", str(run.path)]) == 0
    assert str(run.path / "notebooks/report.ipynb") in capsys.readouterr().out
    with_screen, without = started
    assert {*without} - {*with_screen} == {"--no-browser"}
    assert {"--ServerApp.ip=127.0.0.1", f"--ServerApp.root_dir={run.path}"} <= {*without}
    assert "--LabApp.default_url=/lab/tree/notebooks/one-iteration.ipynb" in without
    assert ("--allow-root" in without) == (os.geteuid() == 0)


def test_without_jupyterlab_it_says_how_to_get_it(run, monkeypatch, capsys):
    monkeypatch.setattr(command, "find_spec", lambda _: None)
    assert main(["notebook", str(run.path)]) == 2
    said = capsys.readouterr().err
    assert "JupyterLab is not installed in" in said
    assert "./bootstrap notebook" in said


@pytest.mark.proof
def test_jupyterlab_serves_both(run, tmp_path):
    environment = os.environ | {"HOME": str(tmp_path), "JUPYTER_TOKEN": "secret"}
    words = [sys.executable, "-m", "roundabout.cli.main", "notebook", str(run.path)]
    url = re.compile(r"(http://127\.0\.0\.1:\d+)/lab/tree/notebooks/one-iteration\.ipynb")
    with subprocess.Popen(words, env=environment, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as lab:
        try:
            address = next(found for line in lab.stderr if (found := url.search(line)))[1]
            for path in write_notebooks(run):
                request = urllib.request.Request(f"{address}/api/contents/notebooks/{path.name}")
                request.add_header("Authorization", "token secret")
                assert json.load(urllib.request.urlopen(request, timeout=300))["content"]["cells"]
        finally:
            lab.terminate()
            lab.stderr.read()
    assert lab.returncode == 0


AS_CALLER = """
import os, sys
from roundabout.cli.results import notebook
from roundabout.cli.main import main
notebook.find_spec = lambda _: True
os.execv = lambda _, words: print(os.getresuid(), os.getgroups(), os.environ["HOME"], "--allow-root" in words)
sys.exit(main(["notebook", sys.argv[1]]))
"""


@pytest.mark.proof
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_under_sudo_it_is_run_by_the_caller(run):
    caller = pwd.getpwnam("nobody")
    environment = os.environ | {"SUDO_UID": str(caller.pw_uid), "SUDO_GID": str(caller.pw_gid)}
    words = [sys.executable, "-c", AS_CALLER, str(run.path)]
    said = subprocess.run(words, env=environment, capture_output=True, text=True, check=True).stdout.splitlines()[-1]
    assert said == f"{(caller.pw_uid,) * 3} {os.getgrouplist('nobody', caller.pw_gid)} {caller.pw_dir} False"
