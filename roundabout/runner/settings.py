# SPDX-License-Identifier: Apache-2.0
"""Settings of a trial on one host, and its transports' counters: one remote command reads or writes all of it."""

import json
import shlex
from pathlib import Path
from typing import Any

from roundabout.runner.bench import Bench
from roundabout.runner.links import check_call
from roundabout.testbeds import Host

PYTHON = "/usr/bin/python3"  # not what PATH finds: somebody's shims take longer than the program
Answer = dict[str, Any]


def apply(bench: Bench, host: Host, document: dict[str, Any]) -> tuple[Answer, dict[str, Answer]]:
    """Apply `document`; what settings.py answers, and each transport's counters."""
    return _call(bench, host, ["apply", "--owner", bench.owner], document)


def read(bench: Bench, host: Host, document: dict[str, Any]) -> tuple[Answer, dict[str, Answer]]:
    """Compare the host with `document`; what settings.py answers, and each transport's counters."""
    return _call(bench, host, ["read"], document)


def describe(differences: list[Answer]) -> str:
    """What differs, for people."""
    return ", ".join(f"{each['setting']} is {each['found']}, expected {each['expected']}" for each in differences)


def program(host: Host, state: Path) -> list[str]:
    """How settings.py is called on `host`: without site-packages, which starts faster."""
    return [PYTHON, "-IS", str(host.prefix / "bin" / "settings.py"), "--state", str(state)]


def _call(bench: Bench, host: Host, words: list[str], document: dict[str, Any]) -> tuple[Answer, dict[str, Answer]]:
    transports = list(document.get("transport", {}))
    commands = [[*program(host, bench.testbed.settings_state), *words]]
    commands += [[str(host.prefix / "bin" / "transport"), "get", name] for name in transports]
    script = " && ".join(shlex.join(command) for command in commands)
    rest = check_call(bench.links[host.name], ["sh", "-c", script], json.dumps(document))
    answers: list[Answer] = []
    while rest := rest.lstrip():
        answer, end = json.JSONDecoder().raw_decode(rest)
        answers.append(answer)
        rest = rest[end:]
    return answers[0], {name: got["counters"] for name, got in zip(transports, answers[1:], strict=True)}
