# SPDX-License-Identifier: Apache-2.0
"""Exporters of a real lab: what they say, and that they keep nothing of it once it is down."""

import re
from collections.abc import Callable
from contextlib import closing

import pytest

from roundabout.core.errors import RoundaboutError
from roundabout.dashboards.exporters import Exporter, ExporterPool
from roundabout.spec import Topology
from roundabout.testbeds.lab import Lab
from roundabout.testbeds.lab.exporter_targets import lab_targets
from roundabout.testbeds.lab.provider import LabProvider
from tests.lab.conftest import traces

pytestmark = [pytest.mark.lab, pytest.mark.quiet]


def series(text: str, name: str) -> dict[tuple[str, str], float]:
    """By link and direction."""
    found = re.findall(rf'^{name}{{direction="([^"]*)".*link="([^"]*)".*}} (\S+)$', text, re.MULTILINE)
    return {(link, direction): float(value) for direction, link, value in found}


def test_hosts_and_switches_say_what_their_links_carry(lab: Lab) -> None:
    said = {}
    for each in lab_targets(lab):
        with closing(Exporter(each)) as exporter:
            said[each.node] = exporter.query("own").decode()
    assert said.keys() == {*lab.topology.hosts, *lab.topology.switches}
    for port in lab.ports:
        way = (port.link, f"{port.switch} to {port.towards}")
        # The far end of a host's link counts the same bytes.
        assert way in series(said[port.switch], "roundabout_interface_bytes_total")
        assert way in series(said[port.switch], "roundabout_ecn_marked_packets_total")
        assert way in series(said[port.switch], "roundabout_queue_backlog_bytes")
        rate = series(said[port.switch], "roundabout_link_capacity_bytes_per_second")[way]
        assert lab.rate_on_host_bps(port.payload_rate_gbps) / 8 < rate < lab.rate_on_host_bps(port.line_rate_gbps) / 8
        if port.towards in lab.hosts:
            assert way in series(said[port.towards], "roundabout_interface_bytes_total")
    assert f'roundabout_testbed_scale{{host="s0",site="{lab.name}"}} {lab.scale}' in said["s0"]


def test_exporters_follow_labs_that_come_and_go(topology: Topology, lab_name: Callable[[], str]) -> None:
    name, provider = lab_name(), LabProvider()
    place = (name, "s0")
    with closing(ExporterPool(provider.exporter_targets)) as exporters:
        Lab.create(topology, name, verify=False)
        exporters.update()
        assert b"roundabout_interface_up" in exporters.query(place, "own")
        Lab.remove(name)  # which exporters do not hold up: no scrape came yet
        Lab.create(topology, name, verify=False)
        exporters.update()
        assert b"roundabout_interface_up" in exporters.query(place, "own")
        Lab.remove(name)
        exporters.update()
        with pytest.raises(RoundaboutError, match="no exporter"):
            exporters.query(place, "own")
    assert not any(traces(name).values())
