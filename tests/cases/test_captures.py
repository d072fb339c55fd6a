# SPDX-License-Identifier: Apache-2.0
"""Captures of encapsulated, paused and reused traffic: the decoder decodes or names all of it."""

import random
import shutil
import struct
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from roundabout.cli.main import main
from roundabout.runner.tables.packets import Pauses, Totals, write_parquet
from tests.captures import tshark
from tests.captures.capture_frames import Frame, pcap, random_frame

pytestmark = pytest.mark.unit

CASES = Path(__file__).parent
IN_A_FOLDER = settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
Packet = dict[str, Any]


def decoded(capture: Path, folder: Path) -> tuple[Totals, list[Packet]]:
    totals = write_parquet([capture], folder / "packets.parquet")
    return totals, pq.read_table(folder / "packets.parquet").to_pylist()


def decoded_frames(frames: list[bytes], folder: Path) -> tuple[Totals, list[Packet]]:
    (folder / "frames.pcap").write_bytes(pcap([Frame(frame, len(frame), 0) for frame in frames]))
    return decoded(folder / "frames.pcap", folder)


ROCE = {"destination_port": 4791, "bth_opcode": 1, "destination_qp": 17, "payload_bytes": 1024, "cnp": False}
ADDRESSES = {"source": "10.0.0.1", "destination": "10.0.0.2"}
# Capture -> packets, flows, and columns of the last packet. tshark shows the same values.
LAST_PACKETS = {
    "pcap-gzipped/a.pcap.gz": (1, 1, ADDRESSES | {"destination_port": 4791}),
    "pcap-linux-cooked/any.pcap": (1, 1, ADDRESSES | {"destination_port": 4791, "destination_qp": 17}),
    "pcap-raw-ip/raw.pcap": (1, 1, ADDRESSES | {"destination_port": 4791, "destination_qp": 17}),
    "pcapng-packet-block/a.pcapng": (3, 1, ADDRESSES | {"destination_port": 4791, "destination_qp": 17}),
    "pcap-ipv6-roce-jumbo/a.pcap": (
        3,
        1,
        ROCE | {"payload_bytes": 8192, "psn": 2, "source": "2001:db8::1", "dscp": 26, "ecn": 2},
    ),
    "pcap-vlan-priority/a.pcap": (20, 1, ROCE | ADDRESSES | {"vlan_id": 100, "vlan_pcp": 3, "dscp": 0, "psn": 19}),
    "pcap-vxlan-roce/a.pcap": (
        20,
        1,
        ROCE | ADDRESSES | {"vxlan_vni": 100, "dscp": 26, "ecn": 2, "outer_dscp": 0, "outer_ecn": 0, "psn": 19},
    ),
    "pcap-rocev1/a.pcap": (
        20,
        1,
        ROCE | {"destination_port": None, "ip_version": None, "source": "fe80::1", "destination": "fe80::2", "psn": 19},
    ),
    "pcap-pfc-pauses/a.pcap": (40, 1, ROCE | ADDRESSES | {"pause_quanta": None, "psn": 19}),
    "pcap-tuple-reused/a.pcap": (26, 4, ADDRESSES | {"flow": 2, "tcp_seq": 4_000_010_001}),
}


@pytest.mark.parametrize("name", LAST_PACKETS)
def test_a_capture_is_decoded_to_its_end(name: str, tmp_path: Path) -> None:
    packets, flows, last = LAST_PACKETS[name]
    totals, rows = decoded(CASES / name, tmp_path)
    assert (totals.packets, totals.flows, totals.undecoded_protocols) == (packets, flows, {})
    assert {column: rows[-1][column] for column in last} == last


def ethernet(ethertype: int, content: bytes) -> bytes:
    return bytes(12) + struct.pack("!H", ethertype) + content


def ipv4(protocol: int, content: bytes, traffic_class: int = 0, fragment: int = 0) -> bytes:
    head = struct.pack("!BBHHHBBH", 0x45, traffic_class, 20 + len(content), 0, fragment, 64, protocol, 0)
    return head + bytes([10, 0, 0, 1, 10, 0, 0, 2]) + content


def udp(port: int, content: bytes) -> bytes:
    return struct.pack("!HHHH", 50000, port, 8 + len(content), 0) + content


def in_vxlan(frame: bytes, vni: int, port: int = 4789) -> bytes:
    header = struct.pack("!II", 0x08 << 24, vni << 8)
    return ethernet(0x0800, ipv4(17, udp(port, header + frame), traffic_class=26 << 2 | 3))


@IN_A_FOLDER
@given(seed=st.integers(0, 2**32), vni=st.integers(0, 2**24 - 1), port=st.sampled_from([4789, 8472]))
def test_a_frame_in_vxlan_is_decoded_as_outside(seed: int, vni: int, port: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    frames = [random_frame(rng, 0).captured for _ in range(100)]
    totals, plain = decoded_frames(frames, tmp_path)
    totals_inside, inside = decoded_frames([in_vxlan(frame, vni, port) for frame in frames], tmp_path)
    assert totals_inside == totals
    outside = {"vxlan_vni": vni, "outer_dscp": 26, "outer_ecn": 3}
    assert inside == [packet | outside | {"frame_bytes": packet["frame_bytes"] + 50} for packet in plain]


def test_equal_addresses_in_two_vxlan_networks_are_two_flows(tmp_path: Path) -> None:
    frame = ethernet(0x0800, ipv4(17, udp(5000, b"data")))
    totals, packets = decoded_frames([frame, in_vxlan(frame, 0), in_vxlan(frame, 1), in_vxlan(frame, 0)], tmp_path)
    assert totals.flows == 3
    assert [packet["flow"] for packet in packets] == [0, 1, 2, 1]


GRE = struct.pack("!HH", 0x1000, 0x88BE) + bytes(12)
UNDECODED = {
    "ERSPAN (GRE type 0x88be)": ethernet(0x0800, ipv4(47, GRE + bytes(60))),
    "IPv4 in GRE (GRE type 0x800)": ethernet(0x0800, ipv4(47, struct.pack("!HH", 0, 0x0800) + ipv4(6, bytes(20)))),
    "GRE type 0x1234": ethernet(0x0800, ipv4(47, struct.pack("!HH", 0, 0x1234))),
    "IPv4 in IP (IP protocol 4)": ethernet(0x0800, ipv4(4, ipv4(6, bytes(20)))),
    "IP protocol 253": ethernet(0x0800, ipv4(253, bytes(20))),
    "ICMP (IP protocol 1)": ethernet(0x0800, ipv4(1, bytes(8))),
    "Geneve (UDP port 6081)": ethernet(0x0800, ipv4(17, udp(6081, bytes(60)))),
    "VXLAN in VXLAN, or without a network identifier (UDP port 4789)": in_vxlan(in_vxlan(bytes(60), 1), 2),
    "MPLS (EtherType 0x8847)": ethernet(0x8847, bytes(60)),
    "ARP (EtherType 0x806)": ethernet(0x0806, bytes(28)),
    "EtherType 0x9999": ethernet(0x9999, bytes(28)),
    "IEEE 802.3 with LLC": ethernet(38, bytes(38)),
    "IP fragments after the first": ethernet(0x0800, ipv4(17, bytes(60), fragment=185)),
    "RoCE opcode 0xe0": ethernet(0x0800, ipv4(17, udp(4791, b"\xe0" + bytes(60)))),
}


@pytest.mark.parametrize("name", UNDECODED)
def test_a_protocol_that_is_not_decoded_is_counted_by_name(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    totals, packets = decoded_frames([UNDECODED[name]] * 3, tmp_path)
    assert totals.undecoded_protocols == {name: 3}
    assert {packet["undecoded"] for packet in packets} < {"not IP", "protocol", "fragment"}
    assert main(["decode", str(tmp_path / "frames.pcap")]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == [f"  3 not decoded: {name}"]


def test_the_number_of_named_protocols_is_limited(tmp_path: Path) -> None:
    totals, _ = decoded_frames([ethernet(0x9000 + number, bytes(46)) for number in range(70)], tmp_path)
    assert len(totals.undecoded_protocols) == 65
    assert totals.undecoded_protocols["other protocols"] == 6


def pause(priorities: int, quanta: list[int]) -> bytes:
    return ethernet(0x8808, struct.pack("!HH8H", 0x0101, priorities, *quanta) + bytes(26))


def test_pauses_are_counted_by_priority_and_quanta(tmp_path: Path) -> None:
    totals, packets = decoded(CASES / "pcap-pfc-pauses/a.pcap", tmp_path)
    assert totals.pauses == (Pauses(priority=3, frames=20, resumes=0, quanta=20 * 65535),)
    pauses = [packet for packet in packets if packet["pause_quanta"] is not None]
    assert {(each["paused_priorities"], each["pause_quanta"]) for each in pauses} == {(1 << 3, 65535)}


@IN_A_FOLDER
@given(st.lists(st.tuples(st.integers(0, 255), st.lists(st.integers(0, 65535), min_size=8, max_size=8)), max_size=20))
def test_each_priority_of_a_pause_is_counted(tmp_path: Path, frames: list[tuple[int, list[int]]]) -> None:
    totals, packets = decoded_frames([pause(*frame) for frame in frames], tmp_path)
    times = {
        priority: [quanta[priority] for priorities, quanta in frames if priorities >> priority & 1]
        for priority in range(8)
    }
    assert totals.pauses == tuple(
        Pauses(priority, len(each), each.count(0), sum(each)) for priority, each in times.items() if each
    )
    assert [packet["paused_priorities"] for packet in packets] == [priorities for priorities, _ in frames]


def test_a_pause_of_the_link_has_no_priorities(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    frames = [ethernet(0x8808, struct.pack("!HH", 1, quanta) + bytes(42)) for quanta in (700, 0)]
    totals, packets = decoded_frames(frames, tmp_path)
    assert totals.pauses == (Pauses(priority=None, frames=2, resumes=1, quanta=700),)
    assert [(each["paused_priorities"], each["pause_quanta"]) for each in packets] == [(None, 700), (None, 0)]
    main(["decode", str(tmp_path / "frames.pcap")])
    assert "  2 pause frames of the link: 700 quanta in all, 1 resume" in capsys.readouterr().out


@pytest.mark.parametrize("kept", [0, 1, 3, 5, 19])
def test_a_pause_that_was_captured_in_part_is_truncated(kept: int, tmp_path: Path) -> None:
    frame = pause(8, [1] * 8)
    (tmp_path / "cut.pcap").write_bytes(pcap([Frame(frame[: 14 + kept], len(frame), 0)]))
    totals, _ = decoded(tmp_path / "cut.pcap", tmp_path)
    assert (totals.truncated, totals.pauses) == (1, ())


class Segment(NamedTuple):
    """A TCP segment between a client and its server."""

    flags: str
    seq: int
    from_server: bool = False
    client_port: int = 40000


def as_frame(segment: Segment) -> bytes:
    ports = (segment.client_port, 5000)
    ends = (bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2]))
    if segment.from_server:
        ports, ends = ports[::-1], ends[::-1]
    flags = sum({"S": 2, "A": 16, "F": 1, "R": 4}[flag] for flag in segment.flags)
    tcp = struct.pack("!HHIIHHHH", *ports, segment.seq, 0, 5 << 12 | flags, 512, 0, 0)
    head = struct.pack("!BBHHHBBH", 0x45, 0, 40, 0, 0, 64, 6, 0)
    return ethernet(0x0800, head + b"".join(ends) + tcp)


REUSES = {
    "a SYN that is sent again": ([Segment("S", 9), Segment("S", 9), Segment("A", 10)], [0, 0, 0]),
    "a capture that begins within a connection": ([Segment("A", 500), Segment("S", 9), Segment("A", 10)], [0, 1, 1]),
    "a SYN captured after its connection's data": ([Segment("A", 10), Segment("S", 9), Segment("A", 10)], [0, 0, 0]),
    "answers alone": (
        [Segment("SA", 7, from_server=True), Segment("SA", 7, from_server=True), Segment("SA", 99, from_server=True)],
        [0, 0, 1],
    ),
    "a connection that is refused": (
        [
            *(Segment("S", 9), Segment("RA", 0, from_server=True)),
            *(Segment("S", 20), Segment("RA", 0, from_server=True)),
        ],
        [0, 1, 2, 3],
    ),
    "both ends open": ([Segment("S", 9), Segment("S", 70, from_server=True), Segment("A", 10)], [0, 1, 0]),
    "sequence numbers that wrap": ([Segment("A", 0), Segment("S", 2**32 - 1), Segment("A", 1)], [0, 0, 0]),
}


@pytest.mark.parametrize("name", REUSES)
def test_a_syn_with_another_initial_number_begins_flows(name: str, tmp_path: Path) -> None:
    segments, flows = REUSES[name]
    _, packets = decoded_frames([as_frame(segment) for segment in segments], tmp_path)
    assert [packet["flow"] for packet in packets] == flows


def connection(rng: random.Random) -> list[Segment]:
    """Return the segments of a connection from one of three ports."""
    port, client, server = 40000 + rng.randrange(3), rng.getrandbits(32), rng.getrandbits(32)
    syns = [Segment("S", client, client_port=port)] * rng.choice((1, 1, 2))
    answers = [Segment("SA", server, from_server=True, client_port=port)] * rng.choice((1, 1, 2))
    data = [
        Segment("A", (client + 1 + sent) % 2**32, client_port=port) for sent in range(0, rng.randrange(9) * 1448, 1448)
    ]
    return [*syns, *answers, *data, Segment("FA", (server + 1) % 2**32, from_server=True, client_port=port)]


@pytest.mark.skipif(shutil.which("tshark") is None, reason="needs tshark")
def test_flows_of_reused_ports_are_tsharks_streams(tmp_path: Path) -> None:
    rng = random.Random(5)
    segments = [segment for _ in range(300) for segment in connection(rng)]
    totals, packets = decoded_frames([as_frame(segment) for segment in segments], tmp_path)
    streams = [int(each["tcp.stream"]) for each in tshark.packets(tmp_path / "frames.pcap")]
    assert totals.flows == 2 * (max(streams) + 1) == 600
    ours = [packet["flow"] for packet in packets if packet["source"] == "10.0.0.1"]
    theirs = [stream for stream, packet in zip(streams, packets, strict=True) if packet["source"] == "10.0.0.1"]
    assert [a == b for a, b in pairwise(ours)] == [a == b for a, b in pairwise(theirs)]
