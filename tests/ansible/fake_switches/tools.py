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

import gcu
from state import load, save

FOLDER = Path(sys.argv[1])
CHECKPOINTS = FOLDER / "etc/sonic/checkpoints"


class RefusedError(Exception):
    """Why a command does not do it."""


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
    """A timer that has run out is unloaded (systemd-run --collect). `busy` has services that still run."""
    state = load(FOLDER)
    if "is-active" in words[:1]:
        if words[2] not in [f"{unit}.timer" for unit in state["timers"]] + state.get("busy", []):
            raise RefusedError("")
        return
    need_root()
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
        # A table at a time, as buffermgrd receives each.
        for table, entries in json.loads(Path(name).read_text()).items():
            merge(state["running"], {table: entries})
            notify(state, [f"{table}|{entry}" for entry in entries])
    elif action == "save":
        state["saved"] = state["running"]
    else:
        raise RefusedError(f'Error: No such command "{action}".')
    save(FOLDER, state)


def merge(running: dict[str, Any], tables: dict[str, Any]) -> None:
    for table, entries in tables.items():
        for entry, fields in entries.items():
            running.setdefault(table, {}).setdefault(entry, {}).update(fields)


def notify(state: dict[str, Any], keys: list[str]) -> None:
    """buffermgrd acts on changes at once, and orchagent later, on all changes since it last looked."""
    made = make_headroom(state) if {key.split("|")[0] for key in keys} & {"CABLE_LENGTH", "PORT_QOS_MAP"} else []
    state["events"] += [key for key in (*keys, *made) if key.split("|")[0] in ("QUEUE", "BUFFER_PG")]


def make_headroom(state: dict[str, Any]) -> list[str]:
    """buffermgrd: a profile for each port with a cable length and PFC, by speed and length, and groups that have it.

    Neighbouring priorities get one group, such as 3-4 (generateIdListFromMap). Ports whose speed and cable are not in
    `lookup` (pg_profile_lookup.ini) get none. Where headroom is computed (buffer_model dynamic), profiles are not in
    this database.
    """
    running, made = state["running"], []
    if running["DEVICE_METADATA"]["localhost"].get("buffer_model") == "dynamic":
        return []
    for port in running.get("CABLE_LENGTH", {}).get("AZURE", {}):
        length, enabled = headroom = headroom_of(running, port)
        if headroom == state.setdefault("headroom", {}).get(port) or not enabled:
            continue
        state["headroom"][port] = headroom
        speed = running["PORT"][port]["speed"]
        if [speed, length] not in state.get("lookup", [[speed, length]]):
            continue
        name = f"pg_lossless_{speed}_{length}_profile"
        profile = {"pool": "ingress_lossless_pool", "xon": "19456", "xoff": "16384"}
        running.setdefault("BUFFER_PROFILE", {}).setdefault(name, profile)
        for group in neighbours(enabled):
            running.setdefault("BUFFER_PG", {})[f"{port}|{group}"] = {"profile": name}
            made.append(f"BUFFER_PG|{port}|{group}")
    return made


def headroom_of(running: dict[str, Any], port: str) -> list[str]:
    """What buffermgrd remembers of a port: its cable's length, and its priorities with PFC."""
    enabled = running.get("PORT_QOS_MAP", {}).get(port, {}).get("pfc_enable", "")
    return [running["CABLE_LENGTH"]["AZURE"][port], enabled]


def neighbours(enabled: str) -> list[str]:
    """Numbers as buffermgrd groups them: 3,4,6 is 3-4 and 6."""
    found: list[list[int]] = []
    for number in sorted(int(each) for each in enabled.split(",")):
        if found and found[-1][-1] == number - 1:
            found[-1].append(number)
        else:
            found.append([number])
    return ["-".join(str(end) for end in dict.fromkeys((each[0], each[-1]))) for each in found]


def settle(state: dict[str, Any]) -> None:
    """orchagent handles its changes: those that are set before those that are deleted, the worst order for ranges."""
    running = state["running"]
    if state["asic"] is None:
        state["asic"] = {}
        make_headroom(state)  # as at boot
        state["events"] = [f"{table}|{entry}" for table in ("QUEUE", "BUFFER_PG") for entry in running.get(table, {})]
    entries = {key: running.get(key.split("|", 1)[0], {}).get(key.split("|", 1)[1]) for key in state["events"]}
    for key, fields in sorted(entries.items(), key=lambda each: (each[1] is None, each[0])):
        table, ports, numbers = key.split("|")
        first, _, last = numbers.partition("-")
        for port in ports.split(","):
            for number in range(int(first), int(last or first) + 1):
                state["asic"][f"{table}|{port}|{number}"] = fields or {}
    state["events"] = []


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
    state = load(FOLDER)
    if command == "EXISTS":
        if database == "APPL_DB":
            settle(state)
            save(FOLDER, state)
        print(sum(exists(state["running"], key) for key in rest))
        return
    if database != "CONFIG_DB" or command not in ("HSET", "HDEL", "DEL"):
        raise RefusedError(f"Invalid database or command: {database} {command}")
    running = state["running"]
    for key in rest if command == "DEL" else rest[:1]:
        table, entry = key.split("|", 1)
        fields = running.setdefault(table, {}).setdefault(entry, {})
        if command == "HSET":
            fields.update(pair for pair in zip(rest[1::2], rest[2::2], strict=True) if pair[0] != "NULL")
        for field in rest[1:] if command == "HDEL" else ():
            fields.pop(field, None)
        if command == "DEL" or (command == "HDEL" and not fields):
            del running[table][entry]
        if not running[table]:
            del running[table]
        notify(state, [key])
    save(FOLDER, state)


def exists(running: dict[str, Any], key: str) -> bool:
    """Whether CONFIG_DB has a key, or APPL_DB a priority group."""
    table, entry = key.replace("BUFFER_PG_TABLE:", "BUFFER_PG|").split("|", 1)
    return entry.replace(":", "|") in running.get(table, {})


def sleep(_words: list[str]) -> None:
    """Takes no time here, but orchagent handles what there is."""
    if FOLDER.name == "sonic":
        state = load(FOLDER)
        settle(state)
        save(FOLDER, state)


def bfshell(words: list[str]) -> None:
    """Reads what is left of standard input, and ends well whatever becomes of the script."""
    import bfrt  # noqa: PLC0415 - other commands, of which there are many, need not wait for it

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
COMMANDS = {"sleep": sleep, "systemd-run": systemd_run, "systemctl": systemctl} | {
    name: real(name) for name in ("cp", "rm")
}


def main() -> int:
    name, words = sys.argv[2], sys.argv[3:]
    refuses = load(FOLDER)["refuses"]
    try:
        if refuses and re.search(refuses, " ".join([name, *words])):
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
