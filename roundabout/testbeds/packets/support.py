# SPDX-License-Identifier: Apache-2.0
"""Refusals of trials that the packet-level model cannot play, each by one error before a run begins."""

from roundabout.models.packets import Fabric, UnsupportedError
from roundabout.models.packets.network import ecn_thresholds, number_ports
from roundabout.models.packets.switches import plan_buffers
from roundabout.models.packets.transports import transport_values
from roundabout.spec.experiment import TrialSpec

ELSEWHERE = "run it with --testbed lab, or with --testbed fluid"


def check_support(trial: TrialSpec, fabric: Fabric) -> None:
    """Raise UnsupportedError, which names the field, what is allowed and what to do, if the trial cannot be played."""
    if trial.cluster:
        raise UnsupportedError("cluster: found a trace, allowed are jobs alone: traces last for hours", ELSEWHERE)
    for name, traffic in trial.cross_traffic.items():
        if traffic.load_gbps > 0:
            found = f"cross_traffic.{name}: found {traffic.kind} at {traffic.load_gbps:g} Gbit/s"
            raise UnsupportedError(f"{found}, allowed is none, or load_gbps: 0", ELSEWHERE)
    if trial.capture:
        raise UnsupportedError("capture: found hosts to capture at, allowed is none", "run it with --testbed lab")
    for name, job in trial.jobs.items():
        try:
            transport_values(job.transport, trial.topology.payload_rate_gbps)
        except UnsupportedError as error:
            raise UnsupportedError(f"jobs.{name}.{error.message}", error.hint) from None
    ecn_thresholds(trial, fabric)
    plan_buffers(trial, fabric, number_ports(trial.topology))
