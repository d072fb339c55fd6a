# SPDX-License-Identifier: Apache-2.0
"""Targets of exporters for a lab.

Only samplers enter the lab's namespaces. Exporters stay outside, because a host's /tmp may hide this checkout.
"""

from collections.abc import Iterator
from dataclasses import replace

from roundabout.core.paths import ROOT
from roundabout.runner.exporter_targets import PERIOD_MS, LinkDirection, exporter_target, host_sampler_command
from roundabout.runner.session.host_settings import settings_command
from roundabout.runner.testbed import ExporterTarget
from roundabout.runner.trial.sampler import TRANSPORTS
from roundabout.testbeds.lab.lifecycle.lab import Lab
from roundabout.testbeds.lab.network import paths, port_queues
from roundabout.testbeds.lab.network.layout import HostNic


def lab_targets(lab: Lab) -> Iterator[ExporterTarget]:
    """Yield the exporters' targets for a lab's hosts and switches, with the rates of ports."""
    scaled, pids = (lab.scale, lab.dilation), lab.live_pids()
    directions: dict[str, dict[str, LinkDirection]] = {name: {} for name in lab.hosts}
    for cable in lab.layout.cables:
        far, near = cable.ends
        if isinstance(near, HostNic):
            directions[near.node][near.interface] = LinkDirection(cable.link.name, near.node, far.node)
    for host in lab.hosts.values():
        enter = [str(paths.program_path("labenter")), str(lab.files.pid_file(host.name))]
        yield exporter_target(
            lab.name,
            host.name,
            [*host_sampler_command(replace(host, prefix=ROOT / "build")), "--netns-of-pid", str(pids[host.name])],
            scaled=scaled,
            directions=directions[host.name],
            ends_with=pids[host.name],
            transports=TRANSPORTS,
            settings=[*enter, *settings_command(host, lab.settings_state)],
        )
    queues = port_queues.port_queues(lab.layout, lab.record.calibration, lab.scale, lab.transport_dilation)
    for switch in lab.topology.switches:
        ports = [port for port in lab.ports if port.switch == switch]
        ways = {port.interface: LinkDirection(port.link, switch, port.towards) for port in ports}
        yield exporter_target(
            lab.name,
            switch,
            lab.switch_sampler(switch, PERIOD_MS),
            scaled=scaled,
            ends_with=pids[switch],
            directions=ways,
            capacities=[(ways[port.interface], queues[port].drain_bytes_per_s) for port in ports],
            senders={nic.address: name for name, host in lab.hosts.items() for nic in host.nics},
        )
