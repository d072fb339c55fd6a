# SPDX-License-Identifier: Apache-2.0
"""Every option and argument of every command with odd values: a result, a usage error or one clear error."""

import contextlib
import io
import os
import shutil
import signal
import subprocess
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest

from roundabout.checks.judge import run
from roundabout.cli.main import COMMANDS, import_command, main
from roundabout.cli.profile import measure
from roundabout.cli.results import reproduce
from roundabout.cli.runs import resume, run as run_command, watch
from roundabout.core.errors import RoundaboutError
from roundabout.runner.machine import machine_lease
from roundabout.testbeds.lab import Lab
from tests.analysis.computed_run import compute

pytestmark = pytest.mark.unit

SHARE = 100  # CI takes one of so many calls, the long proof all of them

FILES = (
    "folder", "empty", "empty.yaml", "binary.yaml", "binary.json", "pipe", "pipe.yaml", "loop", "dangling",
    "sparse.yaml", "escape\x1b[31m\nname.yaml", "\udcff.yaml", "/dev/null", "nothing", "no/such/file", "x" * 300, "",
    "\0", "-", "runs", "tiny.yaml/x",
)  # fmt: skip
NUMBERS = ("-1", "0", "nan", "inf", "-inf", "1e308", "1e-308", "abc", "", "1,5", "9" * 30, "0x10")
TEXTS = ("", "\0", "\x1b[31mred", "a\nb", "x" * 5000, "../../x", "*", "None", "\udcff", "-x", "lab:", "slurm:", "slurm")
SETTINGS = (
    "", "=", "a", "a=", "=b", "a.b.c=1", "iterations=", "iterations=-1", "iterations=nan", "iterations=1e308",
    "iterations=[", "iterations={a: 1", "iterations=!!python/object:os.system", "repetitions=1e9", "jobs=", "jobs=null",
    "jobs.j1=null", "jobs.j1.profile=../../etc/passwd", "jobs..j1=1", "jobs.j1.workers=[s0,s0]", "set.a=1", "name=../x",
    "seed=" + "9" * 30, "factors.variant=1", "topology=\x1b[31m", "iterations=*a", "cells=1", "scale=0", "dilation=nan",
    ".=1", "a" * 5000 + "=1", "iterations=" + "[" * 5000, "jobs.j1.start_offset_ms=1e400", "only=x", "exclude=[1]",
    "expect=[1]",
)  # fmt: skip
WORDS = {
    "new": ["fresh"],
    "plan": ["tiny.yaml"],
    "predict": ["tiny.yaml"],
    "cassini": ["vgg19-fig1", "--capacity=50"],
    "affinity": ["tiny.yaml"],
    "run": ["tiny.yaml", "--testbed=fluid"],
    "trial": ["runs"],
    "rm": ["last"],
    "compare": ["last", "last"],
    "decode": ["binary.yaml"],
    "profile measure": ["j1", "--from=last"],
    "profile records": ["binary.yaml"],
    "profile chakra": ["binary.yaml"],
    "profile gpu": ["binary.json"],
    "export": ["--csv=out"],
    "lab ssh": ["s0"],
}
"""Arguments that each command needs besides the option."""
OTHERS = ("advise", "clean", "dashboards", "lab down", "list", "schema", "scoreboard", "validate")
"""Commands without a value, that change this machine, or whose readers have property tests of their own."""


class StartedError(RoundaboutError):
    """The start of a command's work."""

    exit_code = 77


def start(*_: object, **__: object) -> NoReturn:
    raise StartedError("work would begin")


@pytest.fixture(scope="module")
def computed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("computed")
    compute(folder)
    return folder


@pytest.fixture
def place(computed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with a run and odd files, from which no command gets to work."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(computed, tmp_path, dirs_exist_ok=True)
    for name in ("empty", "empty.yaml"):
        (tmp_path / name).touch()
    for name in ("binary.yaml", "binary.json"):
        (tmp_path / name).write_bytes(bytes(range(256)))
    for name in ("pipe", "pipe.yaml"):
        os.mkfifo(tmp_path / name)
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "dangling").symlink_to("none")
    (tmp_path / "escape\x1b[31m\nname.yaml").write_text("a: 1\n")
    (tmp_path / "\udcff.yaml").write_text("a: 1\n")
    with (tmp_path / "sparse.yaml").open("wb") as sparse:
        sparse.truncate(1 << 30)
    for module, name in (
        (run_command, "execute"),
        (reproduce, "execute"),
        (resume, "execute"),
        (measure, "run_document"),
        (run, "judge"),
        (machine_lease, "hold"),
        (Lab, "create"),
        (os, "execv"),
        (subprocess, "Popen"),
    ):
        monkeypatch.setattr(module, name, start)
    monkeypatch.setattr(os, "nice", lambda _: None)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr(watch, "find_running", start)
    return tmp_path


def calls() -> Iterator[list[str]]:
    """Return every command with every odd value of each of its parameters, one at a time."""
    for words, command in (pair for name in COMMANDS for pair in _commands(import_command(name), [name])):
        needed = WORDS.get(" ".join(words), [])
        for parameter in () if " ".join(words) in OTHERS else command.params:
            option = parameter.opts[-1]
            if parameter.param_type_name == "argument":
                yield from ([*words, *needed[1:], "--", value] for value in (*FILES, *TEXTS))
            elif option == "--set":
                yield from ([*words, *needed, "--set", value] for value in SETTINGS)
            elif not getattr(parameter, "is_flag", False):
                equals = "=" if option.startswith("--") else ""
                yield from ([*words, *needed, f"{option}{equals}{value}"] for value in (*NUMBERS, *TEXTS, *FILES))


def _commands(command: Any, words: list[str]) -> Iterator[tuple[list[str], Any]]:
    if hasattr(command, "commands"):
        for name, each in command.commands.items():
            yield from _commands(each, [*words, name])
    else:
        yield words, command


def outcome(words: list[str]) -> tuple[int, str]:
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        return main(words), said.getvalue()


def wrong(words: list[str]) -> str | None:
    """Return what is not allowed of a call's outcome."""
    status, said = outcome(words)
    bad = [each for each in ("unexpected", "Traceback", "Warning", "\x1b", "\udcff") if each in said]
    errors = f"\n{said}".count("\nerror: ") + said.count("─ Error ─")
    if status not in (0, 1, 2, 77):
        bad.append(f"status {status}")
    if (status in (2, 77) and errors != 1) or errors > 1:
        bad.append(f"{errors} errors")
    return f"{words}: {bad}: {said[-300:]!r}" if bad else None


def check(place: Path, chosen: list[list[str]]) -> list[str]:
    found = []
    shutil.copytree(place / "runs", place / "copy")
    for words in chosen:
        if fault := wrong(words):
            found.append(fault)
        shutil.rmtree(place / "out", ignore_errors=True)
        (place / "fresh.yaml").unlink(missing_ok=True)
        if not list((place / "runs").glob("*/*/manifest.json")):
            shutil.rmtree(place / "runs", ignore_errors=True)
            shutil.copytree(place / "copy", place / "runs")
    return found


def test_odd_values_end_in_a_result_or_one_clear_error(place: Path) -> None:
    chosen = [words for words in calls() if zlib.crc32(repr(words).encode()) % SHARE == 0]
    assert len(chosen) > 20
    assert check(place, chosen) == []


@pytest.mark.proof
def test_every_odd_value_ends_in_a_result_or_one_clear_error(place: Path) -> None:
    assert check(place, list(calls())) == []


@pytest.mark.parametrize("words", [["run", "tiny.yaml", "--testbed=fluid"], ["reproduce"]])
def test_a_folder_of_runs_whose_name_is_no_utf8_is_a_usage_error(place: Path, words: list[str]) -> None:
    status, said = outcome([*words, "--runs", "\udcff"])
    assert status == 2
    assert "'\\udcff' is no UTF-8." in said
    assert not (place / "\udcff").exists()


@pytest.mark.parametrize("value", ["0", "nan", "inf", "1e308", "-1", "abc", "0.5"])
@pytest.mark.parametrize("option", ["--dilation", "--scale"])
def test_a_factor_that_a_lab_cannot_have_is_a_usage_error(place: Path, option: str, value: str) -> None:
    status, said = outcome(["run", "tiny.yaml", option, value])
    assert status == 2
    assert option in said


def test_a_terminals_commands_in_names_and_reasons_are_shown_as_escapes(place: Path, tmp_path: Path) -> None:
    (manifest,) = place.glob("runs/*/*/manifest.json")
    hostile = manifest.parent.rename(place / "runs" / "\x1b[31mred")
    for words in (
        ["status", str(hostile)],
        ["report", "--json", str(hostile)],
        ["validate", "escape\x1b[31m\nname.yaml"],
    ):
        _, said = outcome(words)
        assert "\x1b" not in said
    assert "\\x1b[31mred" in outcome(["status", str(hostile)])[1]
    status, said = outcome(["status", "\x1b]0;title\x07"])
    assert (status, said.count("\x1b") + said.count("\x07")) == (1, 0)


def test_an_output_of_ascii_alone_gets_escapes(monkeypatch: pytest.MonkeyPatch) -> None:
    said = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(said, encoding="ascii", write_through=True))
    assert main(["judge"]) == 0
    assert said.getvalue().isascii()
