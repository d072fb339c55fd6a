# SPDX-License-Identifier: Apache-2.0
"""Prometheus' folder: root writes there through no link, and only `data` belongs to another user."""

import os
import pwd
import tempfile
from collections.abc import Iterator
from pathlib import Path
from socket import create_server

import pytest

from roundabout.cli.tools.dashboards import prepare_folder
from roundabout.core.errors import RoundaboutError, UsageError
from roundabout.dashboards.prometheus import CONFIGURATION, DATA, LOG, prometheus

NOBODY = pwd.getpwnam("nobody")
RELAY = "http://127.0.0.1:1"
STAND_IN = """#!/usr/bin/python3
import http.server, os, pathlib, sys
pathlib.Path("data").mkdir(exist_ok=True)
pathlib.Path("data", f"of-{os.getuid()}").touch()
print(pathlib.Path("prometheus.yml").read_text(), flush=True)
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
port = int(sys.argv[-1].rpartition(":")[2])
http.server.HTTPServer(("127.0.0.1", port), Handler).serve_forever()
"""

pytestmark = [pytest.mark.unit, pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")]


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a folder for every user, with a program that stands in for Prometheus."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        home.chmod(0o755)
        (home / "bin").mkdir()
        (home / "bin/prometheus").write_text(STAND_IN)
        (home / "bin/prometheus").chmod(0o755)
        monkeypatch.setenv("PATH", f"{home}/bin:{os.environ['PATH']}")
        monkeypatch.setattr("roundabout.dashboards.prometheus.UNPRIVILEGED", ("no-such-user", "nobody"))
        yield home


def run(folder: Path) -> None:
    with create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with prometheus(RELAY, prepare_folder(folder), port):
        assert "roundabout" in (folder / LOG).read_text()


def owners(folder: Path) -> dict[str, int]:
    return {str(path.relative_to(folder)): path.lstat().st_uid for path in (folder, *folder.rglob("*"))}


def test_only_data_belongs_to_prometheus(home: Path) -> None:
    for _ in range(2):
        run(home / "kept")
        found = owners(home / "kept")
        theirs = {name for name, user in found.items() if user == NOBODY.pw_uid}
        assert theirs == {DATA, f"{DATA}/of-{NOBODY.pw_uid}"}
        assert found["."] == 0


def test_files_made_under_sudo_belong_to_its_caller(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUDO_UID", "12345")
    run(home / "kept")
    found = owners(home / "kept")
    assert {found[name] for name in (".", CONFIGURATION, LOG)} == {12345}
    assert found[DATA] == NOBODY.pw_uid


@pytest.mark.parametrize("name", [CONFIGURATION, "rules.yml", LOG, f"{DATA}/wal", DATA])
def test_a_link_that_was_planted_in_an_earlier_folder_leads_nowhere(home: Path, name: str) -> None:
    precious, kept = home / "shadow", home / "kept"
    precious.write_text("root")
    (kept / DATA).mkdir(parents=True)
    for path in (kept, kept / DATA):
        os.chown(path, NOBODY.pw_uid, NOBODY.pw_gid)  # as earlier revisions left it
    if (kept / name).is_dir():
        (kept / name).rmdir()
    (kept / name).symlink_to(home if name == DATA else precious)
    if name == DATA:
        with pytest.raises(RoundaboutError, match="cannot write"):
            run(kept)
    else:
        run(kept)
    assert (precious.read_text(), precious.stat().st_uid, home.stat().st_uid) == ("root", 0, 0)
    assert kept.stat().st_uid == 0


def test_a_folder_in_which_others_may_write_is_refused(home: Path) -> None:
    for user, mode, said in ((12345, 0o755, "of user 12345"), (0, 0o777, "with mode 777"), (0, 0o1770, "1770")):
        (home / "kept").mkdir(exist_ok=True)
        os.chown(home / "kept", user, user)
        (home / "kept").chmod(mode)
        with pytest.raises(UsageError, match=f"--keep: found .*{said}"):
            run(home / "kept")


def test_a_folder_with_something_else_is_refused(home: Path) -> None:
    (home / CONFIGURATION).touch()
    with pytest.raises(UsageError, match=f"--keep: found 'bin' in '{home}'"):
        prepare_folder(home)


def test_measurements_of_another_user_are_continued_as_that_user(home: Path) -> None:
    (home / "kept").mkdir()
    (home / "kept" / DATA).mkdir()
    os.chown(home / "kept" / DATA, 1, 1)
    run(home / "kept")
    assert owners(home / "kept")[f"{DATA}/of-1"] == 1
    os.chown(home / "kept" / DATA, 0, 0)
    with pytest.raises(UsageError, match="of root"):
        run(home / "kept")
