# SPDX-License-Identifier: Apache-2.0
"""The agreed start of a trial: the instant at which its programs begin, on all hosts' clocks."""

from collections.abc import Iterable, Sequence

from roundabout.runner.hosts.clocks import RunClock
from roundabout.runner.hosts.host_group import HostGroup
from roundabout.runner.hosts.programs import Program
from roundabout.runner.trial import cross_traffic
from roundabout.runner.trial.cross_traffic import Generator
from roundabout.runner.trial.measurement import Measurement

START_AHEAD_MS = 150  # from the command to the agreed start, so that it reaches every host before; times the dilation


class LateStartError(Exception):
    """Error of an attempt whose programs did not receive the agreed start in time."""


def send_start(
    site: HostGroup,
    clock: RunClock,
    measured: Measurement,
    trainers: Iterable[Program],
    generators: Sequence[Generator],
) -> int:
    """Send the agreed start to cross traffic, which begins first, and to trainers.

    Return the trainers' start in ns of the run's clock. Raises LateStartError if sending took too long.
    """
    ahead_ms = site.ms_on_host(START_AHEAD_MS)
    begin_ns = clock.now_ns() + round(ahead_ms * 1e6)
    start_ns = begin_ns + (round(cross_traffic.lead_time_s(site) * 1e9) if generators else 0)
    starts = [(each.sender, begin_ns) for each in generators] + [(each, start_ns) for each in trainers]
    for program, at_ns in starts:
        program.send(f"start {measured.clock_log.on_host(program.host, at_ns)}")
    if clock.now_ns() >= begin_ns:
        raise LateStartError(f"sending the agreed start to all programs took longer than {ahead_ms:.0f} ms")
    return start_ns
