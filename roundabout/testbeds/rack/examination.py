# SPDX-License-Identifier: Apache-2.0
"""Checks of a rack's machines. They change nothing on a machine and need no installed program of this project."""

import re
import shlex
import subprocess
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

from roundabout.core.errors import RoundaboutError
from roundabout.core.paths import ROOT
from roundabout.spec.reader.yaml_source import load_yaml
from roundabout.spec.trainers import replay
from roundabout.testbeds.rack.inventory import HostNic, Inventory, Machine, ServerNic
from roundabout.testbeds.rack.ssh_programs import PROGRAMS

HOST_PROGRAMS = Path(__file__).parent / "programs"  # run on hosts
PATIENCE_S = 30
# Names of findings that other modules use.
SSH, DEVICE, GID, WRITE, GLIBC = "ssh", "RDMA device", "GID", "ib_write_bw", "RDMA glibc"
ADDRESS, PYTHON, ROUTE, MEMLOCK = "address", "python3", "route", "RDMA memlock"
ORDINARY_USER = "ordinary user"  # without root, by the inventory
GPUDIRECT = "GPUDirect"  # prefix of several names
# Names of findings that should be the same on all servers, each with the remedy.
ALIKE = {
    "NIC driver": "the same kernel, or the same DOCA-OFED, on all servers",
    "NIC firmware": "the same firmware on all NICs of one kind (PSID), by mlxfwmanager or mstflint",
    "FEC": "`ethtool --set-fec NIC encoding ...` on both ends of the link, or a cable or module of the same kind",
    "module": "nothing if the cables differ on purpose; else `ethtool -m NIC` shows the module",
}
# Names of findings that lower performance or may change settings later, but stop no trial.
ADVICE = (*ALIKE, "PCIe link", "carrier changes", "kernel lockdown", "irq_cpus", "boot MTU", "NIC operator")
TRAINING_VERSIONS = ROOT / "ansible/vars/training_versions.yml"

PYTHON_38 = "import sys; sys.exit(sys.version_info < (3, 8))"  # as in SCRIPT
SCRIPT = (HOST_PROGRAMS / "examination.sh").read_text()  # `script_arguments` returns its arguments

# Commands that run SCRIPT in the user's shell, and in root's if there is sudo, because only root reads debugfs.
# They end in time also if ssh ended before, on Ctrl-C for example.
LIMITED = f'timeout {PATIENCE_S} sh -s -- "$@"'
AS_USER = f"exec {LIMITED}"
AS_ROOT = f'exec sudo -n env SSH_CONNECTION="$SSH_CONNECTION" {LIMITED}'  # sudo clears the environment
SHELL = f"sudo -n true < /dev/null 2> /dev/null && {AS_ROOT}; {AS_USER}"


Scope = Literal["all", "capabilities"]


class Finding(NamedTuple):
    """The result of one check on a host. `mend` is the remedy."""

    name: str
    good: bool
    found: str
    mend: str


def examine_hosts(inventory: Inventory) -> Mapping[str, list[Finding]]:
    """Return all findings on each NIC and its host, by the NIC's name, in the inventory's order.

    An unreachable host has a finding that says so.
    """
    return mark_differences(_examine(inventory, inventory.nics, "all"))


def query_capabilities(inventory: Inventory, names: Collection[str]) -> Mapping[str, list[Finding]]:
    """Return the findings on NICs and their hosts from which capabilities follow, by the NIC's name."""
    return _examine(inventory, names, "capabilities")


def mark_differences(findings: Mapping[str, list[Finding]]) -> dict[str, list[Finding]]:
    """Return `findings` with those of ALIKE marked as not good on hosts that differ from most hosts."""
    found = [each for of_host in findings.values() for each in of_host]
    most = {name: Counter(each.found for each in found if each.name == name).most_common(1) for name in ALIKE}

    def marked(each: Finding) -> Finding:
        usual = most[each.name][0][0] if each.name in ALIKE else each.found
        if each.found == usual:
            return each
        return Finding(each.name, False, f"{each.found}, elsewhere {usual}", ALIKE[each.name])

    return {host: [marked(each) for each in of_host] for host, of_host in findings.items()}


def script_arguments(inventory: Inventory, own: HostNic, root: str = "", scope: Scope = "all") -> list[str]:
    """Return the arguments of SCRIPT for a server and one of its NICs. `root` replaces / in tests."""
    common = inventory.common
    irqs, become = common.irq_cpus or "", "yes" if common.ansible_become else "no"
    others = [peer.address for peer in inventory.rail_peers(own)]
    requested = [common.driver, common.gpu, common.clock, common.governor, irqs, str(common.mtu_bytes)]
    needed = [glibc_needed(ROOT / str(replay.Trainer.rdma_program)), gpu_driver_needed(common.versions)]
    shared = "yes" if common.shared_nic else "no"
    return [root, own.nic.nic, *requested, own.address, *needed, shared, become, scope, *others]


@cache
def gpu_driver_needed(versions: str) -> str:
    """Return the lowest version of the GPU's driver for trainers that compute with the training software `versions`."""
    return str(load_yaml(TRAINING_VERSIONS).root["versions_known"][versions]["driver"])


@cache
def glibc_needed(program: Path) -> str:
    """Return the newest glibc version that a program's symbols require, such as "2.34", or "2.0" without any."""
    names = re.findall(rb"\0GLIBC_2\.(\d+)(?=[.\0])", program.read_bytes()) if program.exists() else []
    return f"2.{max(map(int, names), default=0)}"


def parse(text: str) -> Iterator[Finding]:
    """Yield the findings in SCRIPT's output. Other lines, such as a login banner, are ignored."""
    for line in text.splitlines():
        if line.count("\t") == 3:
            name, good, found, mend = line.split("\t")
            yield Finding(name, good == "yes", found, mend)


def _examine(inventory: Inventory, names: Collection[str], scope: Scope) -> dict[str, list[Finding]]:
    """Examine hosts in parallel, and the NICs of a host one after another, because sshd limits new connections."""
    by_host: dict[str, list[str]] = {}
    for name in names:
        by_host.setdefault(inventory.nics[name].host, []).append(name)
    with PROGRAMS.threads(min(32, len(by_host))) as pool:
        answers = pool.map(lambda own: list(_examine_nics(inventory, own, scope)), by_host.values())
        found = dict(each for answer in answers for each in answer)
    return {name: found[name] for name in names}


def _examine_nics(inventory: Inventory, names: list[str], scope: Scope) -> Iterator[tuple[str, list[Finding]]]:
    """Yield the findings on each of these NICs of a host. A host that does not answer is contacted once."""
    found: list[Finding] = []
    for name in names:
        if not found or found[0].good:
            found = _examine_nic(inventory, inventory.nics[name], scope)
        yield name, found


def _examine_nic(inventory: Inventory, own: HostNic, scope: Scope) -> list[Finding]:
    shell = SHELL if inventory.common.ansible_become else AS_USER
    words = ["sh", "-c", shell, "sh", *script_arguments(inventory, own, scope=scope)]
    try:
        said = run_over_ssh(inventory, inventory.servers[own.host], words, SCRIPT, PATIENCE_S)
    except RoundaboutError as error:
        return [Finding(SSH, False, error.message, error.hint or "")]
    found = [Finding(SSH, True, "answers", ""), *parse(said)]
    return [*found, *_compare_device(own.nic, found), *_compare_table(own.nic, found)]


def _compare_device(nic: ServerNic, found: list[Finding]) -> Iterator[Finding]:
    """Yield a finding if the inventory's RDMA device is not the one of the NIC."""
    device = rdma_device(found)
    if nic.hca and device and nic.hca.partition(":")[0] != device:
        yield Finding("hca", False, f"{nic.hca} in the inventory, {device} of {nic.nic}", f"hca: {device}:1")


def _compare_table(nic: ServerNic, found: list[Finding]) -> Iterator[Finding]:
    """Yield a finding if packets from the NIC's address have another routing table than in the inventory."""
    expected = nic.table or "main"
    for table in (each.found.rpartition(" ")[2] for each in found if each.name == ROUTE and each.good):
        if table != str(expected):
            mend = "no table in the inventory" if table == "main" else f"table: {table} in the inventory"
            yield Finding("routing table", False, f"{expected} in the inventory, {table} of packets from it", mend)


def rdma_device(found: list[Finding]) -> str | None:
    """Return the RDMA device of a NIC, or None if it has none."""
    return next((each.found for each in found if each.name == DEVICE and each.good), None)


def ssh_command(inventory: Inventory, server: Machine, words: list[str]) -> list[str]:
    """Return the command that runs `words` on a server by ssh, without a question."""
    config = str(inventory.ssh_config)
    ssh = ["ssh", "-F", config, "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-l", inventory.common.ansible_user]
    return [*ssh, server.ansible_host, shlex.join(words)]


def run_over_ssh(inventory: Inventory, server: Machine, words: list[str], stdin: str, patience_s: float) -> str:
    """Run the command `words` on a server by ssh and return its stdout.

    Raises RoundaboutError if the command fails or takes longer than `patience_s`.
    """
    user = inventory.common.ansible_user
    mend = f"`ssh -F {inventory.ssh_config} -l {user} {server.ansible_host}` must work without a question"
    try:
        command = ssh_command(inventory, server, words)
        done = PROGRAMS.run(command, stdin, patience_s)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RoundaboutError(str(error), mend) from error
    if done.returncode != 0 or not done.stdout:
        raise RoundaboutError((done.stderr.strip().splitlines() or ["no answer"])[-1], mend)
    return done.stdout
