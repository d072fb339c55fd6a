# SPDX-License-Identifier: Apache-2.0
"""EOS' command line, without a terminal. Constructed from public eAPI answers; none was recorded here.

- Answers of `show version`, `show interfaces`: mocked_data of NAPALM (test/eos, cEOSLab 4.30.0F and DCS-7010T 4.20.7M).
- Answers of `show configuration sessions detail`: aio-eapi and scrapli_cfg (EOS 4.22.1F); while a commit timer runs, as
  NAPALM's `_get_pending_commits` reads them, up to 4.31 and from 4.32 on.
- A completed session keeps its name: entering it again is refused, and so is deleting one that does not exist.
- While a timer runs, no other session can be committed. `configure session NAME abort` brings the configuration back.
- A line that its mode does not have is tried in the modes above.
"""

import json
import re
import sys
from difflib import unified_diff
from pathlib import Path
from typing import Any

from state import load, save, take_due_undo

# Lines that open a mode, and statements, by the first words of the mode.
MODES = {
    "": (r"qos profile \S+|interface \S+", r"qos map dscp [\d ]+( to traffic-class \d)?"),
    "qos profile": (r"(uc-)?tx-queue \d", r"qos trust (dscp|cos)|priority-flow-control (on|priority \d (no-)?drop)"),
    "uc-tx-queue": (
        r"(?!)",
        r"no priority|priority strict|random-detect ecn minimum-threshold \d+ bytes maximum-threshold \d+ bytes "
        r"max-mark-probability \d+ weight \d+",
    ),
    "interface": (r"(?!)", r"service-profile \S+|mtu \d+|description \S+|qos trust (dscp|cos)"),
}
# Statements of which a mode has one.
ALONE = ("service-profile", "mtu", "qos trust")
Tree = dict[str, Any]


def pending(folder: Path) -> bool:
    return "undo" in load(folder)


def undo_what_is_due(folder: Path) -> None:
    state = load(folder)
    if undo := take_due_undo(state):
        state["running"] = undo["running"]
        state["sessions"][undo["session"]] = {"state": "completed"}
        save(folder, state)


def converse(folder: Path) -> int:
    state = load(folder)
    Cli(state).run()
    save(folder, state)
    return 0


def render(tree: Tree, depth: int = 0) -> list[str]:
    """Return the lines of a configuration."""
    lines = []
    for line, below in sorted(tree.items()):
        lines += [f"{'   ' * depth}{line}", *render(below or {}, depth + 1)]
    return lines


class Cli:
    """One session of ssh."""

    def __init__(self, state: dict[str, Any]) -> None:
        self.state = state
        self.name = ""
        self.modes: list[str] = []
        self.enabled = False

    def run(self) -> None:
        for line in (text.strip() for text in sys.stdin):
            if self.state["refuses"] and re.search(self.state["refuses"], line):
                print("% Invalid input")
            elif self.name:
                self.configure(line)
            elif line == "exit":
                return
            elif line:
                self.execute(line)

    def execute(self, line: str) -> None:
        if line == "enable":
            self.enabled = True
        elif not self.enabled:
            print("% Invalid input (privileged mode required)")
        elif found := re.fullmatch(r"(no )?configure session (\S+)(?: (.*))?", line):
            self.session(found[2], "delete" if found[1] else found[3] or "enter")
        elif line == "write memory":
            self.state["saved"] = self.state["running"]
            print("Copy completed successfully.")
        elif line != "terminal length 0":
            self.show(line)

    def show(self, line: str) -> None:
        running = self.state["running"]
        if line == "show version | json":
            self.answer({"mfgName": "Arista", "modelName": self.state["platform"], "version": self.state["release"]})
        elif line == "show configuration sessions detail | json":
            self.answer(self.sessions())
        elif found := re.fullmatch(r"show interfaces (\S+) \| json", line):
            self.answer({"interfaces": {found[1]: {"name": found[1], **self.state["interfaces"][found[1]]}}})
        elif found := re.fullmatch(r"show running-config interfaces (\S+)", line):
            name = f"interface {found[1]}"
            print("\n".join(render({name: running.get(name, {})})))
        elif line == "show running-config | include ^qos map dscp":
            print("\n".join(each for each in render(running) if each.startswith("qos map dscp")))
        elif found := re.fullmatch(r"show session-config named (\S+) diffs", line):
            wanted = self.state["sessions"][found[1]]["config"]
            names = ("system:/running-config", f"session:/{found[1]}-session-config")
            print("\n".join(unified_diff(render(running), render(wanted), *names, lineterm="")))
        else:
            print("% Invalid input")

    def answer(self, content: dict[str, Any]) -> None:
        print(json.dumps(content, indent=4))

    def sessions(self) -> dict[str, Any]:
        """Return the answer of EOS up to 4.31, or of a later release."""
        undo = self.state.get("undo")
        listed: dict[str, Any] = {}
        for name, session in self.state["sessions"].items():
            waits = undo and undo["session"] == name and self.state["release"] < "4.32"
            shown = "pendingCommitTimer" if waits else session["state"]
            listed[name] = {"state": shown, "commitUser": "", "description": "", "instances": {}}
        later = {"commitTimerSessionName": undo["session"], "commitTimerExpireTime": 300.0} if undo else {}
        return {"maxSavedSessions": 1, "maxOpenSessions": 5, "sessions": listed} | (
            later if self.state["release"] >= "4.32" else {}
        )

    def session(self, name: str, verb: str) -> None:
        sessions, undo = self.state["sessions"], self.state.get("undo", {})
        waits = undo.get("session") == name
        if verb == "delete":
            if sessions.pop(name, None) is None:
                print(f"% Cannot delete non-existent session {name}")
        elif verb == "commit" and waits:
            del self.state["undo"]
            sessions[name] = {"state": "completed"}
        elif verb == "abort" and waits:
            self.state["running"] = self.state.pop("undo")["running"]
            del sessions[name]
        elif sessions.get(name, {}).get("state") == "completed":
            print(f"% Cannot enter session {name} (already completed)")
        elif verb == "abort":
            sessions.pop(name, None)
        elif verb == "enter":
            running = json.loads(json.dumps(self.state["running"]))
            sessions.setdefault(name, {"state": "pending", "config": running})
            self.name = name
        elif undo:
            print(f"% Cannot commit session {name}: another session {undo['session']} is pending commit timer")
        elif name not in sessions:
            print(f"% Session {name} does not exist")
        else:
            self.commit(name, verb)

    def commit(self, name: str, verb: str) -> None:
        before, self.state["running"] = self.state["running"], self.state["sessions"][name].pop("config")
        self.state["sessions"][name] = {"state": "completed"}
        if found := re.fullmatch(r"commit timer (\d\d):(\d\d):(\d\d)", verb):
            due = self.state["minute"] + int(found[1]) * 60 + int(found[2])
            self.state["undo"] = {"due": due, "running": before, "session": name}

    @property
    def kind(self) -> str:
        """Return the first words of the mode."""
        mode = self.modes[-1] if self.modes else ""
        return next(words for words in reversed(MODES) if mode.startswith(words))

    def configure(self, line: str) -> None:
        """Handle one line of a configuration session."""
        if line == "end":
            self.name, self.modes = "", []
            return
        negated = line.startswith("no ") and line != "no priority"
        statement = line.removeprefix("no ") if negated else line
        while not any(re.fullmatch(pattern, statement) for pattern in MODES[self.kind]):
            if not self.modes:
                print("% Invalid input")
                return
            self.modes.pop()
        block = self.state["sessions"][self.name]["config"]
        for mode in self.modes:
            block = block.setdefault(mode, {})
        opens = re.fullmatch(MODES[self.kind][0], statement)
        if negated:
            replace(block, f"{statement} ")
        elif opens:
            block.setdefault(statement, {})
            self.modes.append(statement)
        else:
            replace(block, next((words for words in ALONE if statement.startswith(words)), statement))
            block[statement] = None


def replace(block: Tree, words: str) -> None:
    """Remove the statements that begin with these words."""
    for statement in [each for each in block if f"{each} ".startswith(words)]:
        del block[statement]
