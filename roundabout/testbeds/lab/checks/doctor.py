# SPDX-License-Identifier: Apache-2.0
"""Checks of this machine's requirements for labs and their tests, with remedies."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator

from roundabout.core import paths
from roundabout.runner.program_list import program_paths
from roundabout.runner.testbed import Check
from roundabout.testbeds.lab.checks.kernel_features import NEEDS_ROOT, QDISCS, examine_kernel

BOOTSTRAP = "./bootstrap, which `make` runs first" if paths.IS_CHECKOUT else "its package, by apt for example"
BOOTSTRAP_TESTS = "./bootstrap tests, which `make test`, `lint` and `bench` run first"
# Search path for tools, extended by folders that are not on every user's PATH.
PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"

TOOLS = {
    "clang": "builds eBPF programs",
    "llvm-strip": "builds eBPF programs",
    "cmake": "builds native programs",
    "ninja": "builds native programs",
    "cc": "builds native programs",
    "c++": "builds native programs",
    "ip": "reads and sets links",
    "tc": "shows queues",
    "ethtool": "reads and sets links",
    "tcpdump": "captures packets",
    "iperf3": "cross traffic of kind iperf",
    "ssh": "reaches hosts",
    "sshd": "answers in lab hosts; no daemon runs",
}
EXTRA_TOOLS = {
    "sysctl": "make test",
    "tshark": "make test",
    "readelf": "make test",
    "chromium": "tests of the report",
    "clang-format": "make lint",
    "shellcheck": "make lint",
    "mn": "make bench",
    "brctl": "make bench",
}
PROGRAMS = ("hosts", "controller", "lab")


def examine_machine() -> Iterator[Check]:
    """Yield the result of every check, from the machine to the built programs."""
    yield Check("root", os.geteuid() == 0, f"uid {os.geteuid()}", "sudo; labs make namespaces and load eBPF programs")
    yield Check("Python", sys.version_info >= (3, 11), sys.version.split()[0], "Debian 12 or Ubuntu 24.04")
    cores = len(os.sched_getaffinity(0))
    yield Check("CPU cores", cores >= 2, str(cores), "a machine with at least 2: jobs and observers share them")
    yield from examine_kernel()
    yield _check_in_namespaces("namespaces", ["--pid", "--fork", "--mount", "--uts", "--ipc"], "true")
    for name, script in QDISCS.items():
        yield _check_in_namespaces(f"qdisc {name}", [], f"ip link add port type veth peer far && {script}")
    yield _check_in_namespaces("bridge", [], "ip link add port type bridge")
    for name, purpose in TOOLS.items():
        yield _tool(name, purpose, BOOTSTRAP, needed=paths.IS_CHECKOUT or not purpose.startswith("builds"))
    for name, purpose in EXTRA_TOOLS.items() if paths.IS_CHECKOUT else ():  # a wheel has no tests
        yield _tool(name, purpose, BOOTSTRAP_TESTS, needed=False)
    for path in (paths.ROOT / name for name in program_paths(*PROGRAMS)):
        yield Check(f"program {path.name}", path.exists(), str(path) if path.exists() else "not built", paths.BUILD)


def _check_in_namespaces(name: str, options: list[str], script: str) -> Check:
    """Check that a script works in namespaces of its own, which end with it."""
    if os.geteuid() != 0:
        return Check(name, None, NEEDS_ROOT, "sudo roundabout doctor")
    unshare = shutil.which("unshare", path=PATH)
    if unshare is None:
        return Check(name, None, "needs unshare to be checked, which was not found", "apt-get install util-linux")
    command = [unshare, "--net", *options, "sh", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"PATH": PATH})
    if done.returncode == 0:
        return Check(name, True, "works")
    reason = (done.stderr.strip().splitlines() or ["does not work"])[0]
    return Check(name, False, reason, "a kernel with it, on a machine or container that may use it")


def _tool(name: str, purpose: str, mend: str, *, needed: bool) -> Check:
    path = shutil.which(name, path=PATH)
    return Check(name, path is not None, f"{path} ({purpose})" if path else f"not found ({purpose})", mend, needed)
