# SPDX-License-Identifier: Apache-2.0
"""Exporters of a lab: of hosts from within their namespaces, of switches from outside."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from roundabout.programs import ROOT
from roundabout.runner.exported import PERIOD_MS, Exported, Way, exported, of_host
from roundabout.runner.hosts.connections import Channel, LocalConnection
from roundabout.runner.trial.sampling import TRANSPORTS
from roundabout.runner.trial.settings import PYTHON
from roundabout.testbeds.lab import network, paths
from roundabout.testbeds.lab.lab import Lab
from roundabout.testbeds.lab.layout import HOST_INTERFACE

SETTINGS = ROOT / "roundabout/settings/settings.py"


@dataclass
class Inside(LocalConnection):
    """A host of a lab, entered without SSH. What runs there ends with it."""

    host: str
    pid_file: Path

    def start(self, argv: Sequence[str]) -> Channel:
        """Start a program there."""
        return super().start([str(paths.program("labenter")), str(self.pid_file), *argv])


def exported_of(lab: Lab) -> Iterator[Exported]:
    """Its hosts, and its switches with what their ports carry."""
    scaled = (lab.scale, lab.dilation)
    senders = {host.address: name for name, host in lab.hosts.items()}
    for cable in lab.layout.cables:
        far, near = cable.ends
        if near.node in lab.hosts:
            # A lab's hosts see this machine's files: nothing has to be deployed.
            yield exported(
                lab.name,
                near.node,
                of_host(replace(lab.hosts[near.node], prefix=ROOT / "build")),
                partial(Inside, near.node, lab.files.pid_file(near.node)),
                scaled=scaled,
                ways={HOST_INTERFACE: Way(cable.link.name, near.node, far.node)},
                transports=TRANSPORTS,
                settings=[PYTHON, "-IS", str(SETTINGS), "--state", str(lab.settings_state)],
            )
    calibration = lab.record.calibration
    queues = network.queues(lab.layout, calibration, lab.scale, lab.dilation)
    for switch in lab.topology.switches:
        sampler = lab.switch_sampler(switch, PERIOD_MS)
        ports = [port for port in lab.ports if port.switch == switch]
        ways = {port.interface: Way(port.link, switch, port.towards) for port in ports}
        capacities = [(ways[port.interface], queues[port].drain_bytes_per_s) for port in ports]
        yield exported(lab.name, switch, sampler, scaled=scaled, ways=ways, capacities=capacities, senders=senders)
