# SPDX-License-Identifier: Apache-2.0
"""Targets of exporters for a rack's servers, and of other projects' exporters on them."""

from collections.abc import Callable
from pathlib import Path

from roundabout.runner.exporter_targets import LinkDirection, exporter_target, host_sampler_command
from roundabout.runner.hosts.connections import Connection
from roundabout.runner.session.host_settings import settings_command
from roundabout.runner.testbed import ExporterTarget
from roundabout.runner.trial.sampler import TRANSPORTS
from roundabout.testbeds.rack.inventory import HostNic, Inventory
from roundabout.testbeds.rack.rack import host_of

OTHER_EXPORTERS = {"node": 9100, "dcgm": 9400}
"""Default ports of node_exporter and of NVIDIA's DCGM exporter."""


def server_target(inventory: Inventory, name: str, site: str, connect: Callable[[], Connection]) -> ExporterTarget:
    """Return the exporter's target for a server. Switches have none, because this project does not sample them."""
    everywhere, host = inventory.all.vars, host_of(inventory, name)
    ways = {each.nic.nic: _link_direction(inventory, each) for each in inventory.nics_of(name)}
    rates = {way: everywhere.rates(way.link).line_rate_gbps * 1e9 / 8 / everywhere.scale for way in ways.values()}
    return exporter_target(
        site,
        name,
        host_sampler_command(host, rdma=True, cpu=True),
        connect,
        program=host.prefix / "bin" / "exporter.py",
        scaled=(everywhere.scale, everywhere.dilation),
        directions=ways,
        capacities=[pair for way, rate in rates.items() for pair in ((way, rate), (way.reverse, rate))],
        transports=TRANSPORTS,
        settings=settings_command(host, Path(inventory.common.roundabout_state)),
        beside=OTHER_EXPORTERS,
    )


def _link_direction(inventory: Inventory, own: HostNic) -> LinkDirection:
    """Return the direction in which a NIC sends."""
    return LinkDirection(own.nic.link, own.host, inventory.switch_of(own))
