# SPDX-License-Identifier: Apache-2.0
"""Features of the kernel that labs use: which kernels have them, and whether this one does."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path

from roundabout.core.bpf import find_bpf_error
from roundabout.core.btf import KERNEL_BTF, Btf
from roundabout.core.errors import RoundaboutError
from roundabout.runner.testbed import Check
from roundabout.testbeds.lab.errors import LabError

TIME_NAMESPACE = Path("/proc/self/ns/time")
# The kernels that have each feature.
KERNELS = {
    "eBPF": "a kernel with CONFIG_BPF_SYSCALL=y",
    "BTF": "a kernel with CONFIG_DEBUG_INFO_BTF=y",
    "time namespaces": "a kernel of 5.6 or later with CONFIG_TIME_NS=y",
    "struct_ops": "a kernel of 5.6 or later with CONFIG_BPF_JIT=y",
    "cong_control": "a kernel that transports/ supports",
    "queue backlog in eBPF": "a kernel of 6.2 or later",
}
# Commands that test if the kernel has a queueing discipline. Each runs in its own network namespace.
QDISCS = {
    "htb": "tc qdisc add dev port root handle 1: htb && tc class add dev port parent 1: classid 1:1 htb rate 1gbit",
    "bfifo": "tc qdisc add dev port root bfifo limit 1000000",
    "clsact": "tc qdisc add dev port clsact && "
    "tc filter add dev port egress u32 match u32 0 0 action mirred egress mirror dev far",
}
NEEDS_ROOT = "needs root to be checked"


def require_btf() -> None:
    """Raise LabError if the kernel has no BTF."""
    if not KERNEL_BTF.exists():
        raise LabError(f"this kernel ({os.uname().release}) has no BTF: {KERNEL_BTF} is missing", KERNELS["BTF"])


def require_time_namespaces() -> None:
    """Raise LabError if the kernel does not support separate clocks for hosts (time namespaces)."""
    if not TIME_NAMESPACE.exists():
        raise LabError(
            f"this kernel ({os.uname().release}) has no time namespaces: {TIME_NAMESPACE} is missing",
            f"boot {KERNELS['time namespaces']}, or leave the hosts' clocks unshifted",
        )


def examine_kernel() -> Iterator[Check]:
    """Check the kernel's eBPF features by its BTF, whatever its version."""
    release = os.uname().release
    bpffs = "bpf" in Path("/proc/filesystems").read_text().split()
    yield Check("kernel", bpffs, release if bpffs else f"{release} without bpffs", KERNELS["eBPF"])
    yield examine_bpf()
    clocks = TIME_NAMESPACE.exists()
    found = "lab hosts can have clocks of their own" if clocks else "lab hosts share one clock"
    yield Check("time namespaces", clocks, found, KERNELS["time namespaces"], needed=False)
    if not KERNEL_BTF.exists():
        yield Check("BTF", False, f"{KERNEL_BTF} does not exist", KERNELS["BTF"])
        return
    types = Btf(KERNEL_BTF.read_bytes())
    yield Check("BTF", True, str(KERNEL_BTF))
    transports = types.has_name("bpf_struct_ops_tcp_congestion_ops")
    found = "TCP congestion control can be eBPF" if transports else "TCP congestion control cannot be eBPF"
    yield Check("struct_ops", transports, found, KERNELS["struct_ops"])
    arguments = types.callback_arguments("tcp_congestion_ops", "cong_control")
    signatures = {2: "2 arguments, as before 6.10", 4: "4 arguments, as since 6.10"}
    known = signatures.get(arguments or 0)
    yield Check("cong_control", known is not None, known or f"{arguments} arguments", KERNELS["cong_control"])
    backlog = types.has_name("bpf_cast_to_kern_ctx")
    found = "marks on the real backlog" if backlog else "marks on a virtual queue"
    yield Check("queue backlog in eBPF", backlog, found, KERNELS["queue backlog in eBPF"], needed=False)


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
    return Check("bpf(2)", not error, os.strerror(error) if error else "works", KERNELS["eBPF"])
