# SPDX-License-Identifier: Apache-2.0
"""The commands of switches with a shell. Constructed from SONiC's sources and public bfrt scripts; none was recorded.

tools.py FOLDER COMMAND [WORD...]
"""

import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import bfrt
from state import load, save

FOLDER = Path(sys.argv[1])
CHECKPOINTS = FOLDER / "etc/sonic/checkpoints"
ALLOWED = ("config", "systemd-run", "systemctl", "cp", "mv", "rm")  # as docs/rack.md asks of sudo


class RefusedError(Exception):
    """Why a command does not do it."""


def sudo(words: list[str]) -> None:
    if words[0] != "-n" or words[1] not in ALLOWED:
        raise RefusedError("sudo: a password is required")
    os.execvpe(words[1], words[1:], os.environ | {"FAKE_ROOT": "1"})


def need_root() -> None:
    if "FAKE_ROOT" not in os.environ:
        raise RefusedError("Root privileges are required for this operation")


def systemd_run(words: list[str]) -> None:
    need_root()
    options = dict(word.lstrip("-").split("=") for word in words if word.startswith("--") and "=" in word)
    state = load(FOLDER)
    if options["unit"] in state["timers"]:
        raise RefusedError(f"Failed to start transient timer unit: Unit {options['unit']}.timer was already loaded")
    command = words[next(number for number, word in enumerate(words) if not word.startswith("--")) :]
    due = state["minute"] + int(options["on-active"].removesuffix("m"))
    state["timers"][options["unit"]] = {"due": due, "command": command}
    save(FOLDER, state)
    print(f"Running timer as unit: {options['unit']}.timer", file=sys.stderr)


def systemctl(words: list[str]) -> None:
    need_root()
    state = load(FOLDER)
    if words[0] != "stop" or state["timers"].pop(words[1].removesuffix(".timer"), None) is None:
        raise RefusedError(f"Failed to stop {words[1]}: Unit {words[1]} not loaded.")
    save(FOLDER, state)


def config(words: list[str]) -> None:
    """SONiC's, with its checkpoints (generic_config_updater)."""
    need_root()
    state = load(FOLDER)
    action, name = words[0], words[-1]
    checkpoint = CHECKPOINTS / f"{name}.cp.json"
    if action in ("rollback", "delete-checkpoint") and not checkpoint.exists():
        raise RefusedError(f"Error: Checkpoint '{name}' does not exist")
    if action == "checkpoint":
        checkpoint.write_text(json.dumps(state["running"]))
    elif action == "rollback":
        state["running"] = json.loads(checkpoint.read_text())
    elif action == "delete-checkpoint":
        checkpoint.unlink()
    elif action == "load":
        merge(state["running"], json.loads(Path(name).read_text()))
    elif action == "save":
        state["saved"] = state["running"]
    else:
        raise RefusedError(f'Error: No such command "{action}".')
    save(FOLDER, state)


def merge(running: dict[str, Any], tables: dict[str, Any]) -> None:
    for table, entries in tables.items():
        for entry, fields in entries.items():
            running.setdefault(table, {}).setdefault(entry, {}).update(fields)


def sonic_cfggen(words: list[str]) -> None:
    if words != ["-d", "--print-data"]:
        raise RefusedError("sonic-cfggen: error: unrecognized arguments")
    print(json.dumps(load(FOLDER)["running"], indent=4))


def bfshell(words: list[str]) -> None:
    """Reads what is left of standard input, and ends well whatever becomes of the script."""
    sys.stdin.read()
    print("bfruntime cli: a fake one\nbfshell> bfrt_python")
    bfrt.run(FOLDER, Path(words[words.index("-b") + 1]))


def real(name: str) -> Callable[[list[str]], None]:
    """The machine's own command, where only root may write in /etc and /run."""

    def command(words: list[str]) -> None:
        target = str(Path(words[-1]).absolute())
        if target.startswith((str(FOLDER / "etc"), str(FOLDER / "run"))):
            need_root()
        os.execv(f"/bin/{name}", [name, *words])

    return command


SYSTEMS: dict[str, dict[str, Callable[[list[str]], None]]] = {
    "sonic": {"config": config, "sonic-cfggen": sonic_cfggen},
    "tofino": {"bfshell": bfshell},
}
COMMANDS = {"sudo": sudo, "systemd-run": systemd_run, "systemctl": systemctl} | {
    name: real(name) for name in ("cp", "mv", "rm")
}


def main() -> int:
    name, words = sys.argv[2], sys.argv[3:]
    refuses = load(FOLDER)["refuses"]
    try:
        if refuses and re.search(refuses, " ".join([name, *words])) and name != "sudo":
            raise RefusedError(f"Error: {name} refuses")
        (COMMANDS | SYSTEMS[FOLDER.name])[name](words)
    except KeyError:
        print(f"{name}: not found", file=sys.stderr)
        return 127
    except RefusedError as reason:
        print(reason, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
