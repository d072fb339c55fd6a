# SPDX-License-Identifier: Apache-2.0
"""What is built for hosts and labs: static but for one, so that any glibc will do, and hard to misuse."""

import json
import subprocess

import pytest

from roundabout.core.paths import ROOT
from roundabout.runner.program_list import program_paths

pytestmark = [pytest.mark.lab, pytest.mark.quiet]

NATIVE = [path for path in program_paths("hosts", "controller", "lab") if path.startswith("build/bin/")]
LINKED_DYNAMICALLY = ["build/bin/replay-rdma"]  # RDMA's libraries load the device's own part themselves
WANTED = {"-fPIE", "-fstack-protector-strong", "-fstack-clash-protection", "-D_FORTIFY_SOURCE=2"}
UNOPTIMIZED = WANTED - {"-D_FORTIFY_SOURCE=2"}  # it wants optimization


@pytest.mark.parametrize("path", NATIVE)
def test_a_program_is_loaded_anywhere_and_its_tables_are_read_only(path: str) -> None:
    headers = subprocess.run(["readelf", "-hldW", ROOT / path], check=True, capture_output=True, text=True).stdout
    assert "DYN (Position-Independent Executable file)" in headers
    assert ("INTERP" in headers) == (path in LINKED_DYNAMICALLY)
    assert "GNU_RELRO" in headers
    assert "NOW PIE" in headers
    (stack,) = [line for line in headers.splitlines() if "GNU_STACK" in line]
    assert " RW " in stack


def test_every_source_is_compiled_so() -> None:
    commands = json.loads((ROOT / "build/compile_commands.json").read_text())
    assert commands
    for each in commands:
        words = set(each["command"].split())
        assert (UNOPTIMIZED if "-O0" in words else WANTED) <= words, each["file"]
