# SPDX-License-Identifier: Apache-2.0
"""Checks of a rack's machines. They change nothing on a machine and need no installed program of this project."""

import re
import shlex
import subprocess
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from roundabout.core.errors import RoundaboutError
from roundabout.core.paths import ROOT
from roundabout.spec.trainers import replay
from roundabout.testbeds.rack.inventory import Inventory, Server

HOST_PROGRAMS = Path(__file__).parent / "programs"  # run on hosts
PATIENCE_S = 30
# Names of findings that other modules use.
SSH, DEVICE, GID, WRITE, GLIBC = "ssh", "RDMA device", "GID", "ib_write_bw", "RDMA glibc"
GPUDIRECT = "GPUDirect"  # prefix of several names

PYTHON_38 = "import sys; sys.exit(sys.version_info < (3, 8))"  # as in SCRIPT
SCRIPT = (HOST_PROGRAMS / "examination.sh").read_text()  # `script_arguments` returns its arguments

# Command that runs SCRIPT in root's shell, because only root reads debugfs; without sudo, in the user's shell.
SHELL = 'sudo -n true < /dev/null 2> /dev/null && exec sudo -n sh -s -- "$@"; exec sh -s -- "$@"'


class Finding(NamedTuple):
    """The result of one check on a host. `mend` is the remedy."""

    name: str
    good: bool
    found: str
    mend: str


def examine_hosts(inventory: Inventory) -> Mapping[str, list[Finding]]:
    """Return the findings on each host, in the inventory's order. An unreachable host has a finding that says so."""
    with ThreadPoolExecutor(min(32, len(inventory.servers))) as pool:
        answers = pool.map(lambda server: _examine_host(inventory, server), inventory.servers.values())
        return dict(zip(inventory.servers, answers, strict=True))


def script_arguments(inventory: Inventory, server: Server, root: str = "") -> list[str]:
    """Return the arguments of SCRIPT for a server. `root` replaces / in tests."""
    common = inventory.common
    irqs = common.irq_cpus or ""
    own = address_of(server)
    others = [address_of(each) for each in inventory.servers.values() if each is not server]
    asked = [common.driver, common.gpu, common.clock, common.governor, irqs, str(common.mtu_bytes)]
    return [root, server.nic, *asked, own, glibc_needed(ROOT / str(replay.Trainer.rdma_program)), *others]


def glibc_needed(program: Path) -> str:
    """Return the newest glibc version that a program's symbols require, such as "2.34", or "2.0" without any."""
    names = re.findall(rb"\0GLIBC_2\.(\d+)(?=[.\0])", program.read_bytes()) if program.exists() else []
    return f"2.{max(map(int, names), default=0)}"


def address_of(server: Server) -> str:
    """Return the server's IPv4 address on the network under test, without the prefix length."""
    return server.address.partition("/")[0]


def parse(text: str) -> Iterator[Finding]:
    """Yield the findings in SCRIPT's output. Other lines, such as a login banner, are ignored."""
    for line in text.splitlines():
        if line.count("\t") == 3:
            name, good, found, mend = line.split("\t")
            yield Finding(name, good == "yes", found, mend)


def _examine_host(inventory: Inventory, server: Server) -> list[Finding]:
    try:
        said = run_over_ssh(
            inventory, server, ["sh", "-c", SHELL, "sh", *script_arguments(inventory, server)], SCRIPT, PATIENCE_S
        )
    except RoundaboutError as error:
        return [Finding(SSH, False, error.message, error.hint or "")]
    return [Finding(SSH, True, "answers", ""), *parse(said)]


def run_over_ssh(inventory: Inventory, server: Server, words: list[str], stdin: str, patience_s: float) -> str:
    """Run the command `words` on a server by ssh and return its stdout.

    Raises RoundaboutError if the command fails or takes longer than `patience_s`.
    """
    config = str(inventory.ssh_config)
    ssh = ["ssh", "-F", config, "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-l", inventory.common.ansible_user]
    mend = f"`ssh -F {config} -l {inventory.common.ansible_user} {server.ansible_host}` must work without a question"
    try:
        command = [*ssh, server.ansible_host, shlex.join(words)]
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=patience_s)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RoundaboutError(str(error), mend) from error
    if done.returncode != 0 or not done.stdout:
        raise RoundaboutError((done.stderr.strip().splitlines() or ["no answer"])[-1], mend)
    return done.stdout
