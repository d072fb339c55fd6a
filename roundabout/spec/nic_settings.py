# SPDX-License-Identifier: Apache-2.0
"""Settings of NICs that only packets and hardware have: where another testbed cannot play a trial as it is."""

from collections import Counter
from collections.abc import Set

from roundabout.spec.job import ResolvedJob
from roundabout.spec.transports import Transport
from roundabout.spec.trial_spec import TrialSpec


def find_nic_setting(trial: TrialSpec, calibrated: Set[str] = frozenset()) -> str | None:
    """Return why hosts without a NIC's own settings cannot play a trial, or None.

    Selective repeat is refused, unless packets overtake each other and need it. A gap between CNPs that holds for a
    host or a port is refused where several flows come from or to it, because elsewhere it is a queue pair's. Sets of
    the transports `calibrated` do not count, because the testbed has constants of its own in their place.
    """
    received = {"host": Counter[str](), "port": Counter[str]()}
    for job in trial.jobs.values():
        for one, other, _ in _connections(job):
            received["host"][f"{one} {other}"] += job.flows
            received["port"][other] += job.flows
    for name, job in trial.jobs.items():
        values = _required_values(job.transport, calibrated)
        if values.get("retransmission") == "selective_repeat" and not trial.topology.spreads_packets:
            return f"jobs.{name}.transport.retransmission: found selective_repeat, allowed is go_back_n"
        scope = str(values.get("cnp_scope"))
        if scope in received and max(received[scope].values(), default=0) > 1:
            return f"jobs.{name}.transport.cnp_scope: found {scope} with several flows to a host, allowed is qp"
    return None


def _connections(job: ResolvedJob) -> set[tuple[str, str, int]]:
    """Return the hosts that send to other hosts, each with the one that it sends to and the channel."""
    transfers = (each for phase in job.profile.phases if phase.bytes for each in job.transfers(phase))
    ends = {(job.workers[each.sender], job.workers[each.receiver], each.channel) for each in transfers}
    return {(one, other, channel) for one, other, channel in ends if one != other}


def _required_values(transport: Transport, calibrated: Set[str]) -> dict[str, int | float | str]:
    declared = transport.declaration
    if declared and {declared.origin(each) for each in declared.parameters} & calibrated:
        return transport.parameters
    return transport.requested
