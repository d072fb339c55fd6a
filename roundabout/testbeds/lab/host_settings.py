# SPDX-License-Identifier: Apache-2.0
"""What a trial asks of a lab host's settings: the papers' units become the lab's here."""

from collections.abc import Mapping
from typing import Any

from roundabout.spec.experiment import TrialSpec
from roundabout.spec.transports import Declaration, Parameter
from roundabout.testbeds.lab.calibration import Calibration
from roundabout.testbeds.lab.layout import HOST_INTERFACE

SYSCTLS = {
    # That TCP answers to marks is a guess for Salamy's servers. Effect: BERT beside 11 and 18 Gbit/s of web-search
    # traffic takes 1.44 and 3.4 s (Salamy's fit: 1.40 and 3.1); beside TCP that fills queues, 2.4 and 6.0 s.
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
    """The document for `settings.py apply` on `host`; nothing on one without a part in the trial."""
    transport = trial.transport_of(host)
    if transport is None:
        return {}
    asked: dict[str, Any] = {
        "sysctl": {
            **SYSCTLS,
            **(NIC_SYSCTLS if transport.stands_for == "RDMA" else _tcp_sysctls(scale)),
            "net.ipv4.tcp_congestion_control": transport.kernel_name,
        },
        "link": {HOST_INTERFACE: {"gso_max_size": calibration.gso_max_bytes}},
    }
    if transport.declaration:
        line_rate = next(link.line_rate_gbps for link in trial.topology.links if host in link.ends)
        given = {**_line_rates(transport.declaration, line_rate * 1000), **transport.parameters}
        asked["transport"] = {transport.name: _parameters(transport.declaration, given, calibration, scale)}
    return asked


def _tcp_sysctls(scale: float) -> dict[str, Any]:
    """Linux's own, with bytes under way scaled like all others."""
    most = max(round(TCP_WMEM_BYTES / scale), TCP_WMEM_LEAST_BYTES)
    return {
        "net.ipv4.tcp_wmem": f"4096 {TCP_WMEM_LEAST_BYTES} {most}",
        "net.ipv4.tcp_slow_start_after_idle": 1,
    }


def _line_rates(declared: Declaration, line_rate_mbps: float) -> dict[str, float]:
    return {each.name: line_rate_mbps for each in declared.parameters if each.chosen_by == "line_rate"}


def _parameters(
    declared: Declaration, given: Mapping[str, float], calibration: Calibration, scale: float
) -> dict[str, float]:
    """Every parameter: as it is given, else as the lab was calibrated, else as it is declared."""
    calibrated = calibration.transports.get(declared.name, {})
    values = {}
    for each in declared.parameters:
        if each.name in calibrated and each.name not in given:
            values[each.name] = calibrated[each.name]
        else:
            values[each.name] = _in_lab(each, given.get(each.name, each.value), calibration.timer_scale, scale)
    return values


def _in_lab(parameter: Parameter, value: float, timer_scale: float, scale: float) -> float:
    """A value in the papers' units -> what stands for it in the lab."""
    if parameter.unit == "us":
        return value * timer_scale
    return value / scale if parameter.unit in ("bytes", "bytes/s") else value
