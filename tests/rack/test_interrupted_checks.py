# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C and SIGTERM while `doctor` and `acceptance` have programs on a rack's hosts, which stand-ins play."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.deadline import wait_for
from tests.rack.endless_perftest import ENDLESS

pytestmark = pytest.mark.unit

TIMEOUT_S = 120  # of a busy machine
# The remote program reads its standard input to the end, and then hangs, as a tool of a NIC may.
HANGING = f"""#!{sys.executable} -SE
import os, sys, time
from pathlib import Path
Path(os.environ["FABRIC"], f"started-{{os.getpid()}}").touch()
sys.stdin.read()
time.sleep(300)
"""
SIGNALS = pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])


def add_tool(folder: Path, name: str, text: str) -> None:
    (folder / "bin").mkdir(exist_ok=True)
    (folder / "bin" / name).write_text(text)
    (folder / "bin" / name).chmod(0o755)


def interrupt(words: Sequence[str | Path], folder: Path, number: signal.Signals, programs: int) -> tuple[int, str]:
    """Send a signal to a process once so many programs run. Return its status and errors; no program may be left."""
    environment = {**os.environ, "FABRIC": str(folder), "PATH": f"{folder}/bin:{os.environ['PATH']}"}
    with subprocess.Popen(
        [sys.executable, "-m", *words], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        wait_for(lambda: process.poll() is not None or len([*folder.glob("started-*")]) >= programs, TIMEOUT_S)
        process.send_signal(number)
        _, errors = process.communicate(timeout=TIMEOUT_S)
    started = [Path("/proc", path.name.partition("-")[2]) for path in folder.glob("started-*")]
    assert len(started) >= programs
    wait_for(lambda: not any(path.exists() for path in started), TIMEOUT_S, what="no program is left")
    return process.returncode, errors


@SIGNALS
def test_doctor_ends_its_programs(inventory_file: Path, tmp_path: Path, number: signal.Signals, status: int) -> None:
    add_tool(tmp_path, "ssh", HANGING)
    found, errors = interrupt(["roundabout.cli.main", "doctor", inventory_file], tmp_path, number, 12)
    assert (found, errors) == (status, "")


@SIGNALS
def test_acceptance_ends_its_programs(
    inventory_file: Path, tmp_path: Path, number: signal.Signals, status: int
) -> None:
    for name in ("ib_write_bw", "ib_write_lat"):
        add_tool(tmp_path, name, ENDLESS)
    add_tool(tmp_path, "setpriv", '#!/bin/sh\nwhile [ "${1#--}" != "$1" ]; do shift; done; exec "$@"\n')
    add_tool(tmp_path, "ethtool", "#!/bin/sh\n")
    inventory_file.write_text(re.sub(r"10\.10\.0\.(\d+)/24", r"127.0.0.\1/8", inventory_file.read_text()))
    found, errors = interrupt(["tests.rack.endless_perftest", inventory_file], tmp_path, number, 2)
    assert found == status, errors
    assert "Traceback" not in errors
