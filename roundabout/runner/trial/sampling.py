# SPDX-License-Identifier: Apache-2.0
"""How a trial samples: the commands of its hosts and of the controller, and what became of them.

Switches are the site's affair.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from roundabout.runner.hosts.site import Capability, Host
from roundabout.runner.tables.records import parse_samples

COUNTERS_MS, CPU_MS = 10, 1000
CPU = ["--cpu", "--cpu-period-ms", str(CPU_MS)]
TRANSPORTS = "/run/roundabout/bpf/transports"  # where `transport` pins them, on every host


def host_sampler(
    host: Host, capabilities: Collection[Capability], period_ms: int = COUNTERS_MS, *, cpu: bool = False
) -> list[str]:
    """The command that samples a host's network, and with `cpu` its CPU, to be run there."""
    command = [str(host.prefix / "bin" / "sampler"), "--period-ms", str(period_ms), "--interfaces", host.interface]
    rdma = ["--rdma-devices", "all"] if "rdma" in capabilities else []
    return [*command, "--transports", TRANSPORTS, *rdma, *(CPU if cpu else [])]


def controller_sampler(sampler: Path) -> list[str]:
    """The command that samples this machine's CPU."""
    return [str(sampler), "--period-ms", str(CPU_MS), *CPU]


@dataclass(frozen=True)
class Achieved:
    """How a sampler kept to its period. A sample that was missed came with the next one; lost lines are lost."""

    samples: int
    missed: int
    lost_lines: int
    period_median_ms: float
    period_p99_ms: float


def achieved(lines: Sequence[str], source: str) -> Achieved | None:
    """From a sampler's lines; None before it has taken two samples. Raises RecordError."""
    kinds = parse_samples((line for line in lines if line.startswith(("#port", "port", "#sampler", "sampler"))), source)
    if not {"port", "sampler"} <= kinds.keys():
        return None
    at_ns, own = np.unique(kinds["port"]["before_ns"]), kinds["sampler"]
    if len(at_ns) < 2:
        return None
    samples, missed, lost = (int(own[name][-1]) for name in ("samples", "missed", "dropped_lines"))
    periods_ms = np.diff(at_ns) / 1e6
    return Achieved(samples, missed, lost, float(np.median(periods_ms)), float(np.percentile(periods_ms, 99)))
