# SPDX-License-Identifier: Apache-2.0
"""Refusals of trials that the packet-level model cannot play, each by one error before a run begins, and warnings."""

from collections.abc import Iterator

from roundabout.models.packets import Fabric, UnsupportedError
from roundabout.models.packets.hardware_defaults import payload_bytes, roce_payload_share
from roundabout.models.packets.network import ecn_thresholds, number_ports
from roundabout.models.packets.switches import plan_buffers
from roundabout.models.packets.tcp import NAMES as TCP_NAMES
from roundabout.models.packets.transports import WINDOWED, Values, transport_values
from roundabout.spec.cross_traffic import CrossTraffic
from roundabout.spec.transports import Transport
from roundabout.spec.trial_spec import TrialSpec

ELSEWHERE = "run it with --testbed lab, or with --testbed fluid"


def check_support(trial: TrialSpec, fabric: Fabric) -> None:
    """Raise UnsupportedError, which names the field, what is allowed and what to do, if the trial cannot be played."""
    if trial.cluster and not trial.cluster.slice:
        found = "cluster: found a whole trace, allowed is a slice of it: traces last for hours"
        raise UnsupportedError(found, "add --set 'cluster.slice={from_s: 600, lasts_s: 20}', or " + ELSEWHERE)
    if trial.cluster:
        _check_transport("cluster", trial.cluster.transport, trial)
    for name, traffic in trial.cross_traffic.items():
        if traffic.load_gbps > 0:
            _check_cross_traffic(f"cross_traffic.{name}", traffic, trial)
    if trial.capture:
        raise UnsupportedError("capture: found hosts to capture at, allowed is none", "run it with --testbed lab")
    for name, job in trial.jobs.items():
        _check_transport(f"jobs.{name}", job.transport, trial)
    ecn_thresholds(trial, fabric)
    plan_buffers(trial, number_ports(trial.topology))


def find_unreached_rates(trial: TrialSpec) -> Iterator[str]:
    """Yield a warning for each payload rate that the headers of RoCE packets do not leave."""
    mtu_bytes = trial.topology.mtu_bytes
    if all(user.transport.stands_for == "TCP" for user in trial.users):
        return
    for line_gbps, payload_gbps in sorted(
        {(each.line_rate_gbps, each.payload_rate_gbps) for each in trial.topology.links}
    ):
        most_gbps = line_gbps * roce_payload_share(mtu_bytes)
        if payload_gbps > most_gbps:
            yield (
                f"topology.payload_rate_gbps: found {payload_gbps:g}, but RoCE packets of {payload_bytes(mtu_bytes)} "
                f"bytes, the most at an MTU of {mtu_bytes}, carry {most_gbps:.2f} of {line_gbps:g} Gbit/s, and no more "
                f"here; expected at most {most_gbps:.2f}, or an MTU for larger packets"
            )


def _check_cross_traffic(where: str, traffic: CrossTraffic, trial: TrialSpec) -> None:
    if traffic.traffic_class == "own":
        found = f"{where}.traffic_class: found own, expected jobs: ports have no class for it here"
        raise UnsupportedError(found, "choose jobs, or run it with --testbed rack")
    if traffic.transport.name.startswith("mltcp"):
        found = f"{where}.transport: found {traffic.transport.name!r}, allowed is a transport without MLTCP"
        raise UnsupportedError(f"{found}: cross traffic has no iterations here", "play it with --testbed lab")
    _check_transport(where, traffic.transport, trial)


def _check_transport(where: str, transport: Transport, trial: TrialSpec) -> None:
    try:
        values = transport_values(transport, trial.topology.payload_rate_gbps)
    except UnsupportedError as error:
        raise UnsupportedError(f"{where}.{error.message}", error.hint) from None
    if trial.topology.trimming:
        _check_windows(where, transport, "trimming", "their senders take a NACK of a trimmed packet", "trimming=false")
    if trial.topology.spreads_packets and trial.topology.routing:
        _check_reordering(where, transport, values, trial.topology.routing.name)
        if trial.topology.routing.learns_paths:
            routing = f"routing {trial.topology.routing.name}"
            why = "senders learn of paths by an ACK of each packet with its mark"
            _check_windows(where, transport, routing, why, "routing.name=spray")


def _check_reordering(where: str, transport: Transport, values: Values, routing: str) -> None:
    """Raise UnsupportedError if the transport takes packets that others overtake for lost."""
    if transport.name in TCP_NAMES:
        raise UnsupportedError(
            f"{where}.transport: found {transport.name} with routing {routing}, allowed is RDMA (dcqcn, swift, nscc): "
            "TCP takes a segment that three others overtake for lost",
            "choose another transport, or --set routing.name=ecmp",
        )
    if values.get("reordering"):
        raise UnsupportedError(
            f"{where}.transport.reordering: found {values['reordering']} with routing {routing}, allowed is 0: packets "
            "overtake each other, and these take them for lost sooner than a window later",
            "add --set transport.reordering=0, or choose --set routing.name=ecmp",
        )
    if values.get("retransmission") == "go_back_n":
        raise UnsupportedError(
            f"{where}.transport.retransmission: found go_back_n with routing {routing}, allowed is selective_repeat: "
            "packets overtake each other, and go-back-N takes them for lost",
            "add --set transport.retransmission=selective_repeat, or choose --set routing.name=ecmp",
        )


def _check_windows(where: str, transport: Transport, feature: str, why: str, change: str) -> None:
    """Raise UnsupportedError if the transport has no window, whose receivers answer each packet."""
    if transport.name not in WINDOWED:
        raise UnsupportedError(
            f"{where}.transport: found {transport.name} with {feature}, allowed is {', '.join(WINDOWED)}: {why}",
            f"choose another transport, or --set {change}",
        )
