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
from roundabout.runner.testbed import Exported
from roundabout.runner.trial.sampler import controller_sampler, host_sampler

HERE = ROOT / "collectors/exporter/exporter.py"
SAMPLER = ROOT / "build/bin/sampler"
PERIOD_MS = 1000

Series = tuple[str, Mapping[str, str], float]
"""A metric of exporter_metrics.METRICS, its labels, and a value."""


@dataclass(frozen=True)
class Way:
    """One direction of a link: from `here` to `there`."""

    link: str
    here: str
    there: str

    @property
    def labels(self) -> dict[str, str]:
        """Return the labels of this direction's series."""
        return {"link": self.link, "direction": f"{self.here} to {self.there}"}

    @property
    def back(self) -> "Way":
        """Return the opposite direction."""
        return Way(self.link, self.there, self.here)


def exported(  # noqa: PLR0913 - what a node is
    site: str,
    node: str,
    sampler: Iterable[str],
    connect: Callable[[], Connection] = LocalConnection,
    *,
    program: Path = HERE,
    scaled: tuple[float, float] = (1.0, 1.0),
    ways: Mapping[str, Way] | None = None,
    capacities: Iterable[tuple[Way, float]] = (),
    **facts: Any,
) -> Exported:
    """Return the exporter of `node`, where `sampler` counts and `ways` are the directions of its interfaces.

    `scaled` are the testbed's scale and dilation; `capacities` its bytes per second, headers included.
    """
    scale, dilation = scaled
    series: list[Series] = [("roundabout_testbed_scale", {}, scale), ("roundabout_testbed_dilation", {}, dilation)]
    series += [("roundabout_link_capacity_bytes_per_second", way.labels, rate) for way, rate in capacities]
    told = {
        "labels": {"site": site, "host": node},
        "interfaces": {
            name: {"link": way.link, "out": way.labels["direction"], "in": way.back.labels["direction"]}
            for name, way in (ways or {}).items()
        },
        "series": series,
        **facts,
    }
    # Not by -I, which would not find what lies beside the program.
    return Exported(site, node, (PYTHON, "-ESs", str(program), *sampler), told, connect)


def of_host(host: Host, *, rdma: bool = False, cpu: bool = False) -> list[str]:
    """Return the command of a host's sampler, for its exporter."""
    return host_sampler(host, {"rdma"} if rdma else (), PERIOD_MS, cpu=cpu)


def of_controller() -> Exported:
    """Return this machine's exporter: its CPU, which is a lab's too, and the progress of the run."""
    return exported(CONTROLLER, CONTROLLER, controller_sampler(SAMPLER))
