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

from roundabout.cli import clean
from roundabout.cli.live import watching
from roundabout.cli.main import main
from roundabout.cli.screen import Screen
from roundabout.tree import ROOT

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


def test_a_reader_that_ended_hears_nothing() -> None:
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
def test_what_the_system_refuses_is_no_bug(
    error: OSError, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def command() -> None:
        raise error

    monkeypatch.setattr(clean, "command", command)
    assert main(["clean"]) == 1
    assert capsys.readouterr().err == f"error: {said}\n"


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
    with watching(console) as observer:
        for step in ("raising the testbed", "making the report"):
            observer.step(step)
            done.append(step)
