# SPDX-License-Identifier: Apache-2.0
"""Which of the kernel's congestion controls hosts may use is counted by use, and undone."""

import os
import uuid
from pathlib import Path

import pytest

from roundabout.testbeds.lab import LabError
from roundabout.testbeds.lab.network import cc_allowlist

pytestmark = [pytest.mark.lab, pytest.mark.quiet]

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="allowing a congestion control needs root")
LIST = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control")


@needs_root
def test_the_list_is_as_it_was_when_the_last_user_left() -> None:
    before = LIST.read_text().split()
    one, other = (f"test-{uuid.uuid4().hex[:6]}" for _ in range(2))
    try:
        cc_allowlist.allow("cubic", one)
        cc_allowlist.allow("cubic", other)
        cc_allowlist.disallow("cubic", one)
        assert "cubic" in LIST.read_text().split()
    finally:
        for owner in (one, other):
            cc_allowlist.disallow("cubic", owner)
    assert LIST.read_text().split() == before


def test_a_congestion_control_that_the_kernel_lacks_is_named() -> None:
    with pytest.raises(LabError, match="no congestion control 'mystery'"):
        cc_allowlist.allow("mystery", "test")
