# SPDX-License-Identifier: Apache-2.0
"""DCTCP over real sockets: alpha is the share of what is marked."""

from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.lab, pytest.mark.quiet]

MARKER = Path(__file__).with_name("marker.bpf.c")


def mark_each(tools: Any, every: int, namespace: Any, folder: Path) -> None:
    """Mark each so manieth packet that leaves the namespace with data."""
    built = folder / "marker.o"
    tools.compiled(MARKER, built, f"EVERY={every}")
    namespace.run("tc", "qdisc", "add", "dev", "eth0", "clsact")
    words = ["tc", "filter", "add", "dev", "eth0", "egress", "bpf", "direct-action", "object-file", str(built)]
    namespace.run(*words, "section", "classifier")


@pytest.mark.quiet
@pytest.mark.parametrize("name", ["dctcp", "mltcp_dctcp"])
@pytest.mark.parametrize("every", [5, 10])
def test_alpha_follows_the_share_of_marks(pair: Any, tools: Any, tmp_path: Path, every: int, name: str) -> None:
    sender, receiver = pair
    with tools.loaded(name):
        for end in pair:
            end.run("sysctl", "-qw", f"net.ipv4.tcp_congestion_control=rb_{name}", "net.ipv4.tcp_ecn=1")
        sender.transport("set", name, "g=0.001")  # the mean of a thousand windows
        mark_each(tools, every, sender, tmp_path)
        tools.transfer(sender, receiver, 1.0)
        counters = sender.transport("get", name)["counters"]
    share = counters["segments_marked"] / counters["segments"]
    assert share == pytest.approx(1 / every, rel=0.25)  # ACKs are for segments of both kinds where bursts are marked
    # A window has some 9 segments and 1.3 ACKs. A receiver acknowledges a change of marks at once, so that windows with
    # marks are short, and they weigh as much as others: 0.22 at a share of 0.09.
    assert counters["alpha"] == pytest.approx(share, abs=0.2)
    assert counters["windows"] > 50


def test_without_marks_alpha_is_gone(pair: Any, tools: Any) -> None:
    sender, receiver = pair
    with tools.loaded("dctcp"):
        for end in pair:
            end.run("sysctl", "-qw", "net.ipv4.tcp_congestion_control=rb_dctcp")
        tools.transfer(sender, receiver, 1.0)
        counters = sender.transport("get", "dctcp")["counters"]
    assert (counters["segments_marked"], counters["alpha"]) == (0, pytest.approx(0, abs=0.01))
