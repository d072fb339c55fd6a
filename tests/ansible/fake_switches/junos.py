# SPDX-License-Identifier: Apache-2.0
"""Junos' command line, without a terminal. Constructed from its documentation.

- Leaving `configure exclusive` with changes prompts, and takes the next line for its answer.
- In configuration mode every answer ends with the banner `[edit]`.
- `commit confirmed N` goes back by itself, unless `commit` or `commit check` comes before.
- `show system commit` has "rollback pending" below entry 0 until then.
- With two routing engines, `commit` is of one of them, and `commit synchronize` of both.
- Routers (MX) have no PFC, and no QFX a queue's size in microseconds.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from state import load, save, take_due_undo


def pending(folder: Path) -> bool:
    return "undo" in load(folder)


def undo_what_is_due(folder: Path) -> None:
    state = load(folder)
    if undo := take_due_undo(state):
        state["running"] = undo["running"]
        if undo["synchronize"]:
            state["other"] = undo["running"]
        state["commits"].insert(0, "via other")
        save(folder, state)


def converse(folder: Path) -> int:
    state = load(folder)
    Cli(state, (line.rstrip("\n").removesuffix(" | no-more") for line in sys.stdin)).run()
    save(folder, state)
    return 0


class Cli:
    """One session."""

    def __init__(self, state: dict[str, Any], lines: Iterator[str]) -> None:
        self.state = state
        self.lines = lines
        self.candidate: list[str] = []

    def run(self) -> None:
        for line in self.lines:
            if line == "exit":
                return
            if line == "show system commit":
                self.show_commits()
            elif found := re.fullmatch(r'show interfaces (\S+) \| match "Physical interface\|Link-level"', line):
                self.show_interface(found[1])
            elif line == "show version":
                print(f"Hostname: tor\nModel: {self.state['platform']}\nJunos: {self.state['release']}")
            elif line != "configure exclusive":
                print("unknown command.")
            else:
                print("Entering configuration mode\n\n[edit]")
                self.configure()

    def show_commits(self) -> None:
        for number, commit in enumerate(self.state["commits"]):
            print(f"{number}   2026-01-01 00:00:00 UTC by roundabout {commit}")
            if number == 0 and "undo" in self.state:
                print("    rollback pending")

    def show_interface(self, name: str) -> None:
        """The form is that of a QFX's et-0/0/24, in a public file of outputs."""
        if name not in self.state["interfaces"]:
            print(f"error: device {name} not found")
            return
        found = self.state["interfaces"][name]
        print(f"Physical interface: {name}, Enabled, Physical link is Up")
        print(
            f"  Link-level type: Ethernet, MTU: {found['mtu']}, LAN-PHY mode, Speed: {found['speed']}, "
            "BPDU Error: None, Loop Detect PDU Error: None, Ethernet-Switching Error: None, Source filtering: Disabled"
        )

    def configure(self) -> None:
        """Until an `exit` that leaves configuration mode."""
        self.candidate = list(self.state["running"])
        for line in self.lines:
            if line == "exit":
                if self.may_leave():
                    print("Exiting configuration mode")
                    return
            elif any(pattern and re.search(pattern, line) for pattern in (self.state["refuses"], self.unknown)):
                print(
                    "error: configuration check-out failed"
                    if line.startswith("commit")
                    else "         ^\nsyntax error."
                )
            else:
                self.obey(line)
            print("\n[edit]")

    @property
    def unknown(self) -> str:
        """Statements that the platform has not."""
        router = self.state["platform"].startswith("mx")
        return "congestion-notification-profile|no-loss|pfc-priority" if router else "buffer-size temporal"

    def may_leave(self) -> bool:
        """Whether nothing is lost by leaving, or the caller says so."""
        if self.candidate == self.state["running"]:
            return True
        print("The configuration has been changed but not committed\nDiscard uncommitted changes? [yes,no] (yes) ")
        return next(self.lines, "yes") == "yes"

    def obey(self, line: str) -> None:
        verb, _, rest = line.partition(" ")
        if line == "rollback 0":
            self.candidate = list(self.state["running"])
            print("load complete")
        elif line == "show | compare":
            self.compare()
        elif verb == "commit":
            self.commit(rest)
        elif verb == "set":
            if rest not in self.candidate:
                self.candidate.append(rest)
        elif verb == "delete":
            self.delete(rest)
        else:
            print("unknown command.")

    def delete(self, path: str) -> None:
        kept = [statement for statement in self.candidate if not f"{statement} ".startswith(f"{path} ")]
        if kept == self.candidate:
            print("warning: statement not found")
        self.candidate = kept

    def compare(self) -> None:
        """Flat, where Junos nests."""
        running = self.state["running"]
        changes = [("-", each) for each in running if each not in self.candidate]
        changes += [("+", each) for each in self.candidate if each not in running]
        for sign, statement in changes:
            top, _, rest = statement.partition(" ")
            print(f"[edit {top}]\n{sign}   {rest};")

    def commit(self, words: str) -> None:
        before = self.state.pop("undo", None)
        if words == "check":
            print("configuration check succeeds")
            return
        synchronize = words.startswith("synchronize ")
        words = words.removeprefix("synchronize ")
        confirmed = re.match(r"confirmed (\d+) ", words)
        if confirmed:
            # Of two changes in a row that were not confirmed, the first one's way back counts.
            running = before["running"] if before else self.state["running"]
            self.state["undo"] = {"due": self.state["minute"] + int(confirmed[1]), "running": running}
            self.state["undo"]["synchronize"] = synchronize
            print(f"commit confirmed will be automatically rolled back in {confirmed[1]} minutes unless confirmed")
        self.state["running"] = list(self.candidate)
        if synchronize:
            self.state["other"] = list(self.candidate)
        self.state["commits"].insert(
            0, f"via cli commit confirmed, rollback in {confirmed[1]}mins" if confirmed else "via cli"
        )
        print("commit complete")
