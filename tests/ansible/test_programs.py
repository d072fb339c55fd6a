# SPDX-License-Identifier: Apache-2.0
"""Every program that sources call comes with set-up, or with every Debian: a fresh machine has no others."""

import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

import pytest
import yaml

from tests.ansible import called

pytestmark = pytest.mark.unit

REPOSITORY = Path(__file__).parents[2]
ALTERNATIVES = Path("/etc/alternatives")
REQUIRED = ("git", "make", "sudo")  # by README
# Who calls each of these checks first whether it is there, and does without.
OPTIONAL = {
    "modprobe": "servers have it; a lab needs no module",
    "systemctl": "as long as nothing but systemd starts daemons",
    "systemd-run": "of systemd, which is looked for before",
    "chronyc": "where a host's clock is kept by chrony",
    "pmc": "where a host's clock is kept by PTP",
    "mlnx_qos": "hosts with NVIDIA's driver",
    "ib_write_bw": "servers of a rack, for `verify --traffic`",
    "show_gids": "hosts with NVIDIA's driver",
    "ofed_info": "hosts with NVIDIA's driver",
    "nvidia-smi": "hosts with GPUs",
    "nmcli": "hosts whose network NetworkManager configures",
    "netplan": "Ubuntu's hosts",
    "chromium-browser": "chromium elsewhere",
    "google-chrome": "chromium elsewhere",
    "chromium": "Ubuntu has it as a snap only",
    "debootstrap": "make bare installs it",
    **dict.fromkeys(("ab", "curl", "nginx", "pg_dump", "psql"), "make proof installs it"),
    **dict.fromkeys(
        ("sbatch", "scancel", "sinfo", "squeue"), "where jobs are submitted to Slurm, for `--executor slurm`"
    ),
    **dict.fromkeys(("salloc", "scontrol", "srun"), "hosts whose trainers are started through Slurm"),
    "docker": "hosts whose trainers run in its images",
    "mpirun": "make proof installs it",
    **dict.fromkeys(("munged", "slurmctld", "slurmd"), "make proof installs them"),
    **dict.fromkeys(("prometheus", "promtool"), "make dashboards installs it"),
    "clang++-16": "make docs installs it",
    "node": "make proof installs it",
    **dict.fromkeys(("mmdebstrap", "qemu-img", "qemu-system-x86_64"), "make rack-in-vms installs it"),
}
EXAMINATION = "roundabout/testbeds/rack/programs/examination.sh"  # It checks each program before it calls it.
# First words of what our own programs and playbooks are given, in lists that look like commands; a program of ours.
OUR_WORDS = {
    *(
        "acceptance",
        "advise",
        "affinity",
        "apply",
        "calibrate",
        "cassini",
        "compare",
        "decode",
        "doctor",
        "down",
        "draw",
        "explain",
        "explore",
        "export",
        "identify",
        "judge",
        "list",
        "load",
        "new",
        "plan",
        "predict",
        "profile",
        "report",
        "resume",
        "rollback",
        "run",
        "schema",
    ),
    *(
        "replay-rdma",
        "runs",
        "scoreboard",
        "reproduce",
        "show",
        "sink",
        "site",
        "sleeper",
        "transport",
        "unload",
        "up",
        "lab",
        "validate",
        "verify",
    ),
    *("brief", "j1", "nan", "s0", "tiny.yaml", "vgg19-fig1"),
}
RUNNING = (
    "roundabout/",
    "analysis/",
    "trainers/",
    "collectors/",
    "crossgen/",
    "transports/",
    "ansible/",
    "bootstrap",
    "cmake/",
)


def packages(part: str) -> set[str]:
    """The Debian packages of a part of set-up."""
    (play,) = yaml.safe_load((REPOSITORY / "ansible/controller.yml").read_text())
    purposes = play["vars"]["controller_packages"][part]
    return {name for purpose in purposes if isinstance(purpose["names"], list) for name in purpose["names"]}


@cache
def basic() -> set[str]:
    """What the least Debian consists of, what README requires, and what `bootstrap` begins with."""
    shown = "${Package} ${Essential} ${Priority} ${db:Status-Status}\n"
    done = subprocess.run(["dpkg-query", "--show", f"--showformat={shown}"], capture_output=True, text=True, check=True)
    least = {line.split()[0] for line in done.stdout.splitlines() if re.search("yes|required", line)}
    (first,) = re.findall(r"for package in (.*); do", (REPOSITORY / "bootstrap").read_text())
    return least | {"apt"} | {*REQUIRED} | {*first.split()}


@cache
def files(package: str) -> frozenset[Path]:
    """A package's; none if it is not installed."""
    done = subprocess.run(["dpkg-query", "--listfiles", package], capture_output=True, text=True)
    return frozenset(map(Path, done.stdout.splitlines()))


def programs(names: Iterable[str]) -> set[str]:
    """What packages put where programs are found, under the names of Debian's alternatives, too."""
    everything = frozenset[Path]().union(*map(files, names))
    found = {path.name for path in everything if path.parent.name in ("bin", "sbin")}
    return found | {link.name for link in ALTERNATIVES.iterdir() if link.is_symlink() and link.readlink() in everything}


@cache
def provided_anyway() -> set[str]:
    """What needs none of set-up's packages."""
    environment = {path.name for path in Path(sys.executable).parent.iterdir()}
    return programs(basic()) | basic() | environment | OPTIONAL.keys() | OUR_WORDS | {"apt-helper"}


@cache
def calls() -> Mapping[str, frozenset[str]]:
    """Which programs each source calls."""
    listed = subprocess.run(["git", "ls-files"], cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout
    # Elsewhere YAML is data.
    names = (
        name for name in listed.splitlines() if not name.endswith((".yml", ".yaml")) or name.startswith("ansible/")
    )
    files = (name for name in names if name != EXAMINATION and (REPOSITORY / name).is_file())
    found = {name: called.in_file(REPOSITORY / name) for name in files}
    return {name: frozenset(each) for name, each in found.items() if each}


def lacking(found: Mapping[str, Iterable[str]], installed: Iterable[str]) -> dict[str, set[str]]:
    """What sources call and no package installs."""
    there = provided_anyway() | programs(installed)
    return {name: missing for name, each in found.items() if (missing := {*each} - there)}


def test_experiments_call_only_what_their_set_up_installs() -> None:
    running = {name: each for name, each in calls().items() if name.startswith(RUNNING)}
    assert len(running) > 10
    assert lacking(running, packages("experiments")) == {}


def test_tests_and_benchmarks_call_only_what_set_up_installs() -> None:
    assert lacking(calls(), packages("experiments") | packages("tests")) == {}


# No source calls mininet's programs: a benchmark imports it, and it calls brctl.
INDIRECT = {"mininet", "bridge-utils"}


def test_without_any_one_package_a_program_is_lacking() -> None:
    """Or else the package is needed for nothing, or this test sees nothing of who needs it."""
    everything = packages("experiments") | packages("tests")
    for package in everything - INDIRECT:
        if programs({package}) - provided_anyway():
            assert lacking(calls(), everything - {package}), f"no source calls a program of {package}"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.py", 'subprocess.run(["bpftool", "prog"], check=True)'),
        ("a.py", 'words = ["bpftool", "-j", "prog"]'),
        ("a.py", 'words = ["bpftool", "prog"]\nsubprocess.run(words)'),
        ("a.py", 'run("ip", "netns", "exec", name, "bpftool")'),
        ("a.py", 'Popen(["nsenter", "-t", str(pid), "-n", "bpftool", "prog"])'),
        ("a.py", 'run(lab, "s0", "cat file | bpftool")'),
        ("a.py", 'SCRIPT = "true && bpftool prog"\ncall(host, ["sh", "-c", SCRIPT])'),
        ("a.py", 'subprocess.run([*isolation(), "sh", "-c", "exec /usr/sbin/bpftool prog"])'),
        ("a.py", 'shutil.which("bpftool")'),
        ("bootstrap", '#!/bin/sh\nas_root() {\n  "$@"\n}\nas_root bpftool prog'),
        ("bootstrap", "#!/bin/sh\nfound=$(bpftool prog)"),
        ("bootstrap", "#!/bin/sh\nif true; then LC_ALL=C bpftool prog; fi"),
        ("Makefile", "all:\n\t@$(SUDO) bpftool prog | cat"),
        ("main.yml", "- ansible.builtin.command:\n    argv: [bpftool, prog]"),
        ("main.yml", "- block:\n    - ansible.builtin.command: bpftool prog"),
        ("a.cmake", "find_program(BPFTOOL NAMES bpftool REQUIRED)"),
        ("a.c", 'execlp("bpftool", "bpftool", NULL);'),
    ],
)
def test_a_call_is_seen(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    found = {name: called.in_file(path)}
    assert lacking(found, packages("experiments") | packages("tests")) == {name: {"bpftool"}}
