# SPDX-License-Identifier: Apache-2.0
"""The transports that the engine has the C code of, and their parameters as it takes them."""

from collections.abc import Mapping

from roundabout.models.packets import tcp
from roundabout.models.packets.network import UnsupportedError
from roundabout.models.packets.structures import NS_PER_US, PS_PER_US, Structure, make_structure
from roundabout.spec.transports import Parameter, Transport, find_violation

WINDOWED = ("swift", "nscc", "mltcp_swift")
"""Transports of RDMA with a window and the delay of each packet."""
TRANSPORTS = ("dcqcn", "mltcp_dcqcn", *WINDOWED, *tcp.NAMES)
ONE_Q24 = 1 << 24
BYTES_PER_S_OF_MBPS = 125_000

Values = Mapping[str, float | str]


def transport_values(transport: Transport, rate_gbps: float) -> Values:
    """Return the parameters of a transport on a host whose link carries `rate_gbps` of payload.

    Values that an experiment does not give are those of its set, else those that the header declares. A NIC's line rate
    is the payload rate of its port, because payload is paced.

    Raises:
        UnsupportedError: the engine has no such transport, a value is out of range, or it breaks a rule.
    """
    if transport.name not in TRANSPORTS or transport.file:
        raise UnsupportedError(
            f"transport: found {transport.name!r}, which has no form for hosts, allowed is {', '.join(TRANSPORTS)}",
            "play this transport with --testbed lab",
        )
    declared = transport.declaration
    if declared is None:
        return {}
    values: dict[str, float | str] = {}
    for each in declared.parameters:
        default = rate_gbps * 1000 if each.chosen_by == "line_rate" else transport.fallback(each)
        values[each.name] = _host_value(each, transport.requested.get(each.name, default))
    for rule in declared.rules:
        if broken := find_violation(rule, values):
            raise UnsupportedError(
                f"transport.{rule.left}: found {broken[0]}, expected {broken[1]}", "choose another value"
            )
    return values


def _host_value(parameter: Parameter, requested: float | str) -> float | str:
    if isinstance(requested, str):
        return requested
    try:
        return parameter.host_value(requested)
    except ValueError as error:
        where = f"transport.{parameter.name}: found {requested:g}, allowed is {error}"
        raise UnsupportedError(where, "choose another value, or a faster link") from None


CNP_SCOPES = ("qp", "host", "port")
RETRANSMISSIONS = ("go_back_n", "selective_repeat")
"""By their numbers in native/c_api.h."""


def reaction_plan(values: Values) -> Structure:
    """Return DCQCN's parameters of a queue pair, and those of its NIC."""
    return make_structure(
        "reaction_plan",
        T_ps=round(float(values["T_us"]) * PS_PER_US),
        alpha_timer_ps=round(float(values["alpha_timer_us"]) * PS_PER_US),
        cnp_gap_ps=round(float(values["cnp_gap_us"]) * PS_PER_US),
        byte_counter_bytes=int(values["byte_counter_bytes"]),
        F=int(values["F"]),
        g_q24=round(float(values["g"]) * ONE_Q24),
        cnp_scope=CNP_SCOPES.index(str(values["cnp_scope"])),
        retransmission=RETRANSMISSIONS.index(str(values["retransmission"])),
        alpha_initial_q24=round(float(values["alpha_initial"]) * ONE_Q24),
        **{
            name: int(values[name])
            for name in ("clamp_target", "clamp_target_after_timer", "hyper_by_stage", "alpha_by_timer")
        },
        **{
            name: round(float(values[f"{name}_mbps"]) * BYTES_PER_S_OF_MBPS)
            for name in ("R_AI", "R_HAI", "R_min", "R_max", "rate_on_first_cnp")
        },
    )


WINDOW_ALGORITHMS = ("swift", "nscc")
"""By their numbers in native/c_api.h."""
SWIFT_TIMES, SWIFT_COUNTS = ("base_target", "hop", "fs_range"), ("max_cwnd", "initial_cwnd", "retx_reset")
SWIFT_FRACTIONS = ("fs_min_cwnd", "fs_max_cwnd", "ai", "beta", "max_mdf", "min_cwnd")


def window_plan(values: Values, transport: Transport) -> Structure:
    """Return the parameters of a flow with a window: Swift's or NSCC's."""
    algorithm = transport.name.removeprefix("mltcp_")
    plans = {"swift": _swift_plan, "nscc": _nscc_plan}
    return make_structure(
        "window_plan",
        algorithm=WINDOW_ALGORITHMS.index(algorithm),
        reordering=int(values["reordering"]),
        rto_min_ps=round(float(values["rto_min_us"]) * PS_PER_US),
        **{algorithm: plans[algorithm](values)},
    )


def _swift_plan(values: Values) -> dict[str, int]:
    return {
        **{f"{name}_ns": round(float(values[f"{name}_us"]) * NS_PER_US) for name in SWIFT_TIMES},
        **{f"{name}_q24": round(float(values[name]) * ONE_Q24) for name in SWIFT_FRACTIONS},
        **{name: int(values[name]) for name in SWIFT_COUNTS},
    }


def _nscc_plan(values: Values) -> dict[str, int]:
    return {
        "line": round(float(values["line_mbps"]) * BYTES_PER_S_OF_MBPS),
        "gamma_q24": round(float(values["gamma"]) * ONE_Q24),
        **{f"{name}_ns": round(float(values[f"{name}_us"]) * NS_PER_US) for name in ("network_rtt", "target")},
        **{name: int(values[name]) for name in ("qa_gate", "initial_cwnd")},
    }


def mltcp_plan(values: Values, transport: Transport) -> Structure:
    """Return MLTCP's parameters of a job. A choice is a place among its names."""
    assert transport.declaration
    names = {each.name: each.names for each in transport.declaration.parameters}
    return make_structure(
        "mltcp_plan",
        iteration_bytes=int(values["iteration_bytes"]),
        gap_us=round(float(values["gap_us"])),
        **{f"{name}_q24": round(float(values[name]) * ONE_Q24) for name in ("slope", "intercept", "learn")},
        **{name: names[name].index(str(values[name])) for name in ("shape", "acts_on")},
    )
