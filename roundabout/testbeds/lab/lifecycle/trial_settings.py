# SPDX-License-Identifier: Apache-2.0
"""Settings of lab hosts and switches for a trial, converted from the papers' units to the lab's."""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from roundabout.runner.hosts.tcp import RTO_MIN_MS, wmem
from roundabout.spec.transports import Parameter, Transport, find_violation
from roundabout.spec.transports.declarations import FACTS
from roundabout.spec.transports.queues import step_bytes
from roundabout.spec.trial_spec import TrialSpec
from roundabout.testbeds.lab.calibration.calibration import CERTAIN, NEVER_MARK, Calibration, Ecn
from roundabout.testbeds.lab.errors import LabError
from roundabout.testbeds.lab.network.feedback import held_us
from roundabout.testbeds.lab.network.layout import interface, route_target
from roundabout.testbeds.lab.network.port_queues import mtu_bytes

SYSCTLS = {
    "net.ipv4.tcp_no_metrics_save": 1,  # a trial must not depend on the one before
    "net.ipv4.tcp_rmem": "4096 16777216 33554432",  # the receiver's window must not be the limit before it has grown
}
# Settings of TCP with lossless queues. It is a guess that TCP on Salamy's servers reacts to marks and loses no packets.
# Effect of marks: BERT beside 11 and 18 Gbit/s of web-search traffic takes 1.44 and 3.4 s (Salamy's fit: 1.40 and 3.1).
# Beside TCP without marks, which fills queues, it takes 2.4 and 6.0 s. Without losses, tail loss probes are useless.
TCP = {"net.ipv4.tcp_ecn": 1, "net.ipv4.tcp_early_retrans": 0}
# Settings of TCP with drop-tail queues. Tail loss probes avoid a timeout for a lost tail. Timeouts still occur, because
# windows are short if packets are not scaled. Linux's minimum of 200 ms would separate jobs by chance. The minimum of
# 10 ms is a guess: DCTCP's evaluation (SIGCOMM'10) is said to use it, but no source of ours prints it. Its effect is
# measured in docs/results/mltcp-packets.md: jobs with a common start stay together.
DROP_TAIL = {"net.ipv4.tcp_ecn": 0, "net.ipv4.tcp_early_retrans": 3}
DROP_TAIL_RTO_MIN_MS = 10
# Settings of transports that stand for a NIC's transport. Its rate does not restart after a computing phase.
NIC_SYSCTLS = {
    "net.ipv4.tcp_ecn": 1,  # it lives on marks
    "net.ipv4.tcp_wmem": "4096 4194304 33554432",
    "net.ipv4.tcp_slow_start_after_idle": 0,
}
MEND = "choose another value, --scale or --dilation"
# Linux's delay of compressed SACKs, which is multiplied by the dilation.
COMP_SACK_DELAY_NS = 1_000_000


def settings_document(trial: TrialSpec, host: str, calibration: Calibration, dilation: float) -> dict[str, Any]:
    """Return the input of `settings.py apply` on `host`, in the lab's units. Empty for a host without a part."""
    transport = trial.transport_of(host)
    if transport is None:
        return {}
    bytes_scale = calibration.scale / dilation
    nics = range(len(trial.topology.links_of(host)))
    requested: dict[str, Any] = {
        "sysctl": {
            **SYSCTLS,
            **(DROP_TAIL if trial.queue == "drop-tail" else TCP),
            **trial.tcp.sysctls,
            **(NIC_SYSCTLS if transport.stands_for == "RDMA" else _tcp_sysctls(trial, bytes_scale)),
            "net.ipv4.tcp_congestion_control": transport.kernel_name,
        },
        "link": {interface(nic): {"gso_max_size": calibration.gso_max_bytes} for nic in nics},
    }
    route = trial.tcp.route
    rto_min_ms = DROP_TAIL_RTO_MIN_MS if trial.queue == "drop-tail" else RTO_MIN_MS
    if rto_min_ms * dilation != RTO_MIN_MS:
        route["rto_min_ms"] = round(rto_min_ms * dilation)
    if dilation != 1:
        requested["sysctl"]["net.ipv4.tcp_comp_sack_delay_ns"] = round(COMP_SACK_DELAY_NS * dilation)
    if route:
        requested["route"] = {route_target(nic): route for nic in nics}
    if transport.declaration:
        carried = trial.topology.links_of(host)[0].payload_rate_gbps
        values = _parameters(transport, carried * 1000, calibration, bytes_scale)
        held = {each.name for each in transport.declaration.parameters if each.chosen_by == "network"}
        requested["transport"] = {transport.name: {**values, **dict.fromkeys(held, held_us(trial, host, dilation))}}
    return requested


def refuse_times_of_jobs(trial: TrialSpec) -> None:
    """Raise LabError if a transport cannot have another dilation than jobs.

    TCP depends on windows of bytes. MLTCP over a NIC's transport learns the bytes and silences of its job, or is given
    them: what is given would need the dilation of jobs.
    """
    for transport in trial.transports.values():
        declared = transport.declaration
        if declared is None or transport.stands_for != "RDMA":
            raise LabError(
                f"transport_dilation: found transport {transport.name}, expected one of NICs, such as dcqcn: others "
                "depend on bytes and times of jobs",
                "leave transport_dilation out",
            )
        learned = {rule.left for rule in declared.rules if rule.either}
        for name in sorted(learned & {name for name, value in transport.requested.items() if value}):
            raise LabError(
                f"transport_dilation: found {transport.name}.{name}, which is of a job, expected a transport that "
                "learns it",
                f"leave {name} or transport_dilation out",
            )


def ecn_thresholds(trial: TrialSpec, calibration: Calibration, bytes_scale: float) -> Ecn:
    """Return the marking thresholds of the lab's switches for the trial.

    They are those of the transports' `ecn` or set, else the calibration's. For a step queue they follow from the
    bottleneck's rate; a drop-tail queue never marks. Raises LabError if transports request different thresholds.
    """
    if trial.queue == "drop-tail":
        return NEVER_MARK
    in_use = [each for host in trial.topology.hosts if (each := trial.transport_of(host))]
    requested = {each.thresholds for each in in_use if each.thresholds and not _calibrated_values(each, calibration)}
    if len(requested) > 1:
        found = "; ".join(sorted(map(str, requested)))
        raise LabError(f"found different thresholds: {found}, expected the same for all transports of a trial")
    if not requested and trial.queue == "step":
        step = step_bytes(trial.topology.bottleneck.line_rate_gbps, mtu_bytes(trial.topology, bytes_scale), bytes_scale)
        return Ecn(kmin_bytes=step, kmax_bytes=step, pmax=1)
    if not requested:
        return calibration.ecn
    (ecn,) = requested
    kmin, kmax = (round(size / bytes_scale) for size in (ecn.Kmin_bytes, ecn.Kmax_bytes))
    try:
        return Ecn(kmin_bytes=kmin, kmax_bytes=kmax, pmax=ecn.Pmax)
    except ValidationError:  # sizes are at most 1e9 bytes
        raise LabError(
            f"ecn.Pmax: found {ecn.Pmax:g}, expected 0, or {1 / CERTAIN:.3g} to 1 as ports hold it"
        ) from None


def packets_per_segment(trial: TrialSpec, calibration: Calibration, bytes_scale: float) -> int:
    """Return how many packets of the real link a segment stands for where each may be marked and make a CNP.

    It is 0 if any flow is TCP's, which counts marks. It is 0 for a transport with constants of the lab, too: their
    thresholds are of whole bursts.
    """
    using = [each for host in trial.topology.hosts if (each := trial.transport_of(host))]
    if not using or any(each.stands_for != "RDMA" or _calibrated_values(each, calibration) for each in using):
        return 0
    return max(1, round(mtu_bytes(trial.topology, bytes_scale) * bytes_scale / trial.topology.mtu_bytes))


def replaced_sets(calibration: Calibration) -> tuple[str, ...]:
    """Return a line for each published set of parameters that the calibration replaces."""
    return tuple(
        f"published sets of {name}'s parameters: in their place stand the lab's own {', '.join(values)}, and its own "
        "thresholds of marking"
        for name, values in calibration.transports.items()
        if values
    )


def _tcp_sysctls(trial: TrialSpec, bytes_scale: float) -> dict[str, Any]:
    """Return Linux's own values, with bytes in flight scaled, unless ports' queues are to be the limit."""
    most = wmem(bytes_scale) if trial.queue == "thresholds" else NIC_SYSCTLS["net.ipv4.tcp_wmem"]
    return {"net.ipv4.tcp_wmem": most, "net.ipv4.tcp_slow_start_after_idle": 1}


def _parameters(
    transport: Transport, carried_mbps: float, calibration: Calibration, bytes_scale: float
) -> dict[str, float | str]:
    """Return all parameters but the network's: the given value, else the calibrated, else the set's or declared one.

    The line rate of a NIC is here the payload rate of its port, because payload is paced: a flow that sent more would
    queue at its own port, and be marked there without any other flow.
    """
    assert transport.declaration
    calibrated = _calibrated_values(transport, calibration)
    # A time that is held against how long jobs compute is one of theirs, and goes as theirs do; others are timers.
    of_jobs = {rule.left for rule in transport.declaration.rules if rule.right in FACTS}
    values: dict[str, float | str] = {}
    for each in transport.declaration.parameters:
        if each.chosen_by in ("nic", "network"):  # no program has it, or the caller sets it
            continue
        default = carried_mbps if each.chosen_by == "line_rate" else transport.fallback(each)
        requested = transport.requested.get(each.name, default)
        if each.name in calibrated and each.name not in transport.parameters:
            requested = calibrated[each.name]
            in_lab: float | str = requested
        else:
            times = calibration.scale / bytes_scale if each.name in of_jobs else calibration.timer_scale
            in_lab = _in_lab(each, requested, calibration.scale, bytes_scale, times)
        try:
            values[each.name] = in_lab if isinstance(in_lab, str) else each.host_value(in_lab)
        except ValueError as error:
            where = f"{transport.name}.{each.name}: {requested:g} is {in_lab:.6g} in this lab"
            raise LabError(f"{where}; allowed is {error}", MEND) from None
    _check_rules(transport, values)
    return values


def _check_rules(transport: Transport, values: Mapping[str, float | str]) -> None:
    """Check the transport's rules: a lab's own values stand beside an experiment's. Raises LabError."""
    assert transport.declaration
    for rule in transport.declaration.rules:
        if broken := find_violation(rule, values):
            found, expected = broken
            raise LabError(f"{transport.name}.{rule.left}: found {found} in this lab, expected {expected}", MEND)


def _calibrated_values(transport: Transport, calibration: Calibration) -> dict[str, float]:
    """Return the lab's own constants of a transport, or of the one that it varies."""
    if (declared := transport.declaration) is None:
        return {}
    of_each = ((each.name, calibration.transports.get(declared.origin(each), {})) for each in declared.parameters)
    return {name: values[name] for name, values in of_each if name in values}


def _in_lab(parameter: Parameter, value: float | str, scale: float, bytes_scale: float, times: float) -> float | str:
    """Convert a value in the papers' units to the lab's."""
    if isinstance(value, str):
        return value
    if parameter.unit == "us":
        return value * times
    return value / {"bytes": bytes_scale, "bytes/s": scale}.get(parameter.unit, 1)
