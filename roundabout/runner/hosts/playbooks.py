# SPDX-License-Identifier: Apache-2.0
"""Ansible playbooks on the hosts of an inventory."""

import json
import os
import re
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from roundabout.core.errors import RoundaboutError, UsageError
from roundabout.core.paths import ROOT
from roundabout.store import scratch

PLAYBOOKS = ROOT / "ansible"
TASK_TIMEOUT_S = 600  # time limit of a task on a host; tasks that fetch packages have their own
WORKERS_TIMEOUT_S = 5  # time limit of the end of a playbook's workers, once it is terminated
CONTROLLER = "localhost"  # where the last play of each playbook lists the outcomes
RECAP = re.compile(r"^(?P<host>\S+) +: ok=\d+ +changed=(?P<changed>\d+) .* ignored=(?P<ignored>\d+)", re.MULTILINE)

Playbook = Literal["site", "verify", "rollback"]
Reports = dict[str, dict[str, Any]]  # by host


class ProvisionError(RoundaboutError):
    """Error for a failed playbook.

    `reports` has the reports of hosts, and `failures` the reason for each server or switch that is not done. It is
    empty if Ansible itself failed.
    """

    def __init__(
        self,
        message: str,
        hint: str | None = None,
        reports: Reports | None = None,
        failures: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message, hint)
        self.reports = reports or {}
        self.failures = failures or {}


@dataclass(frozen=True)
class Result:
    """The result of a playbook: changed tasks by host, reports of `verify` and `rollback` by host, and duration."""

    changed: dict[str, int]
    reports: Reports
    seconds: float


@contextmanager
def temporary_inventory(inventory: Mapping[str, Any]) -> Iterator[Path]:
    """Yield the path of a file with `inventory`. The file is removed at the end of the block."""
    with scratch.folder("inventory") as folder:
        path = folder / "inventory.json"
        path.write_text(json.dumps(inventory))
        yield path


def run_playbook(
    name: Playbook,
    inventories: Sequence[Path],
    extra: Mapping[str, Any] | None = None,
    show: Callable[[str], None] | None = None,
    *,
    check: bool = False,
) -> Result:
    """Run one of the project's playbooks on the hosts of `inventories`. `show` gets each line of output.

    With `check`, the playbook only reports the changes that it would make. Raises UsageError if an inventory does not
    exist, and ProvisionError if a task fails on a host.
    """
    for inventory in inventories:
        if not inventory.exists():
            hint = "copy inventory.example and edit it, or name lab:NAME for a lab that is up"
            raise UsageError(f"inventory {inventory} does not exist", hint)
    begin = time.monotonic()
    with scratch.folder("playbook") as folder:
        command = [str(Path(sys.executable).with_name("ansible-playbook")), *(["--check", "--diff"] if check else [])]
        command += [word for inventory in inventories for word in ("--inventory", str(inventory))]
        command += ["--extra-vars", json.dumps({**(extra or {}), "report_folder": str(folder)})]
        status, output = run_ansible([*command, str(PLAYBOOKS / f"{name}.yml")], folder, show)
        reports = {path.stem: json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))}
        outcomes = folder / "outcomes"
        failures = json.loads(outcomes.read_text()) if outcomes.exists() else {}
    recap = [found for found in RECAP.finditer(output) if found["host"] != CONTROLLER]
    changed = {found["host"]: int(found["changed"]) for found in recap}
    # Only lost connections are ignored in plays, which go on after them.
    missed = [found["host"] for found in recap if int(found["ignored"]) and found["host"] not in failures]
    failures |= dict.fromkeys(missed, "the connection was lost for some time, so that tasks were left out; try again")
    if failures:
        done = ", ".join(host for host in changed if host not in failures) or "none"
        reasons = [f"{host}: {reason}" for host, reason in failures.items()]
        message = f"ansible/{name}.yml: {len(failures)} of {len(changed)} servers and switches are not done"
        raise ProvisionError(message, "\n".join([*reasons, f"done: {done}"]), reports, failures)
    if status != 0:
        raise ProvisionError(f"ansible/{name}.yml failed", _find_failures(output), reports)
    return Result(changed, reports, time.monotonic() - begin)


def run_ansible(command: Sequence[str], folder: Path, show: Callable[[str], None] | None) -> tuple[int, str]:
    """Run an ansible-playbook command with the project's configuration. Return its exit status and output.

    `folder` is for SSH control sockets. `show` gets each line of output; an exception of `show` ends the command.
    """
    # A connection that is shared with other playbooks may lead to what was called so a moment ago.
    own = {"ANSIBLE_CONFIG": str(PLAYBOOKS / "ansible.cfg"), "ANSIBLE_SSH_CONTROL_PATH_DIR": str(folder)}
    environment = os.environ | own | {"LC_ALL": "C.UTF-8", "ANSIBLE_TASK_TIMEOUT": str(TASK_TIMEOUT_S)}
    lines = []
    reader, writer = os.pipe()
    os.set_inheritable(writer, True)
    with (
        open(reader) as workers,  # at its end once the playbook and all its workers have ended
        open(writer, "w") as inherited,
        subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            close_fds=False,  # it holds the machine's lease along
        ) as playbook,
    ):
        inherited.close()
        assert playbook.stdout is not None
        try:
            for line in playbook.stdout:
                lines.append(line)
                if show:
                    show(line.rstrip("\n"))
        except BaseException:
            playbook.terminate()  # or it would be waited for, and hosts may not answer
            select.select([workers], [], [], WORKERS_TIMEOUT_S)  # they may still write into folders that are undone
            raise
    return playbook.returncode, "".join(lines)


def _find_failures(output: str) -> str:
    """Return the failures in a playbook's output."""
    found = re.findall(
        r"^(?:\[ERROR\]: .*|fatal: .*(?:\n +.*)*|\S+ +: .*(?:failed|unreachable)=[1-9].*)$", output, re.MULTILINE
    )
    return "\n".join(found) or output[-2000:]
