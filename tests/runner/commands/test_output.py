# SPDX-License-Identifier: Apache-2.0
"""Output that cannot be written is one message: a full disk behind a redirection, for each way of printing."""

import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from roundabout.cli.main import main
from roundabout.cli.runs import clean
from roundabout.core.paths import ROOT
from roundabout.terminal.run_progress import show_progress
from roundabout.terminal.screen import Screen, show_paths

pytestmark = pytest.mark.unit

FULL = "error: cannot write: the disk is full\n"
COMMANDS = {
    "version": ["--version"],
    "help": ["--help"],
    "help of a command": ["plan", "--help"],
    "words": ["validate", "unfair-vgg19"],
    "a table": ["list"],
    "JSON": ["plan", "unfair-vgg19", "--json"],
}


@contextmanager
def full_disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let stdout be a file on a full disk."""
    with suppress(OSError), Path("/dev/full").open("w") as stream, monkeypatch.context() as patched:
        patched.setattr(sys, "stdout", stream)
        yield


@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
def test_a_full_disk_is_one_message(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with full_disk(monkeypatch):
        status = main(words)
    assert (status, capsys.readouterr().err) == (1, FULL)


def test_a_full_disk_is_one_message_until_the_process_has_ended() -> None:
    words = [sys.executable, "-m", "roundabout.cli.main", "--version"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True, cwd=ROOT)
    assert (done.returncode, done.stderr) == (1, FULL)


def test_a_reader_that_ended_gets_no_output() -> None:
    words = [sys.executable, "-m", "roundabout.cli.main", "--help"]
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(words, stdout=writer, stderr=subprocess.PIPE, text=True, cwd=ROOT)
    os.close(writer)
    assert done.stderr == ""


def test_a_closed_output_is_no_error(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(sys, "stdout", None)
        assert main(["--version"]) == 0
        sys.stdout.close()
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(errno.EDQUOT, "Disk quota exceeded"), "cannot write: the disk is full"),
        (OSError(errno.ENOSPC, "No space left", "a.csv"), "cannot write a.csv: the disk is full"),
        (OSError(errno.EIO, "Input/output error"), "cannot write: Input/output error"),
        (PermissionError(errno.EACCES, "Permission denied", "a.csv"), "cannot use a.csv: Permission denied"),
        (IsADirectoryError(errno.EISDIR, "Is a directory", "runs"), "cannot use runs: Is a directory"),
    ],
)
def test_an_error_of_the_operating_system_is_one_message(
    error: OSError, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def command() -> None:
        raise error

    monkeypatch.setattr(clean, "command", command)
    assert main(["clean"]) == 1
    assert capsys.readouterr().err == f"error: {said}\n"


def test_a_working_folder_that_was_deleted_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert main(["judge", "mine.bpf.c"]) == 1
    assert capsys.readouterr().err == "error: the working folder was deleted: change to another one\n"


@pytest.mark.parametrize("columns", ["0", "1", "19", "²", "9" * 5000])
def test_a_table_is_printed_for_a_terminal_of_an_odd_width(
    columns: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert main(["plan", "unfair-vgg19"]) == 0
    assert "trial  repetition  variant  figure  jobs    iterations  expected\n" in capsys.readouterr().out
    assert main(["plan", "--help"]) == 0
    assert "Usage: roundabout plan" in capsys.readouterr().out


def test_each_path_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    show_paths(Screen(), Path("a\nb\x1b[31m/report.html"), Path("x" * 200))
    assert capsys.readouterr().out == f"report  a\\nb\\x1b[31m/report.html\ndata    {'x' * 200}\n"


def test_matplotlib_needs_neither_its_backend_nor_a_home(tmp_path: Path) -> None:
    words = ["cassini", "vgg19-1400", "vgg16-1700", "--capacity", "50", "--picture", str(tmp_path / "circles.svg")]
    environment = {**os.environ, "MPLBACKEND": "none-of-its-own", "HOME": "/dev/null"}
    environment = {name: value for name, value in environment.items() if name[:4] not in ("XDG_", "MPLC")}
    done = subprocess.run([sys.executable, "-m", "roundabout.cli.main", *words], env=environment, capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")
    assert (tmp_path / "circles.svg").stat().st_size


def test_a_run_goes_on_to_its_end_where_its_screen_cannot_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    with full_disk(monkeypatch), pytest.raises(OSError, match="No space left"):
        shown(Screen(), done)
    assert len(done) == 2


def test_progress_that_cannot_be_written_to_stderr_leaves_the_result_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    with Path("/dev/full").open("w") as stream:
        monkeypatch.setattr(sys, "stderr", stream)
        shown(Screen(stderr=True), done)
    assert len(done) == 2


def shown(console: Screen, done: list[str]) -> None:
    """Show two steps of a run, and note that they were done."""
    with show_progress(console) as observer:
        for step in ("raising the testbed", "making the report"):
            observer.step(step)
            done.append(step)
