# SPDX-License-Identifier: Apache-2.0
"""`nv` of Cumulus Linux 5. Constructed from NVIDIA's documentation and public programs; none was recorded.

- Answers: NVUE reference ("Config Commands": header of `nv config show`, states of `nv config revision`), NVIDIA's
  Cumulus Linux Automation Workshop (applied configuration, links), Cumulus Linux 5.14 "NVUE CLI" (`--confirm 60m`).
- State `confirm`, `--confirm-yes`, `--confirm-no`: a public napalm-cumulus with NVUE (_get_pending_commits, rollback).
- `nv set qos roce` enables RoCE, and `nv unset` removes no empty blocks above what it removes (the worst case).
- `nv config apply` applies all that its user has set.

nvue.py FOLDER WORD...
"""

import copy
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from state import load, save

State = dict[str, Any]
LEAVES = ("mode", "min-threshold", "max-threshold", "probability", "enable", "ecn", "profile", "trust", "hostname")


def pending(folder: Path) -> bool:
    return "undo" in load(folder)


def undo_what_is_due(folder: Path) -> None:
    state = load(folder)
    if "undo" in state and state["undo"]["due"] <= state["minute"]:
        settle(state, state["undo"]["revision"], "no")
        save(folder, state)


def converse(folder: Path) -> int:
    """Run a script by the real shell, with this `nv`."""
    command = folder / "bin" / "nv"
    if not command.exists():
        command.parent.mkdir()
        command.write_text(f'#!/bin/sh\nexec {sys.executable} -S {__file__} {folder} "$@"\n')
        command.chmod(0o755)
    environment = os.environ | {"HOME": str(folder), "PATH": f"{command.parent}:/usr/bin:/bin"}
    return subprocess.run(["sh", "-s"], stdin=sys.stdin, env=environment, check=False).returncode


def answer(state: State, words: list[str]) -> str:
    """Return the answer of a command, and carry it out. Raises ValueError for one that is refused."""
    text = " ".join(words)
    if text == "config show -o json":
        header = {"model": state["platform"], "nvue-api-version": "nvue_v1", "rev-id": 1.0}
        header["version"] = f"Cumulus Linux {state['release']}"
        return json.dumps([{"header": header}, {"set": state["running"]}], indent=2)
    if text == "config revision -o json":
        return json.dumps(state["revisions"], indent=2)
    if text == "config diff":
        wanted = state.get("wanted")
        return json.dumps(wanted) if wanted is not None and wanted != state["running"] else ""
    if found := re.fullmatch(r"show interface (\S+) link -o json", text):
        return json.dumps(state["links"][found[1]], indent=2)
    change(state, words, text)
    return ""


def change(state: State, words: list[str], text: str) -> None:
    if words[0] in ("set", "unset"):
        tree = state.setdefault("wanted", copy.deepcopy(state["running"]))
        (put if words[0] == "set" else remove)(tree, words[1:])
    elif text == "config detach":
        state.pop("wanted", None)
    elif text == "config save":
        state["saved"] = state["running"]
    elif found := re.fullmatch(r"config apply (?:--confirm (\d+)m )?-y", text):
        apply(state, int(found[1]) if found[1] else None)
    elif found := re.fullmatch(r"config apply (\S+) --confirm-(yes|no)", text):
        settle(state, *found.groups())
    else:
        raise ValueError(f"Invalid Command: {text}")


def put(tree: State, words: list[str]) -> None:
    value = words.pop() if len(words) > 1 and words[-2] in LEAVES else None
    for word in words[:-1]:
        tree = tree.setdefault(word, {})
    if value is None:
        tree.setdefault(words[-1], {})
    else:
        tree[words[-1]] = int(value) if value.isdigit() else value


def remove(tree: State, words: list[str]) -> None:
    for word in words[:-1]:
        tree = tree.get(word, {})
    tree.pop(words[-1], None)


def apply(state: State, minutes: int | None) -> None:
    if "undo" in state:
        raise ValueError("a revision waits for its confirmation")
    name = str(len(state["revisions"]) + 1)
    before, state["running"] = state["running"], state.pop("wanted", state["running"])
    state["revisions"][name] = {"state": "applied_and_saved" if minutes is None else "confirm"}
    if minutes is not None:
        state["undo"] = {"due": state["minute"] + minutes, "running": before, "revision": name}


def settle(state: State, name: str, verdict: str) -> None:
    if state.get("undo", {}).get("revision") != name:
        raise ValueError(f"Unknown state: '{state['revisions'].get(name, {}).get('state')}'")
    undo = state.pop("undo")
    state["revisions"][name]["state"] = "applied_and_saved" if verdict == "yes" else "confirm_fail"
    if verdict == "no":
        state["running"] = undo["running"]


def main() -> int:
    folder, words = Path(sys.argv[1]), sys.argv[2:]
    state = load(folder)
    try:
        if state["refuses"] and re.search(state["refuses"], " ".join(["nv", *words])):
            raise ValueError("refused")
        print(answer(state, words))
    except ValueError as reason:
        print(f"Error: {reason}", file=sys.stderr)
        return 1
    save(folder, state)
    return 0


if __name__ == "__main__":
    sys.exit(main())
