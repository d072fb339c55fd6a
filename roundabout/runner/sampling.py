# SPDX-License-Identifier: Apache-2.0
"""How a trial samples: the commands of its hosts and of the controller. Switches are the testbed's affair."""

from collections.abc import Collection
from pathlib import Path

from roundabout.testbeds import Capability, Host

COUNTERS_MS, CPU_MS = 10, 1000
TRANSPORTS = "/run/roundabout/bpf/transports"  # where `transport` pins them, on every host


def host_sampler(host: Host, capabilities: Collection[Capability], period_ms: int = COUNTERS_MS) -> list[str]:
    """The command that samples a host's network, to be run there."""
    command = [str(host.prefix / "bin" / "sampler"), "--period-ms", str(period_ms), "--interfaces", host.interface]
    rdma = ["--rdma-devices", "all"] if "rdma" in capabilities else []
    return [*command, "--transports", TRANSPORTS, *rdma]


def controller_sampler(sampler: Path) -> list[str]:
    """The command that samples this machine's CPU."""
    return [str(sampler), "--period-ms", str(CPU_MS), "--cpu", "--cpu-period-ms", str(CPU_MS)]
