# SPDX-License-Identifier: Apache-2.0
"""Exporters of hosts and switches: the node that each runs on, and the facts of the testbed that it exports."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from roundabout.core.paths import ROOT
from roundabout.runner.hosts.clocks import CONTROLLER
from roundabout.runner.hosts.connections import Connection, LocalConnection
from roundabout.runner.hosts.host_group import Host
from roundabout.runner.session.host_settings import PYTHON
from roundabout.runner.testbed import ExporterTarget
from roundabout.runner.trial.sampler import controller_sampler, host_sampler

HERE = ROOT / "collectors/exporter/exporter.py"
SAMPLER = ROOT / "build/bin/sampler"
PERIOD_MS = 1000

Series = tuple[str, Mapping[str, str], float]
"""A metric of exporter_metrics.METRICS, its labels, and a value."""


@dataclass(frozen=True)
class LinkDirection:
    """One direction of a link: from `here` to `there`."""

    link: str
    here: str
    there: str

    @property
    def labels(self) -> dict[str, str]:
        """Return the labels of this direction's series."""
        return {"link": self.link, "direction": f"{self.here} to {self.there}"}

    @property
    def reverse(self) -> "LinkDirection":
        """Return the opposite direction."""
        return LinkDirection(self.link, self.there, self.here)


def exporter_target(  # noqa: PLR0913 - what a node is
    site: str,
    node: str,
    sampler: Iterable[str],
    connect: Callable[[], Connection] = LocalConnection,
    *,
    program: Path = HERE,
    scaled: tuple[float, float] = (1.0, 1.0),
    directions: Mapping[str, LinkDirection] | None = None,
    capacities: Iterable[tuple[LinkDirection, float]] = (),
    **facts: Any,
) -> ExporterTarget:
    """Return the exporter of `node`, where `sampler` counts and `ways` are the directions of its interfaces.

    `scaled` are the testbed's scale and dilation; `capacities` its bytes per second, headers included.
    """
    scale, dilation = scaled
    series: list[Series] = [("roundabout_testbed_scale", {}, scale), ("roundabout_testbed_dilation", {}, dilation)]
    series += [("roundabout_link_capacity_bytes_per_second", way.labels, rate) for way, rate in capacities]
    facts_of_node = {
        "labels": {"site": site, "host": node},
        "interfaces": {
            name: {"link": way.link, "out": way.labels["direction"], "in": way.reverse.labels["direction"]}
            for name, way in (directions or {}).items()
        },
        "series": series,
        **facts,
    }
    # Not by -I, which would not find what lies beside the program.
    return ExporterTarget(site, node, (PYTHON, "-ESs", str(program), *sampler), facts_of_node, connect)


def host_sampler_command(host: Host, *, rdma: bool = False, cpu: bool = False) -> list[str]:
    """Return the command of a host's sampler, for its exporter."""
    return host_sampler(host, {"rdma"} if rdma else (), PERIOD_MS, cpu=cpu)


def controller_target() -> ExporterTarget:
    """Return this machine's exporter: its CPU, which is a lab's too, and the progress of the run."""
    return exporter_target(CONTROLLER, CONTROLLER, controller_sampler(SAMPLER))
