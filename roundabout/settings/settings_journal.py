# SPDX-License-Identifier: Apache-2.0
"""The journal of settings: the values found, their owners, and the settings still to be restored."""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path
from typing import Any, Dict, Iterable, List, Optional, Tuple

from roundabout.settings.settings_host import SettingsError

Key = Tuple[str, str, str]  # kind, target (empty for sysctls and CPUs), name
Entry = Dict[str, Any]  # one line of the journal
JOURNAL = "journal.jsonl"
FIELDS = {
    "found": {"owner", "kind", "target", "name", "boot", "found", "wrote"},
    "restored": {"owner"},
}  # required fields of each kind of entry
BY_HAND = "move the file away; what it held must be restored by hand"


class Journal:
    """The journal's file of JSON lines, which is locked exclusively while it is open. Lines are only appended."""

    def __init__(self, state: Path) -> None:
        self.path = state / JOURNAL
        state.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._file, fcntl.LOCK_EX)
        self._drop_torn_line()

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_exception: object) -> None:
        os.close(self._file)

    def _drop_torn_line(self) -> None:
        """Drop a line without its end, which was never followed by a write to the host."""
        content = self.path.read_bytes()
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            os.ftruncate(self._file, whole)

    def entries(self) -> List[Entry]:
        """Return all entries, the oldest first."""
        found = []
        for number, line in enumerate(self.path.read_text().splitlines(), start=1):
            try:
                entry = json.loads(line)
            except ValueError as error:
                raise SettingsError(f"{self.path}: line {number} is not JSON: {line[:60]!r}", BY_HAND) from error
            if not isinstance(entry, dict) or not FIELDS.get(str(entry.get("entry")), {"?"}) <= entry.keys():
                hint = f"restore with the version that wrote it; or {BY_HAND}"
                raise SettingsError(f"{self.path}: line {number} is no entry of this version: {line[:60]!r}", hint)
            found.append(entry)
        return found

    def append(self, entries: List[Entry]) -> None:
        """Append entries and sync them to disk."""
        rest = "".join(json.dumps(entry) + "\n" for entry in entries).encode()
        while rest:
            rest = rest[os.write(self._file, rest) :]
        os.fsync(self._file)
        directory = os.open(self.path.parent, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)

    def empty(self) -> None:
        """Delete all entries. Call it only if nothing is left to restore."""
        os.ftruncate(self._file, 0)


def remove_owner(stack: List[Entry], owner: str) -> List[Entry]:
    """Return a setting's entries without that of `owner`. The next owner's entry gets the value that `owner` found."""
    left: List[Entry] = []
    heir_finds: Optional[Entry] = None
    for entry in stack:
        if heir_finds:
            entry = dict(entry, found=heir_finds["found"])  # noqa: PLW2901
        heir_finds = entry if entry["owner"] == owner else None
        if entry["owner"] != owner:
            _push(left, entry)
    return left


def _push(stack: List[Entry], entry: Entry) -> None:
    """Add an owner's entry to the stack.

    Of several entries in a row the oldest says what was found, and the newest what was written (null for a setting
    that another write may have changed).
    """
    if stack and stack[-1]["boot"] != entry["boot"]:
        stack.clear()
    if stack and stack[-1]["owner"] == entry["owner"]:
        wrote = stack[-1]["wrote"] if entry["wrote"] is None else entry["wrote"]
        stack[-1] = dict(stack[-1], wrote=wrote)
    else:
        stack.append(entry)


def owners_by_setting(entries: Iterable[Entry]) -> Dict[Key, List[Entry]]:
    """Return, for each setting, the entries of owners that have not restored it, the oldest first.

    The host has the value that the last of these owners wrote.
    """
    stacks: Dict[Key, List[Entry]] = {}
    for entry in entries:
        if entry["entry"] == "restored":
            stacks = {key: remove_owner(stack, entry["owner"]) for key, stack in stacks.items()}
            stacks = {key: stack for key, stack in stacks.items() if stack}
        else:
            _push(stacks.setdefault((entry["kind"], entry["target"], entry["name"]), []), entry)
    return stacks
