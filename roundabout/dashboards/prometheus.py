# SPDX-License-Identifier: Apache-2.0
"""Debian's Prometheus as a child of this process, with its own configuration, reachable only on loopback."""

import json
import os
import pwd
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import ProxyHandler, build_opener

import yaml

from roundabout.core.errors import RoundaboutError, UsageError
from roundabout.core.paths import ROOT
from roundabout.dashboards.relay import LOOPBACK
from roundabout.store import files

DASHBOARDS = ROOT / "collectors/dashboards"
RULES = DASHBOARDS / "rules.yml"
SCRAPE_INTERVAL_S = 5  # rules and dashboards assume this interval
READY_TIMEOUT_S, END_TIMEOUT_S, LOOK_S = 60, 10, 0.1
CONFIGURATION, LOG, DATA = "prometheus.yml", "prometheus.log", "data"
RETENTION = (CONFIGURATION, LOG, DATA, RULES.name)  # allowed content of a folder of --keep
UNPRIVILEGED = ("prometheus", "nobody")  # users for Prometheus; Debian's package creates the first


def configuration(relay: str) -> dict[str, Any]:
    """Return Prometheus's configuration, which discovers targets from the relay at the address `relay`."""
    discovery = {"url": f"{relay}/targets", "refresh_interval": "1s"}
    return {
        "global": {
            "scrape_interval": f"{SCRAPE_INTERVAL_S}s",
            "scrape_timeout": f"{SCRAPE_INTERVAL_S}s",
            "evaluation_interval": f"{SCRAPE_INTERVAL_S}s",
        },
        "rule_files": [RULES.name],
        # Labels of exporters take precedence over the target's, because an exporter may serve figures of other hosts.
        "scrape_configs": [{"job_name": "roundabout", "honor_labels": True, "http_sd_configs": [discovery]}],
    }


@contextmanager
def prometheus(relay: str, folder: Path, port: int) -> Iterator[str]:
    """Run Prometheus in `folder` on `port` for the duration of the block, and yield its URL. Raises RoundaboutError."""
    program = shutil.which("prometheus")
    if program is None:
        raise RoundaboutError("prometheus was not found", "install it: ./bootstrap dashboards")
    _refuse_taken(port)
    log, url = folder / LOG, f"http://{LOOPBACK}:{port}"
    # setpriv: it ends with us, however we end, and is not root.
    command = ["setpriv", "--pdeathsig", "TERM", *_setpriv_options(folder), program]
    command += ["--config.file", CONFIGURATION, "--storage.tsdb.path", DATA]
    command += ["--web.listen-address", f"{LOOPBACK}:{port}"]
    with files.disk_errors(folder):
        _write(folder / CONFIGURATION, yaml.safe_dump(configuration(relay)))
        _write(folder / RULES.name, RULES.read_text())
        with files.create_file(log) as output:
            process = subprocess.Popen(
                command, cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
            )
    try:
        _await_ready(process, url, log)
        yield url
    finally:
        process.terminate()
        try:
            process.wait(END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def dashboards() -> dict[str, list[tuple[str, str]]]:
    """Return the project's dashboards: title -> title and query of each panel."""
    found = {}
    for path in sorted(DASHBOARDS.glob("*.json")):
        dashboard = json.loads(path.read_text())
        found[dashboard["title"]] = [
            (panel["title"], target["expr"]) for panel in dashboard["panels"] for target in panel.get("targets", ())
        ]
    return found


def graph_url(url: str, queries: list[tuple[str, str]]) -> str:
    """Return the URL of a page of Prometheus that plots these panels (title, query) over the last ten minutes."""
    fields: dict[str, str] = {}
    for number, (_, query) in enumerate(queries):
        fields |= {f"g{number}.expr": query, f"g{number}.tab": "0", f"g{number}.range_input": "10m"}
    return f"{url}/graph?{urlencode(fields)}"


def _refuse_taken(port: int) -> None:
    with closing(socket.socket()) as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            one.bind((LOOPBACK, port))
        except OSError as error:
            raise RoundaboutError(
                f"--port: found {port}, which cannot be had ({error.strerror}), expected a free port of {LOOPBACK}",
                f"stop what listens there, or give another: --port {port + 1}",
            ) from error


def _write(path: Path, text: str) -> None:
    """Write a file that Prometheus can read as another user."""
    with files.create_file(path) as file:
        os.fchmod(file.fileno(), 0o644)
        file.write(text.encode())


def _setpriv_options(folder: Path) -> list[str]:
    """Return setpriv's options that run Prometheus as the owner of `folder`/data, which is made if missing.

    Only `data` is Prometheus' own. Root writes beside it, so no other user may have write access there. Raises
    UsageError if one has.
    """
    if os.geteuid() != 0:
        return []
    with files.disk_errors(folder):
        with _open_folder(folder) as handle:
            _own_folder(folder, handle)
        with suppress(FileExistsError):
            (folder / DATA).mkdir(0o755)
            os.chown(folder / DATA, *_unprivileged()[0], follow_symlinks=False)
        with _open_folder(folder / DATA) as handle:
            about = os.fstat(handle)
    if about.st_uid == 0:
        raise UsageError(
            f"--keep: found '{folder / DATA}' of root, expected it to belong to the user that Prometheus runs as",
            f"chown --recursive --no-dereference {UNPRIVILEGED[-1]} '{folder / DATA}'",
        )
    return [f"--reuid={about.st_uid}", f"--regid={about.st_gid}", "--clear-groups"]


def _own_folder(folder: Path, handle: int) -> None:
    """Make root, or the caller of sudo, the owner of `folder`. Earlier revisions gave it to Prometheus' user."""
    if os.fstat(handle).st_uid in {user for user, _ in _unprivileged()}:
        os.fchown(handle, 0, 0)
        files.return_to_caller(handle)
    about = os.fstat(handle)
    if about.st_uid not in (0, int(os.environ.get("SUDO_UID", "0"))) or about.st_mode & 0o022:
        raise UsageError(
            f"--keep: found '{folder}' of user {about.st_uid} with mode {about.st_mode & 0o7777:o}, "
            "expected a folder in which only you may write",
            f"chown root '{folder}' && chmod go-w '{folder}', or give another folder",
        )
    os.fchmod(handle, about.st_mode & 0o7777 | 0o011)  # Prometheus passes through it


def _unprivileged() -> list[tuple[int, int]]:
    """Return the known users and groups of UNPRIVILEGED; the first of them owns new measurements."""
    known = {user.pw_name: (user.pw_uid, user.pw_gid) for user in pwd.getpwall()}
    return [known[name] for name in UNPRIVILEGED if name in known]


@contextmanager
def _open_folder(folder: Path) -> Iterator[int]:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        yield handle
    finally:
        os.close(handle)


def _await_ready(process: "subprocess.Popen[bytes]", url: str, log: Path) -> None:
    direct = build_opener(ProxyHandler({}))
    deadline = time.monotonic() + READY_TIMEOUT_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            said = log.read_text(errors="replace").strip().splitlines()
            raise RoundaboutError(f"prometheus ended: {said[-1] if said else f'exit status {process.returncode}'}")
        try:
            with direct.open(f"{url}/-/ready", timeout=1):
                return
        except OSError:
            time.sleep(LOOK_S)
    raise RoundaboutError(f"prometheus was not ready after {READY_TIMEOUT_S} s", f"what it said: {log}")
