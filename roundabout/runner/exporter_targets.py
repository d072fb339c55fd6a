# SPDX-License-Identifier: Apache-2.0
"""Targets of exporters: the hosts and switches on which exporters run, and the testbed's facts that they export."""

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
"""A constant series: the name of a metric in exporter_metrics.METRICS, its labels, and a value."""


@dataclass(frozen=True)
class LinkDirection:
    """One direction of a link, from the node `here` to the node `there`."""

    link: str
    here: str
    there: str

    @property
    def labels(self) -> dict[str, str]:
        """Return the metric labels of this direction."""
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
    """Return the exporter's target for `node`. `sampler` is the command that reads the node's counters.

    `directions` maps the node's interfaces to link directions. `scaled` is the testbed's scale and dilation.
    `capacities` are rates of link directions in bytes per second, including headers.
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
    """Return the command of a host's sampler at the exporter's period. `rdma` and `cpu` add counters."""
    return host_sampler(host, {"rdma"} if rdma else (), PERIOD_MS, cpu=cpu)


def controller_target() -> ExporterTarget:
    """Return the exporter's target for this machine, which exports its CPU and the progress of the run."""
    return exporter_target(CONTROLLER, CONTROLLER, controller_sampler(SAMPLER))
