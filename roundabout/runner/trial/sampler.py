# SPDX-License-Identifier: Apache-2.0
"""Samplers of hosts and of the controller in a trial: their commands and the quality of their output.

Commands for switches come from the host group.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from roundabout.runner.hosts.connections import Connection
from roundabout.runner.hosts.host_group import Capability, Host
from roundabout.runner.hosts.programs import Program
from roundabout.runner.tables.rows import Samples

COUNTERS_MS, CPU_MS = 10, 1000
CPU = ["--cpu", "--cpu-period-ms", str(CPU_MS)]
TRANSPORTS = "/run/roundabout/bpf/transports"  # folder on every host in which `transport` pins transports


def host_sampler(
    host: Host, capabilities: Collection[Capability], period_ms: float = COUNTERS_MS, *, cpu: bool = False
) -> list[str]:
    """Return the command that samples a host's network every `period_ms`, and with `cpu` its CPU."""
    command = [str(host.prefix / "bin" / "sampler"), "--period-ms", str(round(period_ms))]
    rdma = ["--rdma-devices", "all"] if "rdma" in capabilities else []
    interfaces = ",".join(nic.interface for nic in host.nics)
    return [*command, "--interfaces", interfaces, "--transports", TRANSPORTS, *rdma, *(CPU if cpu else [])]


def controller_sampler(sampler: Path) -> list[str]:
    """Return the command that samples this machine's CPU."""
    return [str(sampler), "--period-ms", str(CPU_MS), *CPU]


class Sampler:
    """A running sampler and its output."""

    def __init__(self, connection: Connection, argv: Sequence[str]) -> None:
        self.name = f"the sampler on {connection.host}"
        self.program = Program("sampler", connection, argv)
        self.samples = Samples(self.program.lines, self.name)


@dataclass(frozen=True)
class SamplingQuality:
    """Statistics of a sampler's period. Missed samples were skipped; lost lines were taken but not printed."""

    samples: int
    missed: int
    lost_lines: int
    period_median_ms: float
    period_p99_ms: float


def sampling_quality(samples: Samples) -> SamplingQuality | None:
    """Return the sampling quality of an ended sampler, or None with fewer than two samples. Raises RecordError."""
    kinds = samples.columns
    if not {"port", "sampler"} <= kinds.keys():
        return None
    at_ns, own = np.unique(kinds["port"]["before_ns"]), kinds["sampler"]
    if len(at_ns) < 2:
        return None
    taken, missed, lost = (int(own[name][-1]) for name in ("samples", "missed", "dropped_lines"))
    periods_ms = np.diff(at_ns) / 1e6
    return SamplingQuality(taken, missed, lost, float(np.median(periods_ms)), float(np.percentile(periods_ms, 99)))
