#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The one program that reads, applies, journals and restores every setting that experiments touch on this host.

    settings.py read                 document on stdin; its values may be null, which asks without comparing
    settings.py apply   --owner O    document on stdin
    settings.py restore --owner O    brings back what O found
    settings.py journal              what is still to be restored, for every owner

A document is JSON, in the host's own units, and is applied in its own order:

    {"sysctl": {"net.ipv4.tcp_ecn": 1}, "link": {"eth0": {"gso_max_size": 4600}}, "transport": {"dcqcn": {"T_us": 125}}}

Answers are JSON on stdout: `found` (before), `applied` (read back), `changed` (what was written) and `differs` (each
setting that is not what was asked for); `restore` answers `restored`, `overridden` and `skipped`. An answer with
differences exits 0: the caller decides. What could not be done is one message on stderr, and exit status 1.

The journal takes what was found, synced to disk, before the first write. Owners stack: who restores beneath another
owner changes nothing on the host, and the other inherits what was found. A value that somebody changed without this
program is restored all the same, and named in `overridden`. Every setting here dies with its boot, or with the link or
transport that carries it: then there is nothing to restore, and `skipped` says why.

Python 3.8, standard library only: it is copied to hosts as it is.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, List, Mapping, NamedTuple, Optional, Tuple, Union

Value = Union[int, float, str]
Key = Tuple[str, str, str]  # kind, target ("" for sysctls), name
Entry = Dict[str, Any]  # one line of the journal

SYSCTL_NAME = re.compile(r"[A-Za-z0-9_-]+([./][A-Za-z0-9_-]+)+")
LINK_SETTINGS = ("gso_max_size", "mtu")


class SettingsError(Exception):
    """What could not be done; `hint` says what to do."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class AbsentError(SettingsError):
    """What carries the setting is not on this host."""


class Host(NamedTuple):
    """Where settings live: `root` stands for / and `state` holds the journal."""

    root: Path
    state: Path

    def boot_id(self) -> str:
        """This boot, as the kernel names it."""
        return (self.root / "proc/sys/kernel/random/boot_id").read_text().strip()

    def run(self, tool: str, *arguments: str) -> str:
        """Standard output of a tool that lies beside this file, or else on PATH."""
        beside = Path(__file__).resolve().parent / tool
        path = str(beside) if beside.exists() else tool
        if self.root != Path("/"):
            path = str(self.root / "bin" / tool)
        try:
            done = subprocess.run([path, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True)
        except OSError as error:
            raise SettingsError(f"cannot run {path}: {error.strerror}", "provision this host first") from error
        if done.returncode != 0:
            reason = done.stderr.strip() or f"exit status {done.returncode}"
            raise AbsentError(f"{tool} {' '.join(arguments)}: {reason}")
        return done.stdout


# --- One reader and one writer a kind. Writers get all values of a target at once: they may depend on each other.


def _sysctl_path(host: Host, name: str) -> Path:
    if not SYSCTL_NAME.fullmatch(name):
        raise SettingsError(f"sysctl {name!r} is not a sysctl's name", "write it as net.ipv4.tcp_ecn")
    return host.root / "proc/sys" / name.translate({ord("."): "/", ord("/"): "."})


def _sysctl_value(text: str) -> Value:
    """The kernel separates several numbers by tabs; a single one is an integer."""
    words = text.split()
    is_integer = len(words) == 1 and re.fullmatch(r"-?[0-9]+", words[0])
    return int(words[0]) if is_integer else " ".join(words)


def read_sysctls(host: Host, _target: str, names: Iterable[str]) -> Dict[str, Value]:
    """What /proc/sys says."""
    found = {}
    for name in names:
        try:
            found[name] = _sysctl_value(_sysctl_path(host, name).read_text())
        except OSError as error:
            raise AbsentError(f"cannot read sysctl {name}: {error.strerror}") from error
    return found


def write_sysctls(host: Host, _target: str, values: Mapping[str, Value]) -> None:
    """Write /proc/sys, one value after another."""
    for name, value in values.items():
        try:
            descriptor = os.open(_sysctl_path(host, name), os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC)
            try:
                os.write(descriptor, f"{value}\n".encode())
            finally:
                os.close(descriptor)
        except OSError as error:
            raise SettingsError(f"cannot set sysctl {name} to {value}: {error.strerror}", _why(host, name)) from error


def _why(host: Host, name: str) -> str:
    if os.geteuid() != 0:
        return "run as root"
    if name == "net.ipv4.tcp_congestion_control":
        available = "net.ipv4.tcp_available_congestion_control"
        return f"available here: {read_sysctls(host, '', [available])[available]}; load the transport first"
    return ""


def read_link(host: Host, target: str, names: Iterable[str]) -> Dict[str, Value]:
    """What `ip -d link` says of one interface."""
    link = json.loads(host.run("ip", "-j", "-d", "link", "show", "dev", target))[0]
    found = {}
    for name in names:
        if name not in LINK_SETTINGS or name not in link:
            raise SettingsError(f"link {target} has no setting {name!r}", f"known: {', '.join(LINK_SETTINGS)}")
        found[name] = link[name]
    return found


def write_link(host: Host, target: str, values: Mapping[str, Value]) -> None:
    """One `ip link set`."""
    host.run("ip", "link", "set", "dev", target, *(word for item in values.items() for word in map(str, item)))


def read_transport(host: Host, target: str, names: Iterable[str]) -> Dict[str, Value]:
    """The parameters in force in this network namespace."""
    parameters = json.loads(host.run("transport", "get", target))["params"]
    unknown = [name for name in names if name not in parameters]
    if unknown:
        raise SettingsError(f"transport {target} has no parameter {unknown[0]!r}", f"known: {', '.join(parameters)}")
    return {name: parameters[name] for name in names}


def write_transport(host: Host, target: str, values: Mapping[str, Value]) -> None:
    """One `transport set`."""
    host.run("transport", "set", target, *(f"{name}={value}" for name, value in values.items()))


def _same_text(left: Value, right: Value) -> bool:
    return str(left).split() == str(right).split()


def _same_number(left: Value, right: Value) -> bool:
    """Kernels keep fixed point: a part in a thousand is the same."""
    try:
        return math.isclose(float(left), float(right), rel_tol=1e-3)
    except ValueError:
        return left == right


class Kind(NamedTuple):
    """How one kind of setting is read, written and compared."""

    read: Callable[[Host, str, Iterable[str]], Dict[str, Value]]
    write: Callable[[Host, str, Mapping[str, Value]], None]
    equal: Callable[[Value, Value], bool]


KINDS = {
    "sysctl": Kind(read_sysctls, write_sysctls, _same_text),
    "link": Kind(read_link, write_link, _same_text),
    "transport": Kind(read_transport, write_transport, _same_number),
}


# --- Documents


def flatten(document: Any) -> Dict[Key, Optional[Value]]:
    """A document as one mapping in its own order; raises SettingsError where its shape is wrong."""
    settings: Dict[Key, Optional[Value]] = {}
    for kind, content in _mapping(document, "the document").items():
        if kind not in KINDS:
            raise SettingsError(f"unknown kind of setting {kind!r}", f"known: {', '.join(KINDS)}")
        targets = {"": content} if kind == "sysctl" else _mapping(content, kind)
        for target, values in targets.items():
            for name, value in _mapping(values, f"{kind} {target}".strip()).items():
                if isinstance(value, bool) or not isinstance(value, (int, float, str, type(None))):
                    raise SettingsError(f"{kind} {target} {name}: found {json.dumps(value)}, expected a number or text")
                settings[kind, target, name] = value
    return settings


def _mapping(value: Any, where: str) -> Dict[str, Any]:
    if not isinstance(value, dict):
        raise SettingsError(f"{where}: found {json.dumps(value)}, expected a JSON object")
    return value


def nest(settings: Mapping[Key, Optional[Value]]) -> Dict[str, Any]:
    """The document that `flatten` makes these settings of."""
    document: Dict[str, Any] = {}
    for (kind, target, name), value in settings.items():
        content = document.setdefault(kind, {})
        (content.setdefault(target, {}) if target else content)[name] = value
    return document


def _label(key: Key) -> str:
    return " ".join(part for part in key if part)


def _grouped(keys: Iterable[Key]) -> Dict[Tuple[str, str], List[str]]:
    groups: Dict[Tuple[str, str], List[str]] = {}
    for kind, target, name in keys:
        groups.setdefault((kind, target), []).append(name)
    return groups


def read_all(host: Host, keys: Iterable[Key]) -> Dict[Key, Value]:
    """What these settings are now, in the order of `keys`."""
    found: Dict[Key, Value] = {}
    for (kind, target), names in _grouped(keys).items():
        values = KINDS[kind].read(host, target, names)
        found.update({(kind, target, name): values[name] for name in names})
    return found


def write_all(host: Host, settings: Mapping[Key, Value]) -> None:
    """Write these settings, a target at a time, in their order."""
    for (kind, target), names in _grouped(settings).items():
        KINDS[kind].write(host, target, {name: settings[kind, target, name] for name in names})


def differences(wanted: Mapping[Key, Optional[Value]], found: Mapping[Key, Value]) -> List[Dict[str, Any]]:
    """Each wanted setting that is something else."""
    return [
        {"setting": _label(key), "expected": value, "found": found[key]}
        for key, value in wanted.items()
        if value is not None and not KINDS[key[0]].equal(value, found[key])
    ]


# --- The journal


class Journal:
    """JSON lines under an exclusive lock, which is held while the journal is open; lines are only ever appended."""

    def __init__(self, state: Path) -> None:
        self.path = state / "journal.jsonl"
        state.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._file, fcntl.LOCK_EX)
        self._drop_torn_line()

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_exception: object) -> None:
        os.close(self._file)

    def _drop_torn_line(self) -> None:
        """A line without its end was never followed by a write to the host."""
        content = self.path.read_bytes()
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            os.ftruncate(self._file, whole)

    def entries(self) -> List[Entry]:
        """Every line, oldest first."""
        found = []
        for number, line in enumerate(self.path.read_text().splitlines(), start=1):
            try:
                found.append(json.loads(line))
            except ValueError as error:
                hint = "move the file away; what it held must be restored by hand"
                raise SettingsError(f"{self.path}: line {number} is not JSON: {line[:60]!r}", hint) from error
        return found

    def append(self, entries: List[Entry]) -> None:
        """Add lines; they are on disk when this returns."""
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
        """Forget everything, once nothing is left to restore."""
        os.ftruncate(self._file, 0)


def _leave(stack: List[Entry], owner: str) -> List[Entry]:
    """The stack without `owner`; who came next inherits what it had found."""
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
    """Add an owner's entry: of several in a row the oldest says what was found, the newest what was written."""
    if stack and stack[-1]["boot"] != entry["boot"]:
        stack.clear()
    if stack and stack[-1]["owner"] == entry["owner"]:
        stack[-1] = dict(stack[-1], wrote=entry["wrote"])
    else:
        stack.append(entry)


def outstanding(entries: Iterable[Entry]) -> Dict[Key, List[Entry]]:
    """For each setting the owners that still have to restore it, first come first; the last one's value is in force."""
    stacks: Dict[Key, List[Entry]] = {}
    for entry in entries:
        if entry["entry"] == "restored":
            stacks = {key: _leave(stack, entry["owner"]) for key, stack in stacks.items()}
            stacks = {key: stack for key, stack in stacks.items() if stack}
        else:
            _push(stacks.setdefault((entry["kind"], entry["target"], entry["name"]), []), entry)
    return stacks


# --- Commands


def read(host: Host, document: Any) -> Dict[str, Any]:
    """What the document's settings are now, and which are not what it says."""
    wanted = flatten(document)
    found = read_all(host, wanted)
    return {"found": nest(found), "differs": differences(wanted, found)}


def apply(host: Host, document: Any, owner: str) -> Dict[str, Any]:
    """Journal what is there, write what differs, and read it back."""
    wanted = {key: value for key, value in flatten(document).items() if value is not None}
    with Journal(host.state) as journal:
        found = read_all(host, wanted)
        changes = {key: value for key, value in wanted.items() if not KINDS[key[0]].equal(value, found[key])}
        if changes:
            common = {"entry": "found", "owner": owner, "boot": host.boot_id()}
            journal.append(
                [
                    dict(common, kind=kind, target=target, name=name, found=found[kind, target, name], wrote=value)
                    for (kind, target, name), value in changes.items()
                ]
            )
            write_all(host, changes)
        now = read_all(host, wanted)
    changed = [_label(key) for key in changes]
    return {"found": nest(found), "applied": nest(now), "changed": changed, "differs": differences(wanted, now)}


def restore(host: Host, owner: str) -> Dict[str, Any]:
    """Bring back what `owner` found, newest first. Every setting is tried; one failure keeps the journal as it is."""
    report: Dict[str, List[Any]] = {"restored": [], "overridden": [], "skipped": []}
    failures: List[str] = []
    with Journal(host.state) as journal:
        stacks = outstanding(journal.entries())
        mine = {key: stack for key, stack in stacks.items() if any(entry["owner"] == owner for entry in stack)}
        for key, stack in reversed(list(mine.items())):
            try:
                _restore_one(host, key, stack, owner, report)
            except SettingsError as error:
                failures.append(str(error))
        if failures:
            raise SettingsError("; ".join(failures), "mend this and restore again: the journal is kept")
        if mine:
            journal.append([{"entry": "restored", "owner": owner}])
        if all(_leave(stack, owner) == [] for stack in stacks.values()):
            journal.empty()
    return report


def _restore_one(host: Host, key: Key, stack: List[Entry], owner: str, report: Dict[str, List[Any]]) -> None:
    skip = _why_skip(host, stack, owner)
    if not skip:
        try:
            now = read_all(host, [key])[key]
        except AbsentError as error:
            skip = f"no longer there ({error})"
    if skip:
        report["skipped"].append({"setting": _label(key), "reason": skip})
        return
    entry = stack[-1]
    equal = KINDS[key[0]].equal
    if not equal(now, entry["found"]):
        if not equal(now, entry["wrote"]):
            report["overridden"].append({"setting": _label(key), "wrote": entry["wrote"], "found": now})
        write_all(host, {key: entry["found"]})
        report["restored"].append(_label(key))


def _why_skip(host: Host, stack: List[Entry], owner: str) -> str:
    holder = stack[-1]
    if holder["boot"] != host.boot_id():
        return "gone with an earlier boot"
    if holder["owner"] != owner:
        return f"now held by {holder['owner']}, who inherits what was found"
    return ""


def show_journal(host: Host) -> Dict[str, Any]:
    """What is still to be restored."""
    with Journal(host.state) as journal:
        stacks = outstanding(journal.entries())
    fields = ("owner", "boot", "found", "wrote")
    return {
        "outstanding": [
            dict({"setting": _label(key)}, **{field: entry[field] for field in fields})
            for key, stack in stacks.items()
            for entry in stack
        ]
    }


def _document_from_stdin() -> Any:
    try:
        return json.load(sys.stdin)
    except ValueError as error:
        raise SettingsError(f"standard input is not JSON: {error}") from error


def _arguments(arguments: Optional[List[str]]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Read, apply, journal and restore what experiments set.")
    parser.add_argument("command", choices=["read", "apply", "restore", "journal"])
    parser.add_argument("--owner", help="who applies or restores: a run, or provisioning")
    parser.add_argument("--state", type=Path, default=Path("/var/lib/roundabout"), help="folder of the journal")
    parser.add_argument("--root", type=Path, default=Path("/"), help="stands for / (for tests)")
    parsed = parser.parse_args(arguments)
    if parsed.command in ("apply", "restore") and not parsed.owner:
        parser.error(f"{parsed.command} needs --owner")
    return parsed


def main(arguments: Optional[List[str]] = None) -> int:
    """Run one command; the exit status."""
    options = _arguments(arguments)
    host = Host(options.root, options.state)
    commands: Dict[str, Callable[[], Dict[str, Any]]] = {
        "read": lambda: read(host, _document_from_stdin()),
        "apply": lambda: apply(host, _document_from_stdin(), options.owner),
        "restore": lambda: restore(host, options.owner),
        "journal": lambda: show_journal(host),
    }
    try:
        answer = commands[options.command]()
    except SettingsError as error:
        print(f"error: {error}", *([f"  {error.hint}"] if error.hint else []), sep="\n", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"error: {error.filename or host.state}: {error.strerror}", file=sys.stderr)
        return 1
    print(json.dumps(answer))
    return 0


if __name__ == "__main__":
    sys.exit(main())
