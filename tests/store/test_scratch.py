# SPDX-License-Identifier: Apache-2.0
"""Temporary folders and crash logs: bounded, and removed by `clean` once their process is dead, if they are ours."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from roundabout.cli.main import main
from roundabout.cli.runs import clean
from roundabout.store import scratch

pytestmark = pytest.mark.unit

HOLDER = """
import sys
from roundabout.store import scratch
with scratch.folder("report") as folder:
    print(folder, flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def tmp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def test_a_folder_is_gone_at_its_end_and_kept_while_its_process_lives(tmp: Path) -> None:
    with scratch.folder("report") as folder:
        (folder / "part").touch()
        assert list(scratch.remove_dead()) == []
        assert (folder / "part").exists()
    assert list(tmp.iterdir()) == []


def test_a_killed_process_leaves_what_clean_removes(tmp: Path) -> None:
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", HOLDER], stdin=pipe, stdout=pipe, text=True) as holder:
        assert holder.stdout
        folder = Path(holder.stdout.readline().strip())
        assert list(scratch.remove_dead()) == []
        holder.kill()
    assert folder.parent == tmp
    assert list(scratch.remove_dead()) == [folder]
    assert list(tmp.iterdir()) == []


def test_foreign_files_in_the_temporary_folder_stay(tmp: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / scratch.LOCK).touch()
    (tmp / "roundabout-main").mkdir()  # a checkout, for example
    (tmp / "roundabout-report-abcdefgh").mkdir()  # without our lock file
    (tmp / "roundabout-report-20261126").symlink_to(elsewhere)
    (tmp / "roundabout-crash-abcdefgh.log").symlink_to(elsewhere / scratch.LOCK)
    (tmp / "roundabout-report-linkedup").mkdir()
    (tmp / "roundabout-report-linkedup" / scratch.LOCK).symlink_to(elsewhere / scratch.LOCK)
    before = sorted(tmp.iterdir())
    if os.geteuid() == 0:
        (tmp / "roundabout-report-stranger").mkdir()
        (tmp / "roundabout-report-stranger" / scratch.LOCK).touch()
        os.chown(tmp / "roundabout-report-stranger", 65534, 65534)
        before = sorted(tmp.iterdir())
    assert list(scratch.remove_dead()) == []
    assert sorted(tmp.iterdir()) == before
    assert (elsewhere / scratch.LOCK).exists()


def test_crash_logs_are_few_and_their_users(tmp: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUDO_UID", "12345")
    for number in range(scratch.KEPT_LOGS + 3):
        log = scratch.write_crash_log(str(number))
        os.utime(log, (number, number))
    kept = {int(path.read_text()): path.stat() for path in tmp.iterdir()}
    assert sorted(kept) == list(range(3, scratch.KEPT_LOGS + 3))
    if os.geteuid() == 0:
        assert {about.st_uid for about in kept.values()} == {12345}
    assert len(list(scratch.remove_dead())) == scratch.KEPT_LOGS


def test_clean_names_what_it_removes(
    tmp: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(clean, "STATE", tmp / "state")
    monkeypatch.setattr(clean, "JOURNALS", tmp / "journals")
    log = scratch.write_crash_log("it broke")
    assert main(["clean"]) == 0
    assert capsys.readouterr().out == f"removed {log}\n"
    assert main(["clean"]) == 0
    assert capsys.readouterr().out == "nothing to undo\n"
