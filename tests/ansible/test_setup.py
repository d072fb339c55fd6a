# SPDX-License-Identifier: Apache-2.0
"""`make` and the set-up that it calls first, on a machine that is set up."""

import ast
import importlib.metadata
import os
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations
from pathlib import Path

import pytest
import yaml

from roundabout.testbeds.lab.checks import doctor

pytestmark = pytest.mark.unit

REPOSITORY = Path(__file__).parents[2]
PARTS = ("requirements.txt", "requirements-tests.txt", "requirements-notebook.txt", "requirements-docs.txt")


def make(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["make", "--silent", *words], cwd=REPOSITORY, capture_output=True, text=True)


@pytest.mark.quiet
def test_set_up_again_is_silent() -> None:
    make("setup")  # whatever was edited since the last build
    done = make("setup")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_help_names_every_target() -> None:
    listed = {line.split()[1] for line in make().stdout.splitlines()}
    assert listed == {"help", "experiment", "sweep", "report", "doctor", "provision", "verify", "rollback"} | {
        "notebook",
        "archive",
        "scoreboard",
        "results",
        "docs",
        "dashboards",
        "coverage",
        "lint",
        "test",
        "proof",
        "fuzz",
        "bench",
        "bare",
        "wheel",
        "rack-in-vms",
        "clean",
    }


@pytest.mark.parametrize(
    ("target", "example"),
    [
        ("experiment", "make experiment NAME=unfair-vgg19"),
        ("sweep", "make sweep NAME=unfair-vgg19"),
        ("provision", "make provision INVENTORY=inventory"),
        ("verify", "make verify INVENTORY=inventory"),
        ("rollback", "make rollback INVENTORY=inventory"),
    ],
)
def test_a_missing_word_is_named_before_anything_is_done(target: str, example: str) -> None:
    done = make(target)
    assert done.returncode == 2
    assert done.stdout == ""
    assert f"say which: {example}" in done.stderr


def test_an_unknown_part_is_refused_before_anything_is_done() -> None:
    done = subprocess.run(["./bootstrap", "test"], cwd=REPOSITORY, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "")
    words = "tests, notebook, docs, proofs, dashboards, vms and training"
    assert f"found 'test', expected nothing, or one of the words {words}" in done.stderr


@pytest.mark.parametrize(
    ("target", "parts"),
    [
        *(
            (target, ["./bootstrap"])
            for target in ("experiment", "sweep", "report", "doctor", "provision", "wheel", "clean")
        ),
        *((target, ["./bootstrap tests"]) for target in ("coverage", "lint", "test", "fuzz", "bench")),
        ("notebook", ["./bootstrap notebook"]),
        ("docs", ["./bootstrap notebook", "./bootstrap docs"]),
        ("proof", ["./bootstrap proofs"]),
        ("rack-in-vms", ["./bootstrap vms"]),
        ("dashboards", ["./bootstrap dashboards"]),
        ("bare", []),
    ],
)
def test_a_target_sets_up_what_it_uses(target: str, parts: list[str]) -> None:
    printed = make("--dry-run", target, "NAME=any", "INVENTORY=any").stdout.splitlines()
    assert [line for line in printed if line.startswith("./bootstrap")] == parts


@pytest.mark.parametrize(
    ("target", "word", "sudo", "calls"),
    [
        ("experiment", "NAME=--help", "echo no >> {0}; exit 1", 1),
        ("report", "RUN=--help", 'echo "$@" >> {0}; exec "$@"', 2),
    ],
)
def test_no_root_is_needed_where_sudo_does_not_work(
    tmp_path: Path, target: str, word: str, sudo: str, calls: int
) -> None:
    for name, script in {"id": "echo 1000", "sudo": sudo.format(tmp_path / "calls")}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    path = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    words = ["make", "--silent", "--old-file=setup", target, word]
    done = subprocess.run(words, cwd=REPOSITORY, env=path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert f"roundabout {'run' if target == 'experiment' else target} [OPTIONS]" in done.stdout
    assert len((tmp_path / "calls").read_text().splitlines()) == calls


@pytest.mark.parametrize("name", [*PARTS])
def test_every_package_is_pinned_with_hashes_and_no_host(name: str) -> None:
    lines = (REPOSITORY / name).read_text().splitlines()
    text = [line for line in lines if line and not line.startswith("#")]
    assert all(line.startswith("    --hash=sha256:") or "==" in line for line in text)
    assert not any("://" in line for line in lines)


def pins(name: str) -> dict[str, str]:
    """Version by package."""
    found = (line.split()[0].split("==") for line in (REPOSITORY / name).read_text().splitlines() if "==" in line)
    return {package: version for package, version in found if package != "#"}


def test_packages_of_all_parts_have_one_version() -> None:
    running, testing, showing, documenting = parts = [pins(name) for name in PARTS]
    for one, other in combinations(parts, 2):
        assert {name: one[name] for name in one.keys() & other} == {name: other[name] for name in one.keys() & other}
    assert {"jupyterlab", "pandas", "pyshark"} <= showing.keys() - running.keys()
    assert {"zensical"} <= documenting.keys() - running.keys()
    assert {"pytest", "hypothesis", "mypy", "ruff", "pyshark"} <= testing.keys() - running.keys()


def imports(path: Path) -> Iterator[str]:
    """The packages that a file imports, wherever it does, but for those that only type checkers import."""
    tree = ast.parse(path.read_text())
    typed = [each for each in ast.walk(tree) if isinstance(each, ast.If) and ast.unparse(each.test) == "TYPE_CHECKING"]
    unused = {each for branch in typed for each in ast.walk(branch)}
    for node in ast.walk(tree):
        if node in unused:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.split(".")[0]


def test_experiments_import_nothing_that_comes_with_tests() -> None:
    provided = importlib.metadata.packages_distributions()
    running = pins("requirements.txt").keys()
    for path in (
        path for folder in ("roundabout", "analysis", "ansible/library") for path in (REPOSITORY / folder).rglob("*.py")
    ):
        for package in set(imports(path)) & provided.keys() - {"roundabout", "analysis"}:
            owners = {name.lower().replace("_", "-").replace(".", "-") for name in provided[package]}
            assert owners & running, f"{path} imports {package}, which {owners} provides"


def programs(names: Iterable[str]) -> set[str]:
    """What Debian packages put where programs are found."""
    listed = subprocess.run(["dpkg-query", "--listfiles", *names], capture_output=True, text=True, check=True).stdout
    return {Path(line).name for line in listed.splitlines() if Path(line).parent.name in ("bin", "sbin")}


@pytest.mark.parametrize(("part", "tools"), [("experiments", doctor.TOOLS), ("tests", doctor.EXTRA_TOOLS)])
def test_doctor_looks_for_what_the_parts_install(part: str, tools: Mapping[str, str]) -> None:
    (play,) = yaml.safe_load((REPOSITORY / "ansible/controller.yml").read_text())
    purposes = play["vars"]["controller_packages"][part]
    wanted = [name for purpose in purposes if isinstance(purpose["names"], list) for name in purpose["names"]]
    alternatives = {"cc", "c++"}  # of which Debian keeps links that no package lists
    optional = {"chromium"}  # where Debian has it
    assert tools.keys() - alternatives - optional <= programs(wanted)
    for name in wanted:
        offered = programs([name])
        assert not offered or name in ("gcc", "g++") or offered & tools.keys(), (
            f"doctor does not look for anything of {name}"
        )
