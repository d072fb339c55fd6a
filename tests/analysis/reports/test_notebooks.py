# SPDX-License-Identifier: Apache-2.0
"""The notebooks of a run: they work from any folder, and stay as they were left."""

import json
import os
import pwd
import random
import re
import subprocess
import sys
import urllib.request

import nbformat
import pytest
from nbclient import NotebookClient

import roundabout
from analysis.notebooks import write_notebooks
from roundabout.cli.main import main
from roundabout.cli.results import notebook as command
from tests.captures.capture_frames import pcap, random_frame

pytestmark = pytest.mark.unit

FIELDS = {
    "name": "two",
    "about": "Two jobs, for a moment",
    "topology": "dumbbell-2x2",
    "jobs": {
        "j1": {"profile": "vgg19-1400", "workers": ["s0", "s2"]},
        "j2": {"profile": "vgg19-1400", "workers": ["s1", "s3"]},
    },
    "iterations": 5,
    "transport": {"name": "dcqcn"},
}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A computed run with a capture, as if it had been measured."""
    experiment = roundabout.build_experiment(FIELDS)
    runs = tmp_path_factory.mktemp("runs")
    run = roundabout.run_experiment(experiment, testbed="fluid", runs=runs, quiet=True)
    (trial,) = run.path.glob("trials/*")
    folder = trial / "captures/s0"
    folder.mkdir(parents=True)
    generator = random.Random(3)
    frames = [random_frame(generator, number * 1000) for number in range(30)]
    (folder / "0.pcap").write_bytes(pcap(frames))
    return run


def executed(paths, folder):
    """What cells show, executed one after the other in another folder than their own."""
    done = nbformat.v4.new_notebook()
    done.cells = [cell for path in paths for cell in nbformat.read(path, as_version=4).cells]
    NotebookClient(done, timeout=300, startup_timeout=300, resources={"metadata": {"path": str(folder)}}).execute()
    return json.dumps([cell.outputs for cell in done.cells if cell.cell_type == "code"])


def test_both_notebooks_run_from_another_folder(run, tmp_path, monkeypatch):
    for name in ("JUPYTER_RUNTIME_DIR", "IPYTHONDIR"):  # else in the home directory
        monkeypatch.setenv(name, str(tmp_path))
    paths = write_notebooks(run)
    assert [path.name for path in paths] == ["report.ipynb", "own.ipynb"]
    shown = executed(paths, tmp_path)
    assert "data:image/svg+xml;base64" in shown
    assert "captures/s0/0.pcap" in shown
    assert {"iteration_ms", "image/png", "frame_bytes"} <= set(re.findall("iteration_ms|image/png|frame_bytes", shown))


def test_an_edited_notebook_is_not_overwritten(run):
    write_notebooks(run)
    edited = run.path / "notebooks/own.ipynb"
    (run.path / "notebooks/report.ipynb").unlink()
    before = edited.read_text()
    edited.write_text("mine")
    assert write_notebooks(run) == {run.path / "notebooks/report.ipynb": True, edited: False}
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
    url = re.compile(r"(http://127\.0\.0\.1:\d+)/lab/tree/notebooks/report\.ipynb")
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
