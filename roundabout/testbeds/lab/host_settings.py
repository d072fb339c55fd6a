# SPDX-License-Identifier: Apache-2.0
"""What a trial asks of a lab host's settings: the papers' units become the lab's here."""

from typing import Any

from roundabout.runner.hosts.site import kernel_name
from roundabout.spec.experiment import CrossTraffic, ResolvedJob, TrialSpec
from roundabout.spec.transport import Transport
from roundabout.testbeds.lab.calibration import Calibration
from roundabout.testbeds.lab.layout import HOST_INTERFACE

SYSCTLS = {
    # That TCP answers to marks is a guess for the thesis' servers. Effect: BERT beside 11 and 18 Gbit/s of web-search
    # traffic takes 1.44 and 3.4 s (the thesis' fit: 1.40 and 3.1); beside TCP that fills queues, 2.4 and 6.0 s.
    "net.ipv4.tcp_ecn": 1,
    "net.ipv4.tcp_early_retrans": 0,  # where nothing is lost, a probe for lost tails only sends twice
    "net.ipv4.tcp_no_metrics_save": 1,  # a trial must not know the one before
    "net.ipv4.tcp_rmem": "4096 16777216 33554432",  # the receiver's window must not be the limit before it has grown
}
# What stands for a NIC's transport never forgets its rate while a job computes.
NIC_SYSCTLS = {"net.ipv4.tcp_wmem": "4096 4194304 33554432", "net.ipv4.tcp_slow_start_after_idle": 0}
# What is TCP in the papers too is as Linux has it: at most 4 MiB a flow under way.
TCP_WMEM_BYTES, TCP_WMEM_LEAST_BYTES = 4 << 20, 16 << 10


def document(trial: TrialSpec, host: str, calibration: Calibration, scale: float) -> dict[str, Any]:
    """The document for `settings.py apply` on `host`.

    A host without a worker gets the transport of the cross traffic that it sends, or else of the first job.
    """
    transport = _transport(trial, host)
    asked: dict[str, Any] = {
        "sysctl": {
            **SYSCTLS,
            **(NIC_SYSCTLS if transport.name == "dcqcn" else _tcp_sysctls(scale)),
            "net.ipv4.tcp_congestion_control": kernel_name(transport.name),
        },
        "link": {HOST_INTERFACE: {"gso_max_size": calibration.gso_max_bytes}},
    }
    if transport.name == "dcqcn":
        overrides = transport.model_dump(exclude={"name"}, exclude_none=True)
        line_rate = next(link.line_rate_gbps for link in trial.topology.links if host in link.ends)
        defaults = {**calibration.reaction_point.model_dump(), "R_max_mbps": line_rate * 1000 / scale}
        scaled = {name: _in_lab_units(name, value, calibration.timer_scale, scale) for name, value in overrides.items()}
        asked["transport"] = {"dcqcn": {**defaults, **scaled}}
    return asked


def _transport(trial: TrialSpec, host: str) -> Transport:
    users: list[ResolvedJob | CrossTraffic] = [job for job in trial.jobs.values() if host in job.workers]
    users += [traffic for traffic in trial.cross_traffic.values() if traffic.sender == host]
    return (users or list(trial.jobs.values()))[0].transport


def _tcp_sysctls(scale: float) -> dict[str, Any]:
    """Linux's own, with bytes under way scaled like all others."""
    most = max(round(TCP_WMEM_BYTES / scale), TCP_WMEM_LEAST_BYTES)
    return {
        "net.ipv4.tcp_wmem": f"4096 {TCP_WMEM_LEAST_BYTES} {most}",
        "net.ipv4.tcp_slow_start_after_idle": 1,
    }


def _in_lab_units(name: str, value: float, timer_scale: float, scale: float) -> float:
    """A transport's parameter from an experiment, by the unit in its name."""
    if name.endswith("_us"):
        return value * timer_scale
    if name.endswith(("_mbps", "_bytes")):
        return value / scale
    return value
