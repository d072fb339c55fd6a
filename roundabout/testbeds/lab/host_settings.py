# SPDX-License-Identifier: Apache-2.0
"""What a trial asks of a lab host's settings: the papers' units become the lab's here."""

from typing import Any

from roundabout.spec.experiment import TrialSpec
from roundabout.testbeds.lab.calibration import Calibration
from roundabout.testbeds.lab.layout import HOST_INTERFACE

# The congestion control's name in the kernel, by the transport's name; others are called what they are.
KERNEL_NAMES = {"dcqcn": "rb_dcqcn"}
SYSCTLS = {
    "net.ipv4.tcp_ecn": 1,
    "net.ipv4.tcp_early_retrans": 0,  # where nothing is lost, a probe for lost tails only sends twice
    "net.ipv4.tcp_no_metrics_save": 1,  # a trial must not know the one before
    "net.ipv4.tcp_rmem": "4096 16777216 33554432",  # the receiver's window must not be the limit before it has grown
    "net.ipv4.tcp_wmem": "4096 4194304 33554432",
    "net.ipv4.tcp_slow_start_after_idle": 0,  # NICs do not forget their rate while a job computes
}


def document(trial: TrialSpec, host: str, calibration: Calibration, scale: float) -> dict[str, Any]:
    """The document for `settings.py apply` on `host`; one without a worker gets the first job's transport."""
    jobs = list(trial.jobs.values())
    transport = next((job for job in jobs if host in job.workers), jobs[0]).transport
    kernel_name = KERNEL_NAMES.get(transport.name, transport.name)
    asked: dict[str, Any] = {
        "sysctl": {**SYSCTLS, "net.ipv4.tcp_congestion_control": kernel_name},
        "link": {HOST_INTERFACE: {"gso_max_size": calibration.gso_max_bytes}},
    }
    if transport.name == "dcqcn":
        overrides = transport.model_dump(exclude={"name"}, exclude_none=True)
        line_rate = next(link.line_rate_gbps for link in trial.topology.links if host in link.ends)
        defaults = {**calibration.reaction_point.model_dump(), "R_max_mbps": line_rate * 1000 / scale}
        scaled = {name: _in_lab_units(name, value, calibration.timer_scale, scale) for name, value in overrides.items()}
        asked["transport"] = {"dcqcn": {**defaults, **scaled}}
    return asked


def _in_lab_units(name: str, value: float, timer_scale: float, scale: float) -> float:
    """A transport's parameter from an experiment, by the unit in its name."""
    if name.endswith("_us"):
        return value * timer_scale
    if name.endswith(("_mbps", "_bytes")):
        return value / scale
    return value
