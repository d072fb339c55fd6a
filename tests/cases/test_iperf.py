# SPDX-License-Identifier: Apache-2.0
"""Outputs of iperf2 and iperf3 that are no interval lines: they are ignored, and a failed run has one message."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from crossgen import iperf

pytestmark = pytest.mark.unit

CASES = Path(__file__).parent
OUTPUTS = [
    *(CASES / name for name in ("iperf2-csv-2.2/out.csv", "iperf2-no-time/out.csv", "iperf3-json-with-words/out.txt")),
]
WORDS = [
    "[  5]   0.00-0.00   sec  0.00 Bytes  0.00 Kbits/sec",
    "warning: JSON data length overflow [  5] 0.00-1.00 sec 1 MBytes 8 Kbits/sec",
    "[  5]   0.00-1.0",
]


@pytest.mark.parametrize("path", OUTPUTS, ids=lambda path: path.parent.name)
def test_other_formats_are_no_seconds(path: Path) -> None:
    assert [iperf.parse_second(line) for line in path.read_text().splitlines()] == [None] * len(
        path.read_text().splitlines()
    )


@pytest.mark.parametrize("line", WORDS)
def test_empty_seconds_and_cut_lines_are_no_seconds(line: str) -> None:
    assert iperf.parse_second(line) is None


@pytest.mark.parametrize("path", OUTPUTS, ids=lambda path: path.parent.name)
def test_a_run_that_printed_no_second_fails_with_one_message(path: Path, tmp_path: Path) -> None:
    program = tmp_path / "iperf3"
    program.write_text(f"#!/bin/sh\ncat {path}\necho 'iperf3: error - unable to receive results' >&2\nexit 1\n")
    program.chmod(0o755)
    argv = [sys.executable, iperf.__file__, "load", "--to", "10.0.0.2", "--load-gbps", "1"]
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    read, write = os.pipe()  # an open standard input means that the load continues
    with os.fdopen(write, "w") as stdin, os.fdopen(read) as source:
        stdin.write("start 1\n")
        stdin.flush()
        done = subprocess.run(argv, stdin=source, capture_output=True, text=True, env=env)
    assert done.stdout == '{"event":"ready"}\n'
    assert (done.returncode, done.stderr) == (1, "iperf.py: iperf3: error - unable to receive results\n")
