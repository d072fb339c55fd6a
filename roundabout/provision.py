# SPDX-License-Identifier: Apache-2.0
"""Makes hosts ready, through Ansible: the playbooks say what, this says where."""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

from roundabout.errors import RoundaboutError, UsageError
from roundabout.testbeds import Testbed

PLAYBOOKS = Path(__file__).parents[1] / "ansible"
RECAP = re.compile(r"^(?P<host>\S+) +: ok=\d+ +changed=(?P<changed>\d+) ", re.MULTILINE)

Playbook = Literal["site", "verify", "rollback"]


class ProvisionError(RoundaboutError):
    """A playbook failed."""


@dataclass(frozen=True)
class Result:
    """What a playbook did: how many of its tasks changed something, by host."""

    changed: dict[str, int]
    seconds: float


def provision(testbed: Testbed) -> Result:
    """Deploy the programs, and the settings that hold between trials, on a testbed's hosts.

    Raises:
        ProvisionError: a host could not be reached or made ready.
    """
    with inventory_file(testbed) as inventory:
        return run_playbook("site", inventory)


@contextmanager
def inventory_file(testbed: Testbed) -> Iterator[Path]:
    """A file with `inventory_of(testbed)`, for as long as it is needed."""
    with TemporaryDirectory(prefix="roundabout-") as folder:
        path = Path(folder) / "inventory.json"
        path.write_text(json.dumps(inventory_of(testbed)))
        yield path


def inventory_of(testbed: Testbed) -> dict[str, Any]:
    """An Ansible inventory of a testbed's hosts, in a group named by its kind."""
    config = testbed.ssh_config()
    variables = {
        "ansible_ssh_common_args": f"-F {config}",
        "ansible_ssh_args": "-o ControlMaster=auto -o ControlPersist=20",
        # With the testbed's own files: a shared folder would silently reach a lab that is gone.
        "ansible_control_path_dir": str(config.parent / "ansible"),
        "ansible_ssh_transfer_method": "piped",
        "ansible_remote_tmp": "/tmp/.ansible",  # noqa: S108 - the host's own /tmp
        "roundabout_state": str(testbed.settings_state),
    }
    hosts = {
        host.name: {"ansible_host": host.ssh_alias, "roundabout_prefix": str(host.prefix)}
        for host in testbed.hosts.values()
    }
    groups = {"rack": {"hosts": {}}, testbed.kind: {"hosts": hosts}}
    return {"all": {"vars": variables, "children": groups}}


def run_playbook(
    name: Playbook, inventory: Path, extra: Mapping[str, Any] | None = None, show: Callable[[str], None] | None = None
) -> Result:
    """Run one of our playbooks on the hosts of `inventory`; each line of its output goes to `show`.

    Raises:
        UsageError: there is no such inventory.
        ProvisionError: a task failed on some host.
    """
    if not inventory.exists():
        raise UsageError(
            f"inventory {inventory} does not exist", "name an Ansible inventory, or lab:NAME for a lab that is up"
        )
    command = [str(Path(sys.executable).with_name("ansible-playbook")), "--inventory", str(inventory)]
    command += ["--extra-vars", json.dumps(extra or {}), str(PLAYBOOKS / f"{name}.yml")]
    environment = os.environ | {"ANSIBLE_CONFIG": str(PLAYBOOKS / "ansible.cfg"), "LC_ALL": "C.UTF-8"}
    begin = time.monotonic()
    lines = []
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as playbook:
        assert playbook.stdout is not None
        for line in playbook.stdout:
            lines.append(line)
            if show:
                show(line.rstrip("\n"))
    output = "".join(lines)
    if playbook.returncode != 0:
        raise ProvisionError(f"ansible/{name}.yml failed", _complaints(output))
    changed = {found["host"]: int(found["changed"]) for found in RECAP.finditer(output)}
    return Result(changed, time.monotonic() - begin)


def _complaints(output: str) -> str:
    """What failed, of a playbook's output."""
    found = re.findall(
        r"^(?:\[ERROR\]: .*|fatal: .*(?:\n +.*)*|\S+ +: .*(?:failed|unreachable)=[1-9].*)$", output, re.MULTILINE
    )
    return "\n".join(found) or output[-2000:]
