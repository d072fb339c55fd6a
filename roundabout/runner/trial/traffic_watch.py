# SPDX-License-Identifier: Apache-2.0
"""Measurement of hosts' traffic without a trial: only samplers run, for some seconds."""

import time
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from functools import partial

import pyarrow as pa

from roundabout.core.errors import RoundaboutError
from roundabout.runner.hosts.clocks import ClockLog, HostClock, Phase, RunClock
from roundabout.runner.hosts.connections import Connection
from roundabout.runner.hosts.host_group import Host
from roundabout.runner.trial.measurement import counters
from roundabout.runner.trial.sampler import Sampler, host_sampler

LOOK_S = 0.2


def sample_traffic(hosts: Mapping[Host, Connection], seconds: float) -> pa.Table:
    """Sample these hosts' interfaces for `seconds`. Return the columns of the table `counters`.

    Times are on one clock. Raises LostHostError, and RoundaboutError if a sampler ended by itself.
    """
    clock_log, run_clock = ClockLog(), RunClock.start()
    clocks: dict[str, HostClock] = {}
    samplers: dict[str, Sampler] = {}
    with ExitStack() as stack:
        for host, connection in hosts.items():
            clocks[host.name] = HostClock(connection, host.prefix / "bin" / "clock.py", run_clock)
            stack.callback(clocks[host.name].stop)
        _read(clocks, clock_log, "before")
        stack.callback(partial(_stop, samplers.values()))
        for host, connection in hosts.items():
            samplers[host.name] = Sampler(connection, host_sampler(host, ()))
        _wait(samplers.values(), seconds)
        _stop(samplers.values())
        _read(clocks, clock_log, "after")
    return pa.table(counters(clock_log, {name: sampler.samples.columns for name, sampler in samplers.items()}))


def _read(clocks: Mapping[str, HostClock], clock_log: ClockLog, phase: Phase) -> None:
    for name, clock in clocks.items():
        clock_log.add(name, clock.read(phase))


def _wait(samplers: Iterable[Sampler], seconds: float) -> None:
    until = time.monotonic() + seconds
    while (left_s := until - time.monotonic()) > 0:
        for sampler in samplers:
            if sampler.program.has_ended:
                hint = "sudo roundabout provision INVENTORY puts it there"
                raise RoundaboutError(f"{sampler.name} ended: {sampler.program.describe_end()}", hint)
        time.sleep(min(left_s, LOOK_S))


def _stop(samplers: Iterable[Sampler]) -> None:
    for sampler in samplers:
        sampler.program.close_stdin()
    for sampler in samplers:
        sampler.program.finish()
