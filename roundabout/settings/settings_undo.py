# SPDX-License-Identifier: Apache-2.0
"""The timed undo of a change: a transient systemd timer that restores an owner's settings unless it is confirmed.

The caller holds the journal's lock. The service of an elapsed timer waits for that lock before it restores anything.
"""

from __future__ import annotations

import re
from typing import List

from roundabout.settings.settings_host import Host, SettingsError


def can_undo(host: Host) -> bool:
    """Return True if systemd runs this host (sd_booted)."""
    return (host.root / "run/systemd/system").exists()


def _unit(owner: str) -> str:
    return f"roundabout-undo-{re.sub('[^A-Za-z0-9]', '-', owner)}"


def start_undo(host: Host, owner: str, after_s: int, command: List[str]) -> None:
    """Start the timer that runs `command` after `after_s` seconds. It replaces an earlier timer of the owner."""
    cancel_undo(host, owner)
    accuracy = "--timer-property=AccuracySec=1s"  # the default is a minute
    host.run("systemd-run", "--collect", f"--unit={_unit(owner)}", f"--on-active={after_s}s", accuracy, *command)


def is_undo_pending(host: Host, owner: str) -> bool:
    """Return True if the owner's timer has been started and has not elapsed."""
    timer = f"{_unit(owner)}.timer"
    return can_undo(host) and host.run("systemctl", "show", "-p", "SubState", "--value", timer).strip() == "waiting"


def cancel_undo(host: Host, owner: str) -> None:
    """Stop the owner's timer, and its service, which waits for the journal's lock if it was started."""
    units = [f"{_unit(owner)}.{kind}" for kind in ("timer", "service")]
    loaded = host.run("systemctl", "list-units", "--all", "--plain", "--no-legend", *units).splitlines()
    if loaded:
        host.run("systemctl", "stop", *(line.split()[0] for line in loaded))


def confirm_change(host: Host, owner: str) -> None:
    """Stop the owner's timer. Raises SettingsError if it has elapsed, or was never started.

    A timer that elapses after the check starts a service that is stopped before it restores anything.
    """
    if not is_undo_pending(host, owner):
        raise SettingsError(
            f"too late: no change of {owner} waits to be confirmed, because its undo has run",
            "find out what interrupted the connection, then apply again",
        )
    cancel_undo(host, owner)
