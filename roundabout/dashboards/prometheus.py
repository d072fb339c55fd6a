# SPDX-License-Identifier: Apache-2.0
"""Debian's Prometheus, with a configuration of its own and on loopback alone: a child that ends with this process."""

import json
import os
import pwd
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import ProxyHandler, build_opener

import yaml

from roundabout.dashboards.relay import LOOPBACK
from roundabout.errors import RoundaboutError
from roundabout.tree import ROOT

DASHBOARDS = ROOT / "collectors/dashboards"
RULES = DASHBOARDS / "rules.yml"
EVERY_S = 5  # what rules and dashboards count on
READY_S, END_S, LOOK_S = 60, 10, 0.1
UNPRIVILEGED = "nobody"


def configuration(relay: str) -> dict[str, Any]:
    """What Prometheus reads: it asks the relay which targets there are."""
    discovery = {"url": f"{relay}/targets", "refresh_interval": "1s"}
    return {
        "global": {
            "scrape_interval": f"{EVERY_S}s",
            "scrape_timeout": f"{EVERY_S}s",
            "evaluation_interval": f"{EVERY_S}s",
        },
        "rule_files": [RULES.name],
        # What exporters say of themselves holds: a target's labels are the same, and for those of others.
        "scrape_configs": [{"job_name": "roundabout", "honor_labels": True, "http_sd_configs": [discovery]}],
    }


@contextmanager
def prometheus(relay: str, folder: Path, port: int) -> Iterator[str]:
    """Prometheus at work in `folder`, and its address. Raises RoundaboutError."""
    program = shutil.which("prometheus")
    if program is None:
        raise RoundaboutError("prometheus was not found", "install it: ./bootstrap dashboards")
    _refuse_taken(port)
    (folder / "prometheus.yml").write_text(yaml.safe_dump(configuration(relay)))
    shutil.copy(RULES, folder)
    log, url = folder / "prometheus.log", f"http://{LOOPBACK}:{port}"
    # setpriv: it ends with us, however we end, and is not root.
    command = ["setpriv", "--pdeathsig", "TERM", *_stepping_down(folder), program]
    command += ["--config.file", "prometheus.yml", "--storage.tsdb.path", "data"]
    command += ["--web.listen-address", f"{LOOPBACK}:{port}"]
    with log.open("wb") as said:
        process = subprocess.Popen(
            command, cwd=folder, stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True
        )
    try:
        _await_ready(process, url, log)
        yield url
    finally:
        process.terminate()
        try:
            process.wait(END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def dashboards() -> dict[str, list[tuple[str, str]]]:
    """The dashboards that are shipped: title -> the panels' titles and queries."""
    found = {}
    for path in sorted(DASHBOARDS.glob("*.json")):
        dashboard = json.loads(path.read_text())
        found[dashboard["title"]] = [
            (panel["title"], target["expr"]) for panel in dashboard["panels"] for target in panel.get("targets", ())
        ]
    return found


def graphs(url: str, queries: list[tuple[str, str]]) -> str:
    """The page of Prometheus that shows these panels, over the last ten minutes."""
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


def _stepping_down(folder: Path) -> list[str]:
    """Options of setpriv, where we are root; the folder is then that user's."""
    if os.geteuid() != 0:
        return []
    user = pwd.getpwnam(UNPRIVILEGED)
    for path in (folder, *folder.rglob("*")):
        os.chown(path, user.pw_uid, user.pw_gid)
    return [f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]


def _await_ready(process: "subprocess.Popen[bytes]", url: str, log: Path) -> None:
    direct = build_opener(ProxyHandler({}))
    deadline = time.monotonic() + READY_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            said = log.read_text(errors="replace").strip().splitlines()
            raise RoundaboutError(f"prometheus ended: {said[-1] if said else f'exit status {process.returncode}'}")
        try:
            with direct.open(f"{url}/-/ready", timeout=1):
                return
        except OSError:
            time.sleep(LOOK_S)
    raise RoundaboutError(f"prometheus was not ready after {READY_S} s", f"what it said: {log}")
