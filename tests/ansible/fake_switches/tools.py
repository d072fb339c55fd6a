# SPDX-License-Identifier: Apache-2.0
"""The commands of switches with a shell. Constructed from SONiC's sources and open-p4studio; none was recorded.

GCU: sonic-utilities, generic_config_updater/field_operation_validators.py and gcu_field_operation_validators.conf.json
of each release's branch. What makes headroom: sonic-swss, cfgmgr/buffermgr.cpp.

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
import gcu
from state import load, save

FOLDER = Path(sys.argv[1])
CHECKPOINTS = FOLDER / "etc/sonic/checkpoints"
ALLOWED = ("config", "systemd-run", "systemctl", "cp", "rm")  # as docs/how-to/rack.md asks of sudo


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
        target = json.loads(checkpoint.read_text())
        if illegal := gcu.illegal(state["running"], target, state["release"]):
            raise RefusedError(f"Error: Modification of {illegal} table is illegal")
        state["running"] = target
    elif action == "delete-checkpoint":
        checkpoint.unlink()
    elif action == "load":
        merge(state["running"], json.loads(Path(name).read_text()))
        make_headroom(state["running"])
    elif action == "save":
        state["saved"] = state["running"]
    else:
        raise RefusedError(f'Error: No such command "{action}".')
    save(FOLDER, state)


def merge(running: dict[str, Any], tables: dict[str, Any]) -> None:
    for table, entries in tables.items():
        for entry, fields in entries.items():
            running.setdefault(table, {}).setdefault(entry, {}).update(fields)


def make_headroom(running: dict[str, Any]) -> None:
    """buffermgrd: a profile for each port with a cable length and PFC, by speed and length, and a group that has it.

    Where headroom is computed (buffer_model dynamic), profiles are not in this database.
    """
    if running["DEVICE_METADATA"]["localhost"].get("buffer_model") == "dynamic":
        return
    for lengths in running.get("CABLE_LENGTH", {}).values():
        for port, length in lengths.items():
            name = f"pg_lossless_{running['PORT'][port]['speed']}_{length}_profile"
            for priority in running.get("PORT_QOS_MAP", {}).get(port, {}).get("pfc_enable", "").split(","):
                if priority:
                    profile = {"pool": "ingress_lossless_pool", "xon": "19456", "xoff": "16384"}
                    running.setdefault("BUFFER_PROFILE", {}).setdefault(name, profile)
                    running.setdefault("BUFFER_PG", {})[f"{port}|{priority}"] = {"profile": name}


def sonic_cfggen(words: list[str]) -> None:
    state = load(FOLDER)
    running = state["running"]
    answers = {
        ("-d", "--print-data"): json.dumps(running, indent=4),
        ("-d", "-v", "DEVICE_METADATA.localhost.platform"): running["DEVICE_METADATA"]["localhost"]["platform"],
        ("-y", str(FOLDER / "etc/sonic/sonic_version.yml"), "-v", "build_version"): state["release"],
    }
    if tuple(words) not in answers:
        raise RefusedError("sonic-cfggen: error: unrecognized arguments")
    print(answers[tuple(words)])


def sonic_db_cli(words: list[str]) -> None:
    """Redis' HSET, HDEL and DEL; what of it buffermgrd listens to, it acts on."""
    database, command, *rest = words
    if database != "CONFIG_DB" or command not in ("HSET", "HDEL", "DEL"):
        raise RefusedError(f"Invalid database or command: {database} {command}")
    state = load(FOLDER)
    running = state["running"]
    for key in rest if command == "DEL" else rest[:1]:
        table, entry = key.split("|", 1)
        fields = running.setdefault(table, {}).setdefault(entry, {})
        if command == "HSET":
            fields.update(zip(rest[1::2], rest[2::2], strict=True))
        for field in rest[1:] if command == "HDEL" else ():
            fields.pop(field, None)
        if command == "DEL" or not fields:
            del running[table][entry]
        if not running[table]:
            del running[table]
        if table in ("CABLE_LENGTH", "PORT_QOS_MAP"):
            make_headroom(running)
    save(FOLDER, state)


def sleep(_words: list[str]) -> None:
    """Nothing here takes its time."""


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
    "sonic": {"config": config, "sonic-cfggen": sonic_cfggen, "sonic-db-cli": sonic_db_cli},
    "tofino": {"bfshell": bfshell},
}
COMMANDS = {"sudo": sudo, "sleep": sleep, "systemd-run": systemd_run, "systemctl": systemctl} | {
    name: real(name) for name in ("cp", "rm")
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
