# SPDX-License-Identifier: Apache-2.0
"""Settings of a trial on one host, and its transports' counters. One remote command reads or writes them all."""

import json
import shlex
from pathlib import Path
from typing import Any

from roundabout.runner.hosts.host_group import Host
from roundabout.runner.hosts.programs import check_call
from roundabout.runner.session.host_session import HostSession

PYTHON = "/usr/bin/python3"  # not what PATH finds: somebody's shims take longer than the program
Answer = dict[str, Any]


def apply_settings(bench: HostSession, host: Host, document: dict[str, Any]) -> tuple[Answer, dict[str, Answer]]:
    """Apply `document` to the settings found, so that nothing from an earlier trial stays.

    Return the answer of settings.py, and each transport's counters.
    """
    owner = ["--owner", bench.owner]
    restore = f"{_command(bench, host, 'restore', *owner)} < /dev/null > /dev/null"
    return _call(bench, host, document, [restore, _command(bench, host, "apply", *owner)])


def read_settings(bench: HostSession, host: Host, document: dict[str, Any]) -> tuple[Answer, dict[str, Answer]]:
    """Compare the host with `document`; return the answer of settings.py, and each transport's counters."""
    return _call(bench, host, document, [_command(bench, host, "read")])


def describe_differences(differences: list[Answer]) -> str:
    """Describe the differences in words."""
    return ", ".join(f"{each['setting']} is {each['found']}, expected {each['expected']}" for each in differences)


def settings_command(host: Host, state: Path) -> list[str]:
    """Return the command of settings.py on `host`, without site-packages, which starts faster."""
    return [PYTHON, "-IS", str(host.prefix / "bin" / "settings.py"), "--state", str(state)]


def _command(bench: HostSession, host: Host, *words: str) -> str:
    return shlex.join([*settings_command(host, bench.site.settings_state), *words])


def _call(
    bench: HostSession, host: Host, document: dict[str, Any], commands: list[str]
) -> tuple[Answer, dict[str, Answer]]:
    transports = list(document.get("transport", {}))
    counters = [shlex.join([str(host.prefix / "bin" / "transport"), "get", name]) for name in transports]
    rest = check_call(
        bench.connections[host.name], ["sh", "-c", " && ".join([*commands, *counters])], json.dumps(document)
    )
    answers: list[Answer] = []
    while rest := rest.lstrip():
        answer, end = json.JSONDecoder().raw_decode(rest)
        answers.append(answer)
        rest = rest[end:]
    return answers[0], {name: got["counters"] for name, got in zip(transports, answers[1:], strict=True)}
