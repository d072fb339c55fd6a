# SPDX-License-Identifier: Apache-2.0
"""A real lab on a leaf-spine whose links fail, lose packets and slow down, and are restored."""

import os
import re
import socket
import subprocess
from collections.abc import Iterator
from functools import partial

import pytest

from roundabout.core.errors import UsageError
from roundabout.spec import TrialSpec
from roundabout.spec.link_events import INTACT, LinkEvent, LinkState
from roundabout.testbeds.lab import Lab
from roundabout.testbeds.lab.network.namespaces import run_inside
from roundabout.testbeds.lab.provider import LabProvider
from tests.several_paths.lab_transfers import build_lab, carried
from tests.several_paths.trials import build_leaf_spine

pytestmark = [pytest.mark.lab, pytest.mark.skipif(os.geteuid() != 0, reason="a lab needs root")]

DATAGRAMS, SIZE = 2000, 100
FAILED = LinkState(is_up=False)


@pytest.fixture(scope="module")
def spec() -> TrialSpec:
    """Return a trial whose flows from s0 to s2 without a route of their own cross the link that has events."""
    plain = build_leaf_spine({"name": "ecmp", "seed": 5}, "dctcp", 1)
    link = plain.topology.path("s0", "s2")[1].link.name
    events = [
        LinkEvent(at_ms=1.0, link=link, what="fails"),
        LinkEvent(at_ms=2.0, link=link, what="recovers"),
        LinkEvent(at_ms=3.0, link=link, what="slows", share=0.5),
        LinkEvent(at_ms=4.0, link=link, what="recovers"),
    ]
    return plain.model_copy(update={"events": tuple(events), "reroute_after_ms": 0.5})


@pytest.fixture(scope="module")
def lab(spec: TrialSpec) -> Iterator[Lab]:
    with build_lab(spec.topology, verify=False) as built:
        yield built


def receive_datagrams(lab: Lab) -> int:
    """Send datagrams from s0 to s2, and return how many arrive."""
    pids = lab.live_pids()
    with (
        run_inside(pids["s2"], partial(socket.socket, socket.AF_INET, socket.SOCK_DGRAM)) as into,
        run_inside(pids["s0"], partial(socket.socket, socket.AF_INET, socket.SOCK_DGRAM)) as out,
    ):
        into.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 24)
        into.bind((lab.hosts["s2"].address, 40_000))
        found = 0
        for number in range(DATAGRAMS):
            out.sendto(bytes(SIZE), into.getsockname())
            # Each datagram is taken before the next one, if it comes, so that no queue can fill.
            into.settimeout(0.2 if number == DATAGRAMS - 1 else 0.001)
            try:
                into.recv(SIZE)
                found += 1
            except TimeoutError:
                pass
        return found


def test_a_failed_link_loses_all_until_routes_avoid_it_or_it_recovers(lab: Lab, spec: TrialSpec) -> None:
    link = spec.events[0].link
    lab.prepare(spec)
    assert receive_datagrams(lab) == DATAGRAMS
    before = lab.count_lost([link])[link]
    lab.set_link(spec, link, FAILED)
    assert receive_datagrams(lab) == 0
    assert lab.count_lost([link])[link] == before + DATAGRAMS
    lab.set_routes(spec, frozenset({link}))
    sent = carried(lab)
    assert receive_datagrams(lab) == DATAGRAMS
    used = {name for (name, _), size in (carried(lab) - sent).items() if size > DATAGRAMS * SIZE}
    assert link not in used
    assert len(used) == 3  # to the other spine, to the leaf, to the host
    lab.set_routes(spec, frozenset())
    lab.set_link(spec, link, INTACT)
    assert receive_datagrams(lab) == DATAGRAMS
    assert lab.read_back(spec) == []


def test_a_link_loses_about_the_share_that_it_is_given(lab: Lab, spec: TrialSpec) -> None:
    """With 2,000 datagrams, a share of 0.3 has a standard deviation of 0.01."""
    link = spec.events[0].link
    lab.prepare(spec)
    lab.set_link(spec, link, LinkState(loss=0.3))
    assert 0.64 < receive_datagrams(lab) / DATAGRAMS < 0.76
    lab.set_link(spec, link, INTACT)


def test_a_slow_link_has_the_share_of_its_rate_at_both_ports(lab: Lab, spec: TrialSpec) -> None:
    link = spec.events[0].link
    lab.prepare(spec)
    whole = link_rates(lab, link)
    lab.set_link(spec, link, LinkState(rate=0.5))
    assert link_rates(lab, link) == pytest.approx([each / 2 for each in whole], rel=0.01)
    assert lab.read_back(spec) == []
    lab.set_link(spec, link, INTACT)
    assert link_rates(lab, link) == whole


def test_a_trial_ends_what_a_killed_run_left(lab: Lab, spec: TrialSpec) -> None:
    """Neither a trial with events nor one without starts on a link that is slow or loses packets."""
    link = spec.events[0].link
    for following in (spec, spec.model_copy(update={"events": (), "reroute_after_ms": None})):
        lab.prepare(spec)
        whole = link_rates(lab, link)
        lab.set_link(spec, link, LinkState(loss=0.3, rate=0.5))
        assert link_rates(lab, link) != whole
        lab.prepare(following)
        assert link_rates(lab, link) == whole
        assert receive_datagrams(lab) == DATAGRAMS


def link_rates(lab: Lab, link: str) -> list[float]:
    """Return the rates of the whole link that tc says of a link's ports, bit/s."""
    units = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9}
    found = []
    for port in (port for port in lab.ports if port.link == link):
        show = ["tc", "class", "show", "dev", port.interface, "classid", "1:1"]
        run = partial(subprocess.run, show, check=True, capture_output=True, text=True)
        match = re.search(r"\brate (\d+)([KMG]?)bit", run_inside(lab.live_pids()[port.switch], run).stdout)
        assert match
        found.append(float(match[1]) * units[match[2]])
    return found


def test_a_slow_link_of_a_host_is_refused(spec: TrialSpec) -> None:
    slow = LinkEvent(at_ms=1.0, link="s0", what="slows", share=0.5)
    with pytest.raises(UsageError, match="events.0.link: found s0 of host s0"):
        LabProvider().check_trial(spec.model_copy(update={"events": (slow,)}))
