#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The only program that reads, applies, journals and restores the settings that experiments change on this host.

    settings.py read                 read the settings of a document on stdin and compare them; null: do not compare
    settings.py apply   --owner O    apply a document on stdin
    settings.py apply   --owner O --undo-after S   the same, and restore after S seconds unless it is confirmed
    settings.py confirm --owner O    confirm that change, over a new connection
    settings.py restore --owner O    restore the values that O found
    settings.py journal              show the settings that are not restored yet, by owner
    settings.py drifted              show the settings that differ from their last owner's value

A document is JSON and is applied in its order. docs/reference/settings.md lists every kind of setting with its unit:

    {"sysctl": {"net.ipv4.tcp_ecn": 1}, "link": {"eth0": {"gso_max_size": 4600}}, "dcqcn": {"eth2": {"T_us": 300}}}

Answers are JSON on stdout. `found` has the values before, `applied` the values read back, and `changed` the modified
settings. `differs` has the settings whose value is not the requested one, because the host rounded or ignored it. For
`drifted`, `differs` has the settings that were changed since. `restore` answers `restored`, `overridden`, `skipped` and
`failed`.
The exit status is 0 even with differences; the caller decides. After an error it is 1, with one message on stderr.

The found values are written to the journal on disk before the first write, including those of settings that the write
changes as a side effect. `restore` writes them back and reads them again. A setting that was not restored is in
`failed` and stays in the journal. If `apply` fails, it restores at once what it wrote, the newest first. Before any
write it refuses to interrupt a link that is in use (settings_guard.py).

Several owners may set one setting. If an older owner restores first, the host keeps the newer owner's value, and the
newer owner will restore the value that the older owner found. A value that another program changed is restored, too,
and is named in `overridden`. Except for NV config, settings do not survive a reboot, nor the removal of their link or
transport. Such settings need no restoring and are in `skipped` with the reason.

This program is copied to hosts with the files beside it. It needs only Python 3.8 and its standard library.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import types
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Tuple

if not __package__:  # run as a program, on a host: the parts lie beside it, and have no package around them there
    sys.dont_write_bytecode = True
    for name in ("roundabout", "roundabout.settings"):
        sys.modules[name] = types.ModuleType(name)
        sys.modules[name].__path__ = [os.path.dirname(os.path.realpath(__file__))]

from roundabout.settings import settings_linux, settings_nic, settings_qos
from roundabout.settings.settings_guard import refuse_links_in_use
from roundabout.settings.settings_host import AbsentError, Host, Kind, SettingsError, Value
from roundabout.settings.settings_journal import JOURNAL, Entry, Journal, Key, owners_by_setting
from roundabout.settings.settings_undo import can_undo, cancel_undo, confirm_change, is_undo_pending, start_undo

KINDS: Dict[str, Kind] = {**settings_linux.KINDS, **settings_qos.KINDS, **settings_nic.KINDS}
WITHOUT_TARGET = ("sysctl", "cpu")


# --- Documents


def flatten(document: Any) -> Dict[Key, Optional[Value]]:
    """Return a document's settings as one mapping, in the document's order. Raises SettingsError if it is invalid."""
    settings: Dict[Key, Optional[Value]] = {}
    for kind, content in _mapping(document, "the document").items():
        if kind not in KINDS:
            raise SettingsError(f"unknown kind of setting {kind!r}", f"known: {', '.join(KINDS)}")
        targets = {"": content} if kind in WITHOUT_TARGET else _mapping(content, kind)
        for target, values in targets.items():
            for name, value in _mapping(values, f"{kind} {target}".strip()).items():
                key = (kind, target, name)
                if isinstance(value, bool) or not isinstance(value, (int, float, str, type(None))):
                    raise SettingsError(f"{_label(key)}: found {json.dumps(value)}, expected a number or text")
                KINDS[kind].check(target, name, value)
                settings[key] = value
    return settings


def _mapping(value: Any, where: str) -> Dict[str, Any]:
    if not isinstance(value, dict):
        raise SettingsError(f"{where}: found {json.dumps(value)}, expected a JSON object")
    return value


def nest(settings: Mapping[Key, Optional[Value]]) -> Dict[str, Any]:
    """Return settings as a document. This is the inverse of `flatten`."""
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
    """Return the current values of these settings, in the order of `keys`. Raises SettingsError."""
    found: Dict[Key, Value] = {}
    for (kind, target), names in _grouped(keys).items():
        values = KINDS[kind].read(host, target, names)
        found.update({(kind, target, name): values[name] for name in names})
    return found


def write_all(host: Host, settings: Mapping[Key, Value]) -> None:
    """Write these settings in their order, one target at a time. Raises SettingsError."""
    for (kind, target), names in _grouped(settings).items():
        KINDS[kind].write(host, target, {name: settings[kind, target, name] for name in names})


def _equal(key: Key, left: Value, right: Value) -> bool:
    return KINDS[key[0]].equal(left, right)


def differences(wanted: Mapping[Key, Optional[Value]], found: Mapping[Key, Value]) -> List[Dict[str, Any]]:
    """Return each setting of `wanted` whose found value differs, with both values."""
    return [
        {"setting": _label(key), "expected": value, "found": found[key]}
        for key, value in wanted.items()
        if value is not None and not _equal(key, value, found[key])
    ]


# --- Commands


def read(host: Host, document: Any) -> Dict[str, Any]:
    """Return the answer of the command `read`: `found` values of the document's settings, and `differs`."""
    wanted = flatten(document)
    found = read_all(host, wanted)
    return {"found": nest(found), "differs": differences(wanted, found)}


def apply(host: Host, document: Any, owner: str, undo_after_s: Optional[int] = None) -> Dict[str, Any]:
    """Journal the current values for `owner`, write the settings that differ, and read them back. Return the answer.

    With `undo_after_s` a change is undone after that many seconds unless `confirm` is called. The answer's
    `undo_after_s` is null if nothing waits for that, or if the host has no systemd. After a failed write or reading,
    what was written is restored. Raises SettingsError.

    If other settings depend on NV config in the document that is not active yet, only the NV config is written. Then
    raises SettingsError, which says what to do before applying the document again.
    """
    wanted = {key: value for key, value in flatten(document).items() if value is not None}
    try:
        return _apply(host, wanted, owner, undo_after_s if can_undo(host) else None)
    except settings_nic.InertError as inert:
        if wanted.get(inert.cure) != inert.obeying:
            raise
        _apply(host, {key: value for key, value in wanted.items() if key[0] == "nv"}, owner, None)
        done = (
            f"step 1 of 2 is done, NV config is written and nothing else: {_label(inert.cure)} must be in force first"
        )
        raise SettingsError(done, f"{inert.reset}; then the same again, which is step 2") from inert


def _apply(host: Host, wanted: Dict[Key, Value], owner: str, undo_after_s: Optional[int]) -> Dict[str, Any]:
    with Journal(host.state) as journal:
        found = read_all(host, wanted)
        changes = [key for key, value in wanted.items() if not _equal(key, value, found[key])]
        refuse_links_in_use(host, changes)
        if not changes and not (undo_after_s and is_undo_pending(host, owner)):
            undo_after_s = None
        entries = _journal_entries(host, wanted, found, changes, owner)
        now = found
        if entries or undo_after_s:
            is_first = not any(entry["owner"] == owner for entry in _outstanding(journal))
            journal.append(list(entries.values()))
            try:
                now = _write(host, entries, wanted, owner, undo_after_s)
            except (SettingsError, OSError, ValueError) as error:
                outcome = _undo(host, journal, entries, owner, is_first)
                raise SettingsError(f"{error}; {outcome}", getattr(error, "hint", "")) from error
    changed = [_label(key) for key in changes if not _equal(key, now[key], found[key])]
    answer = {"found": nest(found), "applied": nest(now), "changed": changed, "differs": differences(wanted, now)}
    return {**answer, "undo_after_s": undo_after_s}


def _restore_command(host: Host, owner: str) -> List[str]:
    """Return the command that restores the settings of `owner`, for a service of systemd."""
    program = [sys.executable, "-IS", os.path.realpath(__file__), "restore", "--owner", owner]
    return [*program, "--state", str(host.state), "--root", str(host.root), "--link-timeout", str(host.link_timeout_s)]


def _journal_entries(
    host: Host, wanted: Dict[Key, Value], found: Dict[Key, Value], changes: List[Key], owner: str
) -> Dict[Key, Entry]:
    """Return the journal's entries of `changes`, and of other settings that writing them may change."""
    dragged = _side_effects(host, changes)
    touched = {**found, **read_all(host, dragged)}
    boot = host.boot_id()
    return {key: _entry(key, owner, boot, touched[key], wanted.get(key)) for key in [*changes, *dragged]}


def _write(
    host: Host, entries: Dict[Key, Entry], wanted: Dict[Key, Value], owner: str, undo_after_s: Optional[int]
) -> Dict[Key, Value]:
    """Start the timer of the undo, and write the settings of `entries`. Return all values of `wanted` afterwards."""
    if undo_after_s:
        start_undo(host, owner, undo_after_s, _restore_command(host, owner))
    write_all(host, {key: entry["wrote"] for key, entry in entries.items() if entry["wrote"] is not None})
    return read_all(host, wanted)


def _undo(host: Host, journal: Journal, entries: Dict[Key, Entry], owner: str, is_first: bool) -> str:
    """Restore what one `apply` wrote, the newest first, and journal that. Return a sentence about it.

    `is_first` is True if the owner had nothing to restore before, so that it has nothing afterwards.
    """
    failed = _restore_entries(host, entries)["failed"]
    if failed:
        return f"NOT restored are {_describe_failures(failed)}"
    if is_first:
        _journal_restored(journal, owner)
    else:
        journal.append([dict(entry, wrote=entry["found"]) for entry in entries.values() if entry["wrote"] is not None])
    if is_undo_pending(host, owner):
        cancel_undo(host, owner)
    return "what was written is restored"


def _journal_restored(journal: Journal, owner: str) -> None:
    """Journal that all of `owner` is restored. Empty the journal if no other owner has anything to restore."""
    journal.append([{"entry": "restored", "owner": owner}])
    if not _outstanding(journal):
        journal.empty()


def _outstanding(journal: Journal) -> List[Entry]:
    return [entry for stack in owners_by_setting(journal.entries()).values() for entry in stack]


def _side_effects(host: Host, changes: List[Key]) -> List[Key]:
    """Return other settings that the kernel may change as a side effect of writing `changes`."""
    dragged = [
        (kind, target, name)
        for (kind, target), names in _grouped(changes).items()
        for name in KINDS[kind].drags(host, target, names)
    ]
    return [key for key in dragged if key not in changes]


def _entry(key: Key, owner: str, boot: str, found: Value, wrote: Optional[Value]) -> Entry:
    kind, target, name = key
    names = {"entry": "found", "owner": owner, "kind": kind, "target": target, "name": name}
    return dict(names, boot=None if KINDS[kind].survives_reboot else boot, found=found, wrote=wrote)


def restore(host: Host, owner: str) -> Dict[str, Any]:
    """Restore the values that `owner` found, the newest first, and return the answer.

    After a failure the remaining settings are restored, too, and the journal keeps its entries.
    """
    with Journal(host.state) as journal:
        stacks = owners_by_setting(journal.entries())
        mine = {key: stack for key, stack in stacks.items() if any(entry["owner"] == owner for entry in stack)}
        reasons = {key: _why_skip(host, stack[-1], owner) for key, stack in mine.items()}
        report = _restore_entries(host, {key: stack[-1] for key, stack in mine.items() if not reasons[key]})
        skipped = [{"setting": _label(key), "reason": reason} for key, reason in reasons.items() if reason]
        report["skipped"] = skipped + report["skipped"]
        if mine and not report["failed"]:
            _journal_restored(journal, owner)
    return report


def _restore_entries(host: Host, entries: Dict[Key, Entry]) -> Dict[str, List[Any]]:
    """Restore the found values of these entries, the newest first. Return what became of each."""
    report: Dict[str, List[Any]] = {"restored": [], "overridden": [], "skipped": [], "failed": []}
    strange = {key: reason for key, reason in ((key, _why_unknown(key)) for key in entries) if reason}
    for key, reason in strange.items():
        report["failed"].append({"setting": _label(key), "found": entries[key]["found"], "reason": reason})
    known = [key for key in entries if key not in strange]
    for (kind, target), names in reversed(list(_grouped(known).items())):
        _restore_target(host, {(kind, target, name): entries[kind, target, name] for name in names}, report)
    return report


def _describe_failures(failed: List[Dict[str, Any]]) -> str:
    return "; ".join(f"{each['setting']} to {each['found']}: {each['reason']}" for each in failed)


def _why_skip(host: Host, holder: Entry, owner: str) -> str:
    if holder["boot"] not in (None, host.boot_id()):
        return "gone with an earlier boot"
    if holder["owner"] != owner:
        return f"now held by {holder['owner']}, who inherits what was found"
    return ""


def _why_unknown(key: Key) -> str:
    """Return why this version cannot restore a setting that another version journalled; empty if it can."""
    kind, target, name = key
    if kind not in KINDS:
        return f"unknown kind of setting {kind!r}: restore with the version that applied it"
    try:
        KINDS[kind].check(target, name, None)
    except SettingsError as error:
        return str(error)
    return ""


def _restore_target(host: Host, entries: Dict[Key, Entry], report: Dict[str, List[Any]]) -> None:
    found = {name: entry["found"] for (_, _, name), entry in entries.items()}
    moot = [key for key in entries if KINDS[key[0]].moot(key[2], found)]
    report["skipped"] += [{"setting": _label(key), "reason": "not there as the rest was found"} for key in moot]
    entries = {key: entry for key, entry in entries.items() if key not in moot}
    now, reasons = _read_each(host, entries)
    for key, value in now.items():
        wrote = entries[key]["wrote"]
        if wrote is not None and not any(_equal(key, value, known) for known in (wrote, entries[key]["found"])):
            report["overridden"].append({"setting": _label(key), "wrote": wrote, "found": value})
    # Settings that exist but cannot be read, such as half-written ones, are restored too.
    wanted = {key: entry["found"] for key, entry in entries.items() if not isinstance(reasons.get(key), AbsentError)}
    wrong = [key for key in wanted if key not in now or not _equal(key, now[key], wanted[key])]
    reasons = {**{key: why for key, why in reasons.items() if key not in wanted}, **_write_back(host, wanted, wrong)}
    report["restored"] += [_label(key) for key in wrong if key not in reasons]
    for key, reason in reasons.items():
        if isinstance(reason, AbsentError):
            report["skipped"].append({"setting": _label(key), "reason": f"no longer there ({reason})"})
        else:
            report["failed"].append({"setting": _label(key), "found": entries[key]["found"], "reason": str(reason)})


def _write_back(host: Host, wanted: Dict[Key, Value], wrong: List[Key]) -> Dict[Key, SettingsError]:
    """Write wrong values and read all of the target again, twice if one write disturbed another.

    Return what stays wrong.
    """
    reasons: Dict[Key, SettingsError] = {}
    for _ in range(2):
        if not wrong:
            break
        refused = _act_on_each(wrong, lambda keys: write_all(host, {key: wanted[key] for key in keys}))
        now, reasons = _read_each(host, wanted)
        different = [key for key in now if not _equal(key, now[key], wanted[key])]
        reasons.update({key: SettingsError(f"reads {now[key]} after it was written") for key in different})
        wrong = list(reasons)
        reasons.update({key: why for key, why in refused.items() if key in reasons})
    return reasons


def _read_each(host: Host, keys: Iterable[Key]) -> Tuple[Dict[Key, Value], Dict[Key, SettingsError]]:
    """Return the readable values, and the errors of the others."""
    now: Dict[Key, Value] = {}
    return now, _act_on_each(list(keys), lambda some: now.update(read_all(host, some)))


def _act_on_each(keys: List[Key], act: Callable[[List[Key]], None]) -> Dict[Key, SettingsError]:
    """Act on all keys at once or, if that fails, on one after another; return the errors by key."""
    try:
        act(keys)
    except SettingsError as error:
        if len(keys) == 1:
            return {keys[0]: error}
        return {key: why for one in keys for key, why in _act_on_each([one], act).items()}
    return {}


def confirm(host: Host, owner: str) -> Dict[str, Any]:
    """Confirm the change of `owner`, so that it is not undone. Raises SettingsError if it was undone already."""
    with Journal(host.state):
        confirm_change(host, owner)
    return {"confirmed": owner}


def show_journal(host: Host) -> Dict[str, Any]:
    """Return the settings that are not restored yet, by owner."""
    with Journal(host.state) as journal:
        stacks = owners_by_setting(journal.entries())
    fields = ("owner", "boot", "found", "wrote")
    return {
        "outstanding": [
            dict({"setting": _label(key)}, **{field: entry[field] for field in fields})
            for key, stack in stacks.items()
            for entry in stack
        ]
    }


def drifted(host: Host) -> Dict[str, Any]:
    """Return the settings whose value differs from their last owner's. A missing journal is not created."""
    if not (host.state / JOURNAL).exists():
        return {"differs": []}
    with Journal(host.state) as journal:  # the lock excludes a change in progress
        newest = {key: stack[-1] for key, stack in owners_by_setting(journal.entries()).items()}
        wrote = {
            key: entry["wrote"]
            for key, entry in newest.items()
            if entry["wrote"] is not None and entry["boot"] in (None, host.boot_id())
        }
        found, _ = _read_each(host, wrote)
    return {"differs": differences({key: wrote[key] for key in found}, found)}


def _document_from_stdin() -> Any:
    try:
        return json.load(sys.stdin)
    except ValueError as error:
        raise SettingsError(f"standard input is not JSON: {error}") from error


def _arguments(arguments: Optional[List[str]]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Read, apply, journal and restore what experiments set.")
    parser.add_argument("command", choices=["read", "apply", "confirm", "restore", "journal", "drifted"])
    parser.add_argument("--owner", help="who applies or restores: a run, or provisioning")
    parser.add_argument("--state", type=Path, default=Path("/var/lib/roundabout"), help="folder of the journal")
    parser.add_argument("--root", type=Path, default=Path("/"), help="stands for / (for tests)")
    parser.add_argument("--undo-after", type=int, metavar="S", help="undo a change after S seconds unless confirmed")
    parser.add_argument(
        "--link-timeout", type=float, metavar="S", default=15, help="seconds to wait for a link to come up again"
    )
    parser.add_argument("--shared-nic", action="store_true", help="also change a link that carries SSH or files")
    parsed = parser.parse_args(arguments)
    if parsed.command in ("apply", "confirm", "restore") and not parsed.owner:
        parser.error(f"{parsed.command} needs --owner")
    return parsed


def _complain(message: str, hint: str) -> int:
    print(f"error: {message}", *([f"  {hint}"] if hint else []), sep="\n", file=sys.stderr)
    return 1


def main(arguments: Optional[List[str]] = None) -> int:
    """Run one command and return its exit status."""
    options = _arguments(arguments)
    host = Host(options.root, options.state, options.link_timeout, options.shared_nic)
    commands: Dict[str, Callable[[], Dict[str, Any]]] = {
        "read": lambda: read(host, _document_from_stdin()),
        "apply": lambda: apply(host, _document_from_stdin(), options.owner, options.undo_after),
        "confirm": lambda: confirm(host, options.owner),
        "restore": lambda: restore(host, options.owner),
        "journal": lambda: show_journal(host),
        "drifted": lambda: drifted(host),
    }
    try:
        answer = commands[options.command]()
    except SettingsError as error:
        return _complain(str(error), error.hint)
    except OSError as error:
        return _complain(f"{error.filename or host.state}: {error.strerror}", "")
    print(json.dumps(answer))
    if answer.get("failed"):
        lost = _describe_failures(answer["failed"])
        return _complain(f"could not restore {lost}", "mend this and restore again: the journal is kept")
    return 0


if __name__ == "__main__":
    sys.exit(main())
