# SPDX-License-Identifier: Apache-2.0
"""Checks of this machine's requirements for labs and their tests, with remedies."""

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from roundabout.core import paths
from roundabout.core.bpf import find_bpf_error
from roundabout.core.btf import KERNEL_BTF, Btf
from roundabout.core.errors import RoundaboutError
from roundabout.runner.program_list import program_paths
from roundabout.runner.testbed import Check

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
# Commands that test if the kernel has a queueing discipline. Each runs in its own network namespace.
QDISCS = {
    "htb": "tc qdisc add dev port root handle 1: htb && tc class add dev port parent 1: classid 1:1 htb rate 1gbit",
    "bfifo": "tc qdisc add dev port root bfifo limit 1000000",
    "clsact": "tc qdisc add dev port clsact && "
    "tc filter add dev port egress u32 match u32 0 0 action mirred egress mirror dev far",
}
NEEDS_ROOT = "needs root to be checked"
PROGRAMS = ("hosts", "controller", "lab")


def examine_machine() -> Iterator[Check]:
    """Yield the result of every check, from the machine to the built programs."""
    yield Check("root", os.geteuid() == 0, f"uid {os.geteuid()}", "sudo; labs make namespaces and load eBPF programs")
    yield Check("Python", sys.version_info >= (3, 11), sys.version.split()[0], "Debian 12 or Ubuntu 24.04")
    cores = len(os.sched_getaffinity(0))
    yield Check("CPU cores", cores >= 2, str(cores), "a machine with at least 2: jobs and observers share them")
    yield from _kernel()
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


def _kernel() -> Iterator[Check]:
    """Check the kernel's eBPF features by its BTF, whatever its version."""
    release = os.uname().release
    bpffs = "bpf" in Path("/proc/filesystems").read_text().split()
    yield Check("kernel", bpffs, release if bpffs else f"{release} without bpffs", "a kernel with CONFIG_BPF_SYSCALL=y")
    yield examine_bpf()
    clocks = Path("/proc/self/ns/time").exists()
    found = "lab hosts can have clocks of their own" if clocks else "lab hosts share one clock"
    yield Check("time namespaces", clocks, found, "a kernel of 5.6 or later with CONFIG_TIME_NS=y", needed=False)
    if not KERNEL_BTF.exists():
        yield Check("BTF", False, f"{KERNEL_BTF} does not exist", "a kernel with CONFIG_DEBUG_INFO_BTF=y")
        return
    types = Btf(KERNEL_BTF.read_bytes())
    yield Check("BTF", True, str(KERNEL_BTF))
    transports = types.has_name("bpf_struct_ops_tcp_congestion_ops")
    found = "TCP congestion control can be eBPF" if transports else "TCP congestion control cannot be eBPF"
    yield Check("struct_ops", transports, found, "a kernel of 5.6 or later with CONFIG_BPF_JIT=y")
    arguments = types.callback_arguments("tcp_congestion_ops", "cong_control")
    signatures = {2: "2 arguments, as before 6.10", 4: "4 arguments, as since 6.10"}
    known = signatures.get(arguments or 0)
    yield Check("cong_control", known is not None, known or f"{arguments} arguments", "a kernel that transports/ knows")
    backlog = types.has_name("bpf_cast_to_kern_ctx")
    found = "marks on the real backlog" if backlog else "marks on a virtual queue"
    yield Check("queue backlog in eBPF", backlog, found, "a kernel of 6.2 or later", needed=False)


def examine_bpf() -> Check:
    """Check that this process may call bpf(2), which a container, seccomp or the kernel's lockdown may forbid."""
    if os.geteuid() != 0:
        return Check("bpf(2)", None, NEEDS_ROOT, "sudo roundabout doctor")
    try:
        error = find_bpf_error()
    except RoundaboutError as unknown:
        return Check("bpf(2)", False, unknown.message)
    if error == errno.EPERM:
        remedy = "CAP_BPF, CAP_PERFMON, CAP_NET_ADMIN and CAP_SYS_ADMIN: a privileged container, or none"
        return Check("bpf(2)", False, "is not permitted here", remedy)
    return Check("bpf(2)", not error, os.strerror(error) if error else "works", "a kernel with CONFIG_BPF_SYSCALL=y")


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
