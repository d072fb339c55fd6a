# SPDX-License-Identifier: Apache-2.0
"""`roundabout lab`, as people call it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from roundabout.cli.main import main
from roundabout.testbeds.lab import Lab
from tests.lab.lab_command import roundabout

from .conftest import NOTHING, needs_root, traces

pytestmark = [pytest.mark.lab, pytest.mark.quiet]

ROOT = Path(__file__).parents[2]


def test_up_status_ssh_down(lab_name):
    name = lab_name()
    up = roundabout("up", "--name", name)
    assert up.returncode == 0, up.stderr
    assert "tor0 -> tor1" in up.stdout
    assert f"ssh -F /run/roundabout/labs/{name}/ssh_config s0" in up.stdout
    report = json.loads(roundabout("status", name, "--json").stdout)["labs"][0]
    assert report["state"] == "up"
    assert [host["name"] for host in report["hosts"]] == ["s0", "s1", "s2", "s3"]
    trunk = next(link for link in report["links"] if link["bottleneck"])
    assert [port["measured_gbps"] for port in trunk["ports"]] == pytest.approx([43, 43], rel=0.03)
    assert "43 Gbit/s" in roundabout("status", name).stdout
    assert roundabout("ssh", "--lab", name, "s2", "--", "hostname").stdout == "s2\n"
    assert roundabout("ssh", "--lab", name, "s2", "--", "exit 3").returncode == 3
    down = roundabout("down", name)
    assert down.returncode == 0, down.stderr
    assert traces(name) == NOTHING


@needs_root
@pytest.mark.parametrize(
    ("words", "status", "found", "mend"),
    [
        (["up", "no-such-topology"], 2, "no-such-topology", ""),
        (["down", "no-such-lab"], 1, "there is no lab 'no-such-lab'", "roundabout lab status"),
        (["down", "some", "--all"], 2, "both a lab (some) and --all", "one of them"),
        (["ssh", "--lab", "no-such-lab", "s0"], 1, "there is no lab 'no-such-lab'", "roundabout lab up"),
        (["up", "--name", "Not Good"], 1, "cannot be called 'Not Good'", "beginning with a letter"),
    ],
)
def test_errors_are_one_message_and_what_to_do(words, status, found, mend, capsys):
    assert main(["lab", *words]) == status
    said = capsys.readouterr().err
    assert said.startswith("error: ")
    assert found in said
    assert mend in said


def test_unknown_host_is_named(topology, lab_name, capsys):
    lab = Lab.create(topology, lab_name(), verify=False)
    assert main(["lab", "ssh", "--lab", lab.name, "s9"]) == 2
    said = capsys.readouterr().err
    assert "has no host 's9'" in said
    assert "s0, s1, s2, s3" in said


def as_nobody(*words):
    """Where user nobody may not go, too: a checkout may lie in a folder that is its owner's alone."""
    python = Path("/mnt") / Path(sys.executable).relative_to(ROOT)
    script = 'mount --bind "$1" /mnt && shift && exec setpriv --reuid=nobody --regid=nogroup --clear-groups "$@"'
    command = ["unshare", "--mount", "--propagation=private", "sh", "-c", script, "sh", ROOT]
    env = {**os.environ, "HOME": "/nonexistent", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": "/mnt"}
    words = [python, "-m", "roundabout.cli.main", "lab", *words]
    return subprocess.run([*command, *words], capture_output=True, text=True, timeout=60, env=env)


@needs_root
def test_without_root_one_clear_error():
    nobody = as_nobody("up")
    assert nobody.returncode == 1
    assert "error: a lab needs root" in nobody.stderr
    assert "sudo " in nobody.stderr


def test_status_without_root_says_that_labs_belong_to_it(topology, lab_name):
    Lab.create(topology, lab_name(), verify=False)
    nobody = as_nobody("status")
    assert nobody.returncode == 1
    assert "error: labs belong to root" in nobody.stderr
