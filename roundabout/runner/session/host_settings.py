# SPDX-License-Identifier: Apache-2.0
"""Settings and transport counters of one host in a trial. One remote command reads or writes all of them."""

import json
import shlex
from pathlib import Path
from typing import Any

from roundabout.runner.hosts.host_group import Host
from roundabout.runner.hosts.programs import check_call
from roundabout.runner.session.host_session import HostSession

PYTHON = "/usr/bin/python3"  # a fixed path, because shims that PATH may find start slowly
Answer = dict[str, Any]


def apply_settings(session: HostSession, host: Host, document: dict[str, Any]) -> tuple[Answer, dict[str, Answer]]:
    """Restore the host's original settings, then apply `document`, so that no setting of an earlier trial stays.

    Where settings may not be changed, only compare them. Return the answer of settings.py, and the counters of each
    transport. Raises LostHostError and RoundaboutError.
    """
    if session.site.settings_state is None:
        answer, counters = read_settings(session, host, document)
        return {**answer, "applied": answer["found"], "changed": []}, counters
    owner = ["--owner", session.owner]
    restore = f"{_command(session, host, 'restore', *owner)} < /dev/null > /dev/null"
    return _call(session, host, document, [restore, _command(session, host, "apply", *owner)])


def read_settings(session: HostSession, host: Host, document: dict[str, Any]) -> tuple[Answer, dict[str, Answer]]:
    """Compare the host's settings with `document`. Return the answer of settings.py and each transport's counters.

    Raises LostHostError and RoundaboutError.
    """
    return _call(session, host, document, [_command(session, host, "read")])


def describe_differences(differences: list[Answer]) -> str:
    """Return one text that describes the differences in an answer of settings.py."""
    return ", ".join(f"{each['setting']} is {each['found']}, expected {each['expected']}" for each in differences)


def settings_command(host: Host, state: Path | None) -> list[str]:
    """Return the command that starts settings.py on `host`, without site-packages for a faster start.

    `state` is the folder of its journal; None only to read settings.
    """
    journal = [] if state is None else ["--state", str(state)]
    return [PYTHON, "-IS", str(host.prefix / "bin" / "settings.py"), *journal]


def _command(session: HostSession, host: Host, *words: str) -> str:
    return shlex.join([*settings_command(host, session.site.settings_state), *words])


def _call(
    session: HostSession, host: Host, document: dict[str, Any], commands: list[str]
) -> tuple[Answer, dict[str, Answer]]:
    transports = list(document.get("transport", {}))
    counters = [shlex.join([str(host.prefix / "bin" / "transport"), "get", name]) for name in transports]
    rest = check_call(
        session.connections[host.name], ["sh", "-c", " && ".join([*commands, *counters])], json.dumps(document)
    )
    answers: list[Answer] = []
    while rest := rest.lstrip():
        answer, end = json.JSONDecoder().raw_decode(rest)
        answers.append(answer)
        rest = rest[end:]
    return answers[0], {name: got["counters"] for name, got in zip(transports, answers[1:], strict=True)}
