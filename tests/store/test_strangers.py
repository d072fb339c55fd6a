# SPDX-License-Identifier: Apache-2.0
"""What local users without privileges cannot do: lock what root locks, or make first what root will write to."""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from roundabout.runner.hosts.connections import LocalConnection
from roundabout.runner.machine import journal, lease, temporary
from roundabout.testbeds.lab.locks import locked_folder
from roundabout.testbeds.rack.facility import Lease

NOBODY = 65534

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes somebody else")


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
        lease.hold("machine", "me", state),
        journal.keep("id", tmp_path, state) as notes,
        temporary.files("id", notes, state),
    ):
        assert len(list(state.rglob("*"))) >= 6
        assert lockable(state) == []


def test_a_stranger_cannot_keep_labs_from_being_made(state: Path) -> None:
    with locked_folder(state, create=True):
        assert lockable(state) == []


def test_a_stranger_cannot_take_a_racks_leases(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = state / "rack-leases"
    folder.mkdir(parents=True, mode=0o755)
    monkeypatch.setattr("roundabout.testbeds.rack.facility.LEASES", str(folder))
    held = Lease(LocalConnection(), "me", ["host s0"])
    held.end()
    assert (folder / "host s0").exists()
    assert lockable(folder) == []


def test_temporary_files_lie_where_nobody_can_be_first(state: Path, tmp_path: Path) -> None:
    with journal.keep("id", tmp_path, state) as notes, temporary.files("id", notes, state):
        assert Path(tempfile.gettempdir()).parent == state
        assert subprocess.run(["mkdir", state / "temporary-other"], user=NOBODY, stderr=subprocess.DEVNULL).returncode
    assert not state.exists()
