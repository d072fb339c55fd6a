#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Finds the routers on the routes of this host's TCP flows, as traceroute does, by packets of the flows' five-tuples.

On stdin comes a JSON list of flows, each with `source`, `source_port`, `destination`, `destination_port`, and `hops`,
the number of routers to probe. On stdout goes a JSON list: for each flow the address of the router that answered at
each hop, or null. It needs root. Exit status 1: failed, with the reason on stderr.

A packet ends at the router at which its time to live does, so none is meant for the receiver. A receiver behind fewer
routers discards it, because its TCP checksum is wrong.
"""

import json
import select
import socket
import struct
import sys
import time

ROUND_S = 1.0  # wait for answers; a router with Linux gives a host six at once, then one a second (icmp_ratelimit)
ROUNDS = 10  # most rounds in which unanswered packets are sent again
SILENT_ROUNDS = 2  # rounds without any new answer after which no further round would help
GAP_S = 0.001  # pause between packets, so that routers' small queues for such packets suffice
TIME_EXCEEDED = 11  # ICMP type (RFC 792); code 0 is the time to live
ACK = 0x10


class ProbeError(Exception):
    """An error for a failed probe, with the reason in its message."""


def main():
    """Probe the routes of the flows on stdin."""
    try:
        print(json.dumps(trace_flows(json.load(sys.stdin))))
    except (ProbeError, OSError) as error:
        sys.exit("route_probe: %s" % error)


def trace_flows(flows):
    """Return a list for each flow: the address that answered at each hop, or None. Raises ProbeError and OSError."""
    answers = {}
    silent = 0
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as icmp:
        for _ in range(ROUNDS):
            open_packets = [
                (flow, hop)
                for flow in flows
                for hop in range(1, flow["hops"] + 1)
                if (flow_key(flow), hop) not in answers
            ]
            if not open_packets or silent == SILENT_ROUNDS:
                break
            before = len(answers)
            for flow, hop in open_packets:
                send_packet(flow, hop)
                receive_answers(icmp, answers, GAP_S)
            wanted = {(flow_key(flow), hop) for flow, hop in open_packets}
            receive_answers(icmp, answers, ROUND_S, wanted)
            silent = silent + 1 if len(answers) == before else 0
    return [[answers.get((flow_key(flow), hop)) for hop in range(1, flow["hops"] + 1)] for flow in flows]


def flow_key(flow):
    """Return the addresses and ports of a flow."""
    return flow["source"], flow["source_port"], flow["destination"], flow["destination_port"]


def send_packet(flow, hop):
    """Send a packet of a flow that ends at hop number `hop`. Raises ProbeError."""
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW) as raw:
        try:
            raw.bind((flow["source"], 0))  # a host with several NICs sends by that of the source address
            raw.sendto(build_packet(flow, hop), (flow["destination"], 0))
        except OSError as error:
            ends = flow["source"], flow["destination"]
            raise ProbeError("cannot send from %s to %s: %s" % (*ends, error.strerror)) from error


def build_packet(flow, hop):
    """Return a packet of a flow with `hop` as its time to live and as its identification, which answers repeat.

    The kernel fills in the length and the checksum of the IPv4 header. That of TCP stays 0, which is wrong.
    """
    source, destination = (socket.inet_aton(flow[name]) for name in ("source", "destination"))
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 40, hop, 0, hop, socket.IPPROTO_TCP, 0, source, destination)
    return ip + struct.pack("!HHIIBBHHH", flow["source_port"], flow["destination_port"], 0, 0, 5 << 4, ACK, 0, 0, 0)


def receive_answers(icmp, answers, seconds, wanted=None):
    """Add answers to `answers`, by flow and hop, for some seconds, or until those to all `wanted` packets are there."""
    until = time.monotonic() + seconds
    while wanted is None or not wanted.issubset(answers):
        left_s = until - time.monotonic()
        if left_s <= 0 or not select.select([icmp], [], [], left_s)[0]:
            return
        packet, (router, _) = icmp.recvfrom(65535)
        answered = parse_answer(packet)
        if answered:
            answers.setdefault(answered, router)


def parse_answer(packet):
    """Return the flow and the hop that an ICMP packet with its IPv4 header answers, or None for any other packet.

    The answer repeats the IPv4 header of the packet that ended, and at least eight bytes behind it (RFC 792).
    """
    begin = (packet[0] & 15) * 4 if packet else 0
    inner = begin + 8
    if len(packet) < inner + 20 or packet[begin] != TIME_EXCEEDED or packet[begin + 1] != 0:
        return None
    ports = inner + (packet[inner] & 15) * 4
    if packet[inner] >> 4 != 4 or packet[inner + 9] != socket.IPPROTO_TCP or len(packet) < ports + 4:
        return None
    (hop,) = struct.unpack_from("!H", packet, inner + 4)
    source, destination = (socket.inet_ntoa(packet[inner + at : inner + at + 4]) for at in (12, 16))
    source_port, destination_port = struct.unpack_from("!HH", packet, ports)
    return (source, source_port, destination, destination_port), hop


if __name__ == "__main__":
    main()
