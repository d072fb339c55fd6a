# SPDX-License-Identifier: Apache-2.0
"""Explanation of what the kernel refuses over netlink."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager

from pyroute2 import NetlinkError

from roundabout.testbeds.lab.errors import LabError


@contextmanager
def explain_refusal(what: str) -> Iterator[None]:
    """Convert a netlink error in the block to a LabError that names the refused operation `what`."""
    try:
        yield
    except NetlinkError as error:
        missing = error.code in {errno.ENOENT, errno.EOPNOTSUPP}
        hint = (
            "the lab needs the kernel's veth, bridge, sch_htb, cls_bpf, cls_u32 and act_mirred; `modprobe` them"
            if missing
            else None
        )
        raise LabError(f"the kernel refused {what}: {os.strerror(error.code)}", hint) from error
