# SPDX-License-Identifier: Apache-2.0
"""Access to a host's files and tools for settings.py, kinds of settings, and their errors."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Callable, Dict, Iterable, List, Mapping, NamedTuple, Optional, Union

Value = Union[int, float, str]
Values = Dict[str, Value]  # values by the setting's name

_NUMBERED = re.compile(r"(dscp|prio)[0-9]+(?![0-9a-z])")


class SettingsError(Exception):
    """Error for a setting that could not be read or written. `hint` is the remedy."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class ToolError(SettingsError):
    """Error for a tool that ran and failed."""


class AbsentError(SettingsError):
    """Error for a setting whose link, device or transport does not exist on this host or ignores it."""


class Host(NamedTuple):
    """The host's file system, and what the caller permits.

    `root` replaces / in tests, and `state` is the journal's folder. `link_timeout_s` limits the wait for a link to come
    up again. `shared_nic` permits changes of a link that carries SSH, the default route or file systems, too.
    """

    root: Path
    state: Path
    link_timeout_s: float = 15  # a guess; long optics and link training take more
    shared_nic: bool = False

    def boot_id(self) -> str:
        """Return the kernel's id of the current boot."""
        return (self.root / "proc/sys/kernel/random/boot_id").read_text().strip()

    def has(self, tool: str) -> bool:
        """Return True if the tool is installed, so that `run` finds it."""
        return shutil.which(self._path(tool)) is not None

    def run(self, tool: str, *arguments: str) -> str:
        """Run a tool from this file's folder, or else from PATH. Return its stdout. Raises ToolError if it fails."""
        path = self._path(tool)
        try:
            done = subprocess.run([path, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True)
        except OSError as error:
            raise SettingsError(f"cannot run {path}: {error.strerror}", "provision this host first") from error
        if done.returncode != 0:
            # mlnx_qos complains on standard output
            reason = done.stderr.strip() or done.stdout.strip() or f"exit status {done.returncode}"
            raise ToolError(f"{tool} {' '.join(arguments)}: {reason}", why_denied())
        return done.stdout

    def _path(self, tool: str) -> str:
        if self.root != Path("/"):
            return str(self.root / "bin" / tool)
        beside = Path(__file__).resolve().parent / tool
        return str(beside) if beside.exists() else tool


class Rule(NamedTuple):
    """The allowed values of a setting: a description for messages, and a predicate."""

    expected: str
    accepts: Callable[[Value], bool]


class Kind(NamedTuple):
    """The functions that read, write, compare and check one kind of setting.

    `write` gets all values of a target together, because they may depend on each other. `drags` returns the names of
    other settings that a write may change. `moot` returns True for a setting that does not exist if the target has the
    given settings.
    """

    read: Callable[[Host, str, Iterable[str]], Values]
    write: Callable[[Host, str, Mapping[str, Value]], None]
    equal: Callable[[Value, Value], bool]
    check: Callable[[str, str, Optional[Value]], None]
    drags: Callable[[Host, str, List[str]], List[str]] = lambda _host, _target, _names: []
    moot: Callable[[str, Values], bool] = lambda _name, _settings: False
    survives_reboot: bool = False


def read_file(path: Path, label: str) -> str:
    """Return a file's text without surrounding white space. `label` names the setting in a SettingsError."""
    try:
        return path.read_text().strip()
    except OSError as error:
        raise SettingsError(f"cannot read {label}: {path}: {error.strerror}", why_denied()) from error


def write_file(path: Path, label: str, value: Value) -> None:
    """Write a value to a file by one system call, which the kernel's files require. Raises SettingsError."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC)
        try:
            os.write(descriptor, f"{value}\n".encode())
        finally:
            os.close(descriptor)
    except OSError as error:
        raise SettingsError(f"cannot set {label} to {value}: {error.strerror}", why_denied()) from error


def why_denied() -> str:
    """Return the remedy for a denied access: to run as root. The text is empty if this process is root."""
    return "" if os.geteuid() == 0 else "run as root"


def same(left: Value, right: Value) -> bool:
    """Return True if two values are equal as numbers, or have the same words."""
    return left == right or str(left).split() == str(right).split()


def whole(low: int, high: int) -> Rule:
    """Return a rule that accepts whole numbers from `low` to `high`."""
    return Rule(f"a whole number from {low} to {high}", lambda value: _is_whole(value) and low <= float(value) <= high)


def _is_whole(value: Value) -> bool:
    return isinstance(value, int) or (isinstance(value, float) and value.is_integer())


def one_of(*words: Value) -> Rule:
    """Return a rule that accepts only the given values."""
    return Rule(" or ".join(str(word) for word in words), lambda value: value in words)


def either(left: Rule, right: Rule) -> Rule:
    """Return a rule that accepts a value if at least one of the two rules accepts it."""
    return Rule(f"{left.expected}, or {right.expected}", lambda value: left.accepts(value) or right.accepts(value))


def text() -> Rule:
    """Return a rule that accepts any text of words."""
    return Rule("text", lambda value: isinstance(value, str) and bool(value.split()))


def eight(low: int, high: int) -> Rule:
    """Return a rule that accepts eight comma-separated whole numbers from `low` to `high`."""

    def accepts(value: Value) -> bool:
        parts = str(value).split(",")
        return len(parts) == 8 and all(part.isdigit() and low <= int(part) <= high for part in parts)

    return Rule(f"eight numbers from {low} to {high} with commas", accepts)


def check_by(kind: str, rules: Mapping[str, Rule]) -> Callable[[str, str, Optional[Value]], None]:
    """Return a function that raises SettingsError for an unknown name, or for a value that its rule does not accept."""

    def check(target: str, name: str, value: Optional[Value]) -> None:
        label = f"{kind} {target}".strip()
        if name not in rules:
            raise SettingsError(f"{label} has no setting {name!r}", f"known: {', '.join(known_names(rules))}")
        if value is not None and not rules[name].accepts(value):
            raise SettingsError(f"{label} {name}: found {value!r}, expected {rules[name].expected}")

    return check


def known_names(rules: Iterable[str]) -> List[str]:
    """Return the names of settings for messages, with names that differ only in a number combined."""
    return list(dict.fromkeys(_NUMBERED.sub(r"\1N", name) for name in rules))
