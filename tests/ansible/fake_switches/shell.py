# SPDX-License-Identifier: Apache-2.0
"""A switch with a shell, SONiC or one with bfshell.

The sh is real; its /etc/sonic and /run are in the switch's folder, and its commands are those of tools.py.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

from state import load, save

TOOLS = Path(__file__).with_name("tools.py")
COMMANDS = (
    "systemd-run",
    "systemctl",
    "config",
    "sonic-cfggen",
    "sonic-db-cli",
    "bfshell",
    "sleep",
    "cp",
    "rm",
)
# A shell starts faster than Python. The commands are those that docs/how-to/rack.md lists for sudo.
SUDO = """#!/bin/sh
case "$1 $2" in
  "-n config" | "-n systemd-run" | "-n systemctl" | "-n cp" | "-n rm") shift; FAKE_ROOT=1 exec "$@" ;;
esac
echo "sudo: a password is required" >&2
exit 1
"""
# Where a change that waits is seen, by the files that the role keeps.
UNDO = {"sonic": "etc/sonic/roundabout-undo.sh", "tofino": "run/roundabout-undo-tofino.py"}


def pending(folder: Path) -> bool:
    return (folder / UNDO[folder.name]).exists()


def undo_what_is_due(folder: Path) -> None:
    state = load(folder)
    due = [unit for unit, timer in state["timers"].items() if timer["due"] <= state["minute"]]
    commands = [state["timers"].pop(unit)["command"] for unit in due]
    save(folder, state)
    for command in commands:
        as_root = environment(folder) | {"FAKE_ROOT": "1"}
        subprocess.run(command, env=as_root, check=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


def converse(folder: Path) -> int:
    script = re.sub(r"(?<![\w.])/(etc/sonic|run)\b", rf"{folder}/\1", sys.stdin.read())
    tools = environment(folder)
    subprocess.run(["sleep", "1"], env=tools, check=False)
    status = subprocess.run(["sh", "-s"], input=script, text=True, env=tools).returncode
    subprocess.run(["sleep", "1"], env=tools, check=False)
    return status


def environment(folder: Path) -> dict[str, str]:
    """The folder's own commands come first; what belongs to the other system is missing."""
    programs = folder / "bin"
    if not programs.exists():
        for part in (programs, folder / "tmp", folder / "run", folder / "etc/sonic/checkpoints"):
            part.mkdir(parents=True)
        scripts = {name: f'#!/bin/sh\nexec {sys.executable} -S {TOOLS} {folder} {name} "$@"\n' for name in COMMANDS}
        for name, script in (scripts | {"sudo": SUDO}).items():
            (programs / name).write_text(script)
            (programs / name).chmod(0o755)
    return os.environ | {"PATH": f"{programs}:/usr/bin:/bin", "TMPDIR": str(folder / "tmp")}
