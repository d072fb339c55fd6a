# SPDX-License-Identifier: Apache-2.0
"""Congestion controls of others, judged: BPF selftests of the kernel's source, as Debian packages it."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.lab, pytest.mark.quiet]

SCENES = ("alone", "cost", "fairness", "marks", "loss", "two-jobs")
SELFTESTS = "tools/testing/selftests/bpf"
FILES = ("bpf_tcp_helpers.h", "progs/bpf_cubic.c", "progs/bpf_dctcp.c")


@pytest.fixture(scope="module")
def selftests(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with them; the package (140 MB) is fetched and read, and not installed. Nothing is skipped."""
    folder = tmp_path_factory.mktemp("linux")
    found = subprocess.run(["apt-cache", "depends", "linux-source"], check=True, capture_output=True, text=True).stdout
    (package,) = (line.split()[-1] for line in found.splitlines() if "Depends: linux-source-" in line)
    subprocess.run(["apt-get", "-q", "download", package], cwd=folder, check=True, capture_output=True)
    (archive,) = folder.glob("*.deb")
    script = 'dpkg-deb --fsys-tarfile "$1" | tar -xO --wildcards "./usr/src/linux-source-*.tar.*" > source'
    subprocess.run(["sh", "-c", script, "sh", archive.name], cwd=folder, check=True)
    wanted = [f"*/{SELFTESTS}/{name}" for name in FILES]
    subprocess.run(["tar", "-xf", "source", "--strip-components=5", "--wildcards", *wanted], cwd=folder, check=True)
    (folder / "source").unlink()
    for program in (folder / "progs").glob("*.c"):
        program.rename(folder / f"{program.stem}.bpf.c")
    return folder


@pytest.mark.proof
@pytest.mark.parametrize("name", ["bpf_cubic", "bpf_dctcp"])
def test_the_kernels_own_selftests_pass(selftests: Path, tmp_path: Path, name: str) -> None:
    only = [word for scene in SCENES for word in ("--only", scene)]
    command = [sys.executable, "-m", "roundabout.cli.main", "judge", str(selftests / f"{name}.bpf.c"), "--json", *only]
    done = subprocess.run([*command, "--runs", str(tmp_path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    reported: dict[str, Any] = json.loads(done.stdout)
    assert reported["refused"] == ""
    assert list(reported["figures"]) == [name, "cubic", "dctcp", "dcqcn"]
    assert all(not kernel["lacks"] for kernel in reported["kernels"])
    figures = reported["figures"][name]
    assert figures["throughput"] > 0.5
    assert (
        figures["jain_8"] > 1 / 8
    )  # windows run away where the kernel begins reductions unasked (docs/explanation/mltcp.md)
    assert figures["program_ns"] > 0
    assert figures["two_jobs_worst"] < 2
    verdicts = [each for part in reported["parts"].values() for each in part]
    assert ("gbps", "fail") not in [(each["name"], each["verdict"]) for each in verdicts]
    assert (tmp_path / "judge").is_dir()
    print(json.dumps(figures, indent=1), *verdicts, sep="\n")
