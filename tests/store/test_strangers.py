# SPDX-License-Identifier: Apache-2.0
"""What local users without privileges cannot do: lock what root locks, or make first what root will write to."""

import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

from roundabout.cli.options import save_picture
from roundabout.runner.hosts.connections import LocalConnection
from roundabout.runner.hosts.host_group import Host
from roundabout.runner.machine import machine_lease, temporary, undo_journal
from roundabout.runner.trial import captures
from roundabout.spec.capture import Capture
from roundabout.spec.reader.schema import write_schemas
from roundabout.store import RAW, StoreError, files
from roundabout.testbeds.lab.calibration.calibration import load_calibration, store_calibration
from roundabout.testbeds.lab.lifecycle.locks import lock_folder
from roundabout.testbeds.rack.provider import Lease
from tests.store.written_runs import make, record, write_flow

NOBODY = 65534

pytestmark = [pytest.mark.unit, pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes somebody else")]


@pytest.fixture
def state() -> Iterator[Path]:
    """Where strangers get to, as they do to /run."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder) / "roundabout"


def lockable(folder: Path) -> list[Path]:
    """All that a stranger can open, and so can lock once its holder lets go."""
    paths = [str(folder), *map(str, folder.rglob("*"))]
    tries = 'for path; do (exec 3< "$path") 2> /dev/null && echo "$path"; done; true'
    stranger = subprocess.run(
        ["sh", "-c", tries, "sh", *paths], user=NOBODY, group=NOBODY, extra_groups=[], stdout=subprocess.PIPE, text=True
    )
    return [Path(line) for line in stranger.stdout.splitlines()]


def test_a_stranger_locks_nothing_of_this_machines_state(state: Path, tmp_path: Path) -> None:
    state.mkdir(mode=0o755)  # as older revisions left it
    assert lockable(state) == [state]
    with (
        machine_lease.hold("machine", "me", state),
        undo_journal.open_journal("id", tmp_path, state / "runs") as notes,
        temporary.temporary_files("id", notes, state),
    ):
        assert len(list(state.rglob("*"))) >= 5
        assert lockable(state) == []


def test_a_stranger_cannot_keep_labs_from_being_made(state: Path) -> None:
    with lock_folder(state, create=True):
        assert lockable(state) == []


def test_a_stranger_cannot_take_a_racks_leases(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = state / "rack-leases"
    folder.mkdir(parents=True, mode=0o755)
    monkeypatch.setattr("roundabout.testbeds.rack.rack_lease.LEASES", str(folder))
    held = Lease(LocalConnection(), "me", ["host s0"])
    held.end()
    assert (folder / "host s0").exists()
    assert lockable(folder) == []


def test_temporary_files_lie_where_nobody_can_be_first(state: Path, tmp_path: Path) -> None:
    with (
        undo_journal.open_journal("id", tmp_path, state / "runs") as notes,
        temporary.temporary_files("id", notes, state),
    ):
        assert Path(tempfile.gettempdir()).parent == state
        assert subprocess.run(["mkdir", state / "temporary-other"], user=NOBODY, stderr=subprocess.DEVNULL).returncode
    assert not state.exists()


CAPTURE = """
import sys
print('{"device": "eth0", "rdma_error": null, "monotonic_ns": 5}', flush=True)
sys.stdin.read()
sys.stdout.write('{"files": [7], "captured": 1}\\npackets')
"""


def test_a_stranger_reads_no_raw_packets(state: Path, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "capture.py").write_text(CAPTURE)
    host = Host("s0", "s0", "10.0.0.1", 24, "eth0", tmp_path)
    running = captures.RunningCapture(LocalConnection("s0"), host, Capture(hosts=("s0",)))
    running.end()
    (path,) = running.fetch(state / RAW / "s0").files
    assert path.read_bytes() == b"packets"
    assert path not in lockable(state)


PLANTED = ("summary.json", ".summary.json.partial", "trials.parquet", ".trials.parquet.partial", "manifest.json")


def test_nothing_is_written_through_a_link_that_somebody_planted(tmp_path: Path) -> None:
    precious = tmp_path / "shadow"
    precious.write_text("root")
    run = make(tmp_path / "runs")
    attempt = run.begin_attempt("k1")
    for path in (*(run.path / name for name in PLANTED), attempt.path / "flows.parquet", attempt.path / "trial.json"):
        path.unlink(missing_ok=True)
        path.symlink_to(precious)
    run.write_manifest({"testbed": {}, "experiment": {}, "plan": []})
    write_flow(attempt)
    attempt.commit(record(run, "k1", 1))
    run.refresh_trials()
    run.write_summary({})
    run.check()
    attempt = run.begin_attempt("k2")
    (attempt.path / "events.jsonl").symlink_to(precious)
    with pytest.raises(StoreError, match=r"cannot write .*events\.jsonl"):
        attempt.log("start", 5)
    assert precious.read_text() == "root"


def test_giving_a_run_back_follows_no_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUDO_UID", "12345")
    precious, run = tmp_path / "precious", tmp_path / "run"
    (precious / "inside").mkdir(parents=True)
    (run / "trials").mkdir(parents=True)
    (run / "trials/link").symlink_to(precious)
    files.return_tree_to_caller(run)
    assert {path.lstat().st_uid for path in (run, *run.rglob("*"))} == {12345}
    assert {path.lstat().st_uid for path in (precious, precious / "inside")} == {0}


def test_chown_of_a_run_follows_no_folder_that_becomes_a_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUDO_UID", "12345")
    precious, trials = tmp_path / "precious", tmp_path / "run/trials"
    for folder in (precious, trials):
        folder.mkdir(parents=True)
        (folder / "shadow").touch()
    chown = os.chown

    def swap(path: Any, *owner: int, **options: Any) -> None:
        """Replace the folder by a link just before what is in it is given back."""
        if Path(path).name == "shadow":
            trials.rename(tmp_path / "moved")
            trials.symlink_to(precious)
        chown(path, *owner, **options)

    monkeypatch.setattr(os, "chown", swap)
    files.return_tree_to_caller(tmp_path / "run")
    assert trials.is_symlink()
    assert (precious / "shadow").lstat().st_uid == 0
    assert (tmp_path / "moved/shadow").lstat().st_uid == 12345


@pytest.mark.parametrize(("name", "write"), [
    ("experiment.json", lambda path: write_schemas(path.parent)),
    ("calibration.yaml", lambda path: store_calibration(load_calibration(), path)),
    ("picture.svg", lambda path: save_picture(Figure(), path)),
])  # fmt: skip
def test_nothing_that_a_command_writes_goes_through_a_link(
    name: str, write: Callable[[Path], None], tmp_path: Path
) -> None:
    precious, path = tmp_path / "shadow", tmp_path / name
    precious.write_text("root")
    path.symlink_to(precious)
    write(path)
    assert precious.read_text() == "root"
    assert path.is_file()
    assert not path.is_symlink()
