# SPDX-License-Identifier: Apache-2.0
"""The decoder against tshark, field by field, on random captures; and what it makes of files that are none."""

import gzip
import json
import random
import re
import shutil
import socket
import struct
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, given, settings, strategies as st

from roundabout.cli.main import main
from roundabout.runner.tables.packets import DecodeError, Totals, write_parquet
from tests.captures import tshark
from tests.captures.capture_frames import (
    LINK_HEADERS,
    LOOPBACK,
    RAW,
    Frame,
    Interface,
    block,
    on_link,
    pcap,
    pcapng,
    random_frame,
    section,
)

pytestmark = pytest.mark.unit

START_NS = 1_700_000_000 * 10**9
NEAR_S = START_NS // 10**9 - 1000  # stamps of 10 ** -12 s count from here, else 64 bits could not hold them
Packet = dict[str, Any]

wants_tshark = pytest.mark.skipif(shutil.which("tshark") is None, reason="needs tshark")


def random_frames(seed: int, count: int) -> list[Frame]:
    rng = random.Random(seed)
    return [random_frame(rng, START_NS + rng.randrange(10**12)) for _ in range(count)]


def decoded(folder: Path, *captures: bytes, own: tuple[str, ...] = ()) -> tuple[Totals, list[Packet]]:
    paths = [folder / f"{number}.cap" for number in range(len(captures))]
    for path, content in zip(paths, captures, strict=True):
        path.write_bytes(content)
    totals = write_parquet(paths, folder / "packets.parquet", own)
    return totals, pq.read_table(folder / "packets.parquet").to_pylist()


def contradicts(ours: Packet, theirs: Packet) -> list[str]:
    """The columns in which the two differ."""
    wrong = [
        column
        for column in (*tshark.NUMBERS, *tshark.TEXTS)
        if ours[column] != theirs[column] and not (theirs[column] is None and gave_up(column, ours, theirs))
    ]
    if (
        theirs["ip.version"] in ("4", "6")
        and not theirs["_ws.malformed"]
        and ours["ip_version"] != int(theirs["ip.version"])
    ):
        wrong.append("ip_version")
    if theirs["ip.proto"] and ours["protocol"] != int(theirs["ip.proto"]):
        wrong.append("protocol")
    if theirs["tcp.len"] and ours["tcp_flags"] is not None and ours["payload_bytes"] != int(theirs["tcp.len"]):
        wrong.append("payload_bytes")
    if theirs["frame.time_epoch"] != f"{ours['time_ns'] // 10**9}.{ours['time_ns'] % 10**9:09}":
        wrong.append("time_ns")
    if fragment(theirs) != ours["fragment_offset"] and not gave_up("fragment_offset", ours, theirs):
        wrong.append("fragment_offset")
    return wrong


def gave_up(column: str, ours: Packet, theirs: Packet) -> bool:
    """Whether tshark's silence says nothing: it stops at what is malformed, where we report what came before.

    It stops at options and payload that we skip, too, and looks for IPv4's destination behind the options.
    """
    options_cut = column == "destination" and ours["undecoded"] == "truncated"
    stopped = theirs["frame.protocols"].endswith((":ipv6.hopopts", ":ipv6.dstopts", ":ipv6.routing", ":infiniband"))
    return stopped or options_cut or bool(theirs["_ws.malformed"]) or ours["undecoded"] == "malformed"


def fragment(theirs: Packet) -> int | None:
    """Where a fragment begins, in bytes; None for a whole packet."""
    if theirs["ipv6.fraghdr.offset"] is not None:
        return int(theirs["ipv6.fraghdr.offset"], 0) * 8
    offset = int(theirs["ip.frag_offset"] or "0", 0)
    return offset * 8 if offset or theirs["ip.flags.mf"] in ("1", "True") else None


def comparable(captured: bytes, theirs: Packet) -> bool:
    """Return True if tshark follows the packet's Ethernet header, and looks into nothing that is inside the packet."""
    layers = theirs["frame.protocols"].split(":")
    networks = [layer for layer in layers if layer in ("ip", "ipv6")]
    if "infiniband" in layers and "udp" not in layers:
        return False  # RoCE v1
    if len(networks) > 1 or layers.count("ipv6.fraghdr") > layers.count("ipv6") or "udplite" in layers:
        return False  # a tunnel, a fragment of a fragment, headers of IPv6 in IPv4, or what has UDP's fields but is not
    ethertypes = {"ip": b"\x08\x00", "ipv6": b"\x86\xdd"}
    at = 12
    while captured[at : at + 2] == b"\x81\x00":
        at += 4
    version = {"ip": "4", "ipv6": "6"}
    return all(
        captured[at : at + 2] == ethertypes[layer] and theirs["ip.version"] in (None, version[layer])
        for layer in networks
    )


@wants_tshark
@settings(
    max_examples=5,
    derandomize=True,  # one packet in some hundred thousand meets another oddity of tshark's
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(seed=st.integers(0, 2**32))
def test_random_packets_are_what_tshark_says(seed: int, tmp_path: Path) -> None:
    captured = random_frames(seed, 1000)
    totals, ours = decoded(tmp_path, pcap(captured))
    theirs = tshark.packets(tmp_path / "0.cap")
    assert totals.packets == len(ours) == len(theirs) == len(captured)
    compared = 0
    for frame, our, their in zip(captured, ours, theirs, strict=True):
        if comparable(frame.captured, their):
            compared += 1
            assert not (wrong := contradicts(our, their)), (wrong, our, their, frame.captured.hex(), frame.frame_bytes)
    assert compared > 0.97 * len(captured)
    flows_are_as_streams(ours, theirs)


def flows_are_as_streams(ours: list[Packet], theirs: list[Packet]) -> None:
    """Each flow belongs to one TCP stream of tshark's, each stream has at most two flows: one a direction."""
    pairs = {(our["flow"], their["tcp.stream"]) for our, their in zip(ours, theirs, strict=True) if their["tcp.stream"]}
    pairs = {(flow, stream) for flow, stream in pairs if flow is not None}
    assert len({flow for flow, _ in pairs}) == len(pairs)
    assert max(Counter(stream for _, stream in pairs).values()) <= 2


# In a process of its own: it leaves an event loop that listens to signals.
PYSHARK = """
import json, sys
import pyshark
with pyshark.FileCapture(sys.argv[1], keep_packets=False) as capture:
    for packet in capture:
        tcp = packet.tcp if "tcp" in packet else None
        fields = ("srcport", "dstport", "seq_raw", "len")
        print(json.dumps([int(packet.length), *(tcp and tcp.get_field(name) for name in fields)]))
"""


@wants_tshark
def test_a_slice_is_what_pyshark_says(tmp_path: Path) -> None:
    captured = random_frames(3, 150)
    _, ours = decoded(tmp_path, pcap(captured))
    argv = [sys.executable, "-c", PYSHARK, tmp_path / "0.cap"]
    done = subprocess.run(argv, check=True, capture_output=True, text=True)
    compared = 0
    for our, line in zip(ours, done.stdout.splitlines(), strict=True):
        length, *tcp = json.loads(line)
        assert length == our["frame_bytes"]
        columns = ("source_port", "destination_port", "tcp_seq", "payload_bytes")
        if our["undecoded"] is None:
            present = [(our[name], int(value)) for name, value in zip(columns, tcp, strict=True) if value is not None]
            compared += len(present) == len(columns)
            assert all(our_value == value for our_value, value in present), (our, tcp)
    assert compared > 20


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize(
    ("write", "step_ns"),
    [
        (pcap, 1),
        (lambda frames, order: pcap(frames, order, nanoseconds=False), 1000),
        (pcapng, 1),
        (lambda frames, order: pcapng(frames, order, resolution=6), 1000),
        (lambda frames, order: pcapng(frames, order, resolution=3), 1_000_000),
        (lambda frames, order: section([Interface(1, 12, NEAR_S)], [(0, each) for each in frames], order), 1),
    ],
    ids=["pcap ns", "pcap us", "pcapng ns", "pcapng us", "pcapng ms", "pcapng ps"],
)
def test_every_format_holds_the_same_packets(write: Any, step_ns: int, order: str, tmp_path: Path) -> None:
    captured = random_frames(11, 300)
    _, reference = decoded(tmp_path, pcap(captured))
    totals, packets = decoded(tmp_path, write(captured, order))
    assert not totals.damage
    assert packets == [{**packet, "time_ns": packet["time_ns"] // step_ns * step_ns} for packet in reference]


def test_several_files_are_one_capture(tmp_path: Path) -> None:
    captured = random_frames(12, 300)
    _, reference = decoded(tmp_path, pcap(captured))
    _, packets = decoded(tmp_path, pcap(captured[:100]), pcapng(captured[100:]))
    assert packets == reference


def obsolete(frames: list[Frame]) -> bytes:
    return section([Interface(113), Interface()], [(1, frame) for frame in frames], kind=2)


def gzipped(frames: list[Frame]) -> bytes:
    return gzip.compress(pcap(frames), 1)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(0, 2**32),
    write=st.sampled_from([pcap, pcapng, obsolete, gzipped]),
    hits=st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 255)), max_size=8),
    cut=st.integers(8, 6000),
)
def test_damaged_files_are_read_up_to_the_damage(seed: int, write: Any, hits: Any, cut: int, tmp_path: Path) -> None:
    content = bytearray(write(random_frames(seed, 20)))
    for at, value in hits:
        content[at % len(content)] = value
    with suppress(DecodeError):  # nothing is left that says what the file is
        totals, packets = decoded(tmp_path, bytes(content[:cut]))
        assert totals.packets == len(packets)


def test_a_cut_file_says_where_it_ends(tmp_path: Path) -> None:
    whole = pcap(random_frames(5, 10))
    totals, _ = decoded(tmp_path, whole[:-1])
    assert totals.packets == 9
    assert totals.damage[0].startswith(f"{tmp_path}/0.cap: the file ends within a packet at byte ")
    assert decoded(tmp_path, whole)[0].damage == ()


def test_an_invalid_packet_of_a_pcap_file_is_named(tmp_path: Path) -> None:
    frames = random_frames(5, 10)
    late = struct.pack("<IIII", 1_700_000_000, 999_999_999, 4, 4) + bytes(4)
    for more, said in (
        (bytes(100), "zeros in the place of a packet at byte "),
        (pcap(frames), "another capture begins in the middle of this one: give each as a file of its own; it ends at"),
        (late, "a packet with 999999999 us after its second, expected at most 1000000, at byte "),
    ):
        totals, packets = decoded(tmp_path, pcap(frames, nanoseconds=False) + more)
        assert (totals.packets, len(packets)) == (10, 10)
        assert totals.damage[0].startswith(f"{tmp_path}/0.cap: {said}")


def test_pcap_files_of_other_versions_are_refused(tmp_path: Path) -> None:
    for version, name in (((2, 3), "2.3"), ((543, 0), "543.0"), ((3, 4), "3.4")):
        content = bytearray(pcap(random_frames(5, 3)))
        content[4:8] = struct.pack("<HH", *version)
        with pytest.raises(DecodeError, match=rf"found pcap version {name}, expected 2\.4: convert it first: `editcap"):
            decoded(tmp_path, bytes(content))


def test_a_file_that_is_no_capture_is_refused_and_leaves_no_output(tmp_path: Path) -> None:
    with pytest.raises(DecodeError, match="found no capture, expected a pcap or pcapng file"):
        decoded(tmp_path, b"neither of the two formats")
    assert [path.name for path in tmp_path.iterdir()] == ["0.cap"]


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DecodeError, match=r"cannot read .*/none.pcap: No such file"):
        write_parquet([tmp_path / "none.pcap"], tmp_path / "packets.parquet")


def test_links_of_unknown_types_are_counted_and_named(tmp_path: Path) -> None:
    totals, packets = decoded(tmp_path, *(pcap(random_frames(1, 5), link_type=number) for number in (127, 105)))
    assert totals.undecoded_protocols == {"link type 105": 5, "link type 127": 5}
    assert {packet["undecoded"] for packet in packets} == {"link type"}


LINK_TYPES = [*LINK_HEADERS, *RAW, *LOOPBACK]
# if_tsresol and if_tsoffset; tshark 4.0 itself overflows at a resolution of 10 ** -12 s.
RESOLUTIONS = [(9, 0), (6, 3600), (3, -(10**6)), (0x80 | 20, 0), (0x80 | 30, NEAR_S)]


@pytest.mark.parametrize("link_type", LINK_TYPES)
@settings(max_examples=3, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32))
def test_a_packet_is_the_same_on_every_link(link_type: int, seed: int, tmp_path: Path) -> None:
    pairs = [(frame, on_link(link_type, frame)) for frame in random_frames(seed, 400)]
    carried = [(frame, other) for frame, other in pairs if other]
    assert len(carried) > 50
    _, reference = decoded(tmp_path, pcap([frame for frame, _ in carried]))
    totals, packets = decoded(tmp_path, pcap([other for _, other in carried], link_type=link_type))
    assert (totals.damage, totals.skipped) == ((), ())
    assert not [name for name in totals.undecoded_protocols if name.startswith("link type")]
    less = [frame.frame_bytes - other.frame_bytes for frame, other in carried]
    for packet, header in zip(packets, less, strict=True):
        packet["frame_bytes"] += header
    assert packets == reference


@wants_tshark
@pytest.mark.parametrize("link_type", LINK_TYPES)
def test_packets_of_every_link_are_what_tshark_says(link_type: int, tmp_path: Path) -> None:
    carried = [(frame, other) for frame in random_frames(31, 400) if (other := on_link(link_type, frame))]
    _, ours = decoded(tmp_path, pcap([other for _, other in carried], link_type=link_type))
    matches_tshark([frame for frame, _ in carried], ours, tmp_path / "0.cap")


def matches_tshark(frames: list[Frame], ours: list[Packet], capture: Path) -> None:
    """Compare with tshark the packets that Ethernet `frames` became in a capture."""
    compared = 0
    for frame, our, their in zip(frames, ours, tshark.packets(capture), strict=True):
        if comparable(frame.captured, their) and their["frame.protocols"] != "raw":  # raw: too few bytes for tshark
            compared += 1
            assert not (wrong := contradicts(our, their)), (wrong, our, their, frame.captured.hex())
    assert compared > 0.9 * len(frames)


def random_sections(seed: int) -> tuple[list[Frame], bytes]:
    """Return a pcapng file of one to three sections, and the Ethernet frames that its packets were made of."""
    rng = random.Random(seed)
    frames, content = list[Frame](), b""
    for _ in range(rng.randint(1, 3)):
        interfaces = [Interface(rng.choice(LINK_TYPES), *rng.choice(RESOLUTIONS)) for _ in range(rng.randint(1, 4))]
        packets = []
        for frame in random_frames(rng.randrange(2**32), 60):
            which = rng.randrange(len(interfaces))
            if other := on_link(interfaces[which].link_type, frame):
                frames.append(frame)
                packets.append((which, other))
        order, kind = rng.choice("<>"), rng.choice((6, 2))
        content += section(interfaces, packets, order, kind=kind, between=block(order, 5, bytes(12)))
    return frames, content


@wants_tshark
@settings(
    max_examples=5,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(seed=st.integers(0, 2**32))
def test_sections_of_many_interfaces_are_what_tshark_says(seed: int, tmp_path: Path) -> None:
    frames, content = random_sections(seed)
    totals, ours = decoded(tmp_path, content)
    assert (totals.packets, totals.damage) == (len(frames), ())
    matches_tshark(frames, ours, tmp_path / "0.cap")


@pytest.mark.parametrize("order", ["<", ">"])
def test_obsolete_packet_blocks_are_read(order: str, tmp_path: Path) -> None:
    captured = random_frames(7, 50)
    interfaces = [Interface(127), Interface()]
    _, reference = decoded(tmp_path, pcap(captured))
    totals, packets = decoded(tmp_path, section(interfaces, [(1, each) for each in captured], order, kind=2))
    assert (packets, totals.skipped) == (reference, ())


@pytest.mark.parametrize("order", ["<", ">"])
def test_skipped_blocks_are_counted_and_named(order: str, tmp_path: Path) -> None:
    captured = [(0, each) for each in random_frames(8, 20)]
    for kind, name in ((0x204, "0x204 (Sysdig event)"), (0x80000005, "0x80000005 (for local use)"), (77, "0x4d")):
        totals, _ = decoded(tmp_path, section([Interface()], captured, order, between=block(order, kind, b"event")))
        assert totals.packets == 20
        assert totals.skipped == (
            f"{tmp_path}/0.cap: blocks of type {name} were skipped (2 in all): "
            "packets are read from blocks of types 1, 2, 3 and 6 only",
        )


def test_blocks_without_packets_are_skipped_silently(tmp_path: Path) -> None:
    for kind in (4, 5, 9, 10, 0xBAD, 0x40000BAD):
        totals, _ = decoded(tmp_path, section([Interface()], [], between=b"") + block("<", kind, bytes(8)))
        assert (totals.damage, totals.skipped) == ((), ())


def test_a_file_of_too_many_unknown_types_is_damaged(tmp_path: Path) -> None:
    unknown = b"".join(block("<", 0x1000 + number, b"") for number in range(20))
    totals, _ = decoded(tmp_path, pcapng([]) + unknown)
    assert "blocks of more than 16 unknown types at byte " in totals.damage[0]
    assert len(totals.skipped) == 16


INTERFACE = struct.pack("<HHI", 1, 0, 0)
DAMAGED = {
    "a block that begins with a length of 16 bytes and ends with one of 20, at byte": block("<", 6, bytes(4))[:-4]
    + struct.pack("<I", 20),
    "a packet of interface 3, expected one of the 1 that the section describes, at byte": block(
        "<", 6, struct.pack("<IIIII", 3, 0, 0, 0, 0)
    ),
    "a packet of 5 bytes, expected no more than its block or 262144, at byte": block(
        "<", 2, struct.pack("<HHIIII", 0, 0, 0, 0, 5, 5)
    ),
    "a packet whose block is too short at byte": block("<", 3, b""),
    "an interface whose if_tsresol has 4 bytes, expected 1, at byte": block(
        "<", 1, INTERFACE + struct.pack("<HHI", 9, 4, 9)
    ),
    "an interface whose if_tsoffset has 4 bytes, expected 8, at byte": block(
        "<", 1, INTERFACE + struct.pack("<HHI", 14, 4, 9)
    ),
    "an interface with an option that is longer than its block at byte": block(
        "<", 1, INTERFACE + struct.pack("<HHI", 2, 40, 9)
    ),
    "a section of pcapng version 2, expected version 1, at byte": block(
        "<", 0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 2, 0, -1)
    ),
    "a section without a byte order at byte": block("<", 0x0A0D0D0A, bytes(16)),
}


@pytest.mark.parametrize("said", DAMAGED)
def test_a_damaged_block_is_named(said: str, tmp_path: Path) -> None:
    captured = random_frames(9, 3)
    totals, _ = decoded(tmp_path, pcapng(captured) + DAMAGED[said] + pcapng(captured))
    assert totals.packets == 3
    [damage] = totals.damage
    assert damage.startswith(f"{tmp_path}/0.cap: {said} ")


@pytest.mark.parametrize("write", [pcap, pcapng])
def test_gzipped_captures_are_read(write: Any, tmp_path: Path) -> None:
    captured = random_frames(13, 300)
    content = write(captured)
    _, reference = decoded(tmp_path, content)
    one, parts = (
        gzip.compress(content),
        b"".join(gzip.compress(content[at : at + 999]) for at in range(0, 300_000, 999)),
    )
    for gzipped in (one, parts, one + bytes(512), parts + gzip.compress(b"")):
        totals, packets = decoded(tmp_path, gzipped)
        assert (packets, totals.damage) == (reference, ())


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(write=st.sampled_from([pcap, pcapng]), parts=st.integers(1, 3), share=st.floats(0, 0.999))
def test_gzip_data_that_ends_early_is_read_up_to_there(write: Any, parts: int, share: float, tmp_path: Path) -> None:
    content = write(random_frames(14, 40))
    size = -(-len(content) // parts)
    gzipped = b"".join(gzip.compress(content[at : at + size]) for at in range(0, len(content), size))
    cut = gzipped[: int(share * len(gzipped))]
    said = "the file is empty" if not cut else "found no capture" if len(cut) < 2 else "its gzip data ends early"
    refused, packets = "", []
    try:
        totals, packets = decoded(tmp_path, cut)
        refused = "".join(totals.damage)
    except DecodeError as error:
        refused = str(error)
    _, reference = decoded(tmp_path, content)
    assert packets == reference[: len(packets)]
    assert said in refused or len(packets) == len(reference)


def test_damaged_gzip_data_is_read_up_to_the_damage(tmp_path: Path) -> None:
    gzipped = bytearray(gzip.compress(pcap(random_frames(15, 100))))
    gzipped[-8] ^= 1  # of the checksum
    totals, packets = decoded(tmp_path, bytes(gzipped))
    assert len(packets) == 100
    assert "its gzip data is damaged (incorrect data check) at byte" in totals.damage[0]
    assert totals.damage[0].endswith(" of the decompressed capture")


REFUSED = {
    "compressed by zstd, which is not read: decompress it first: `zstd -d`": b"\x28\xb5\x2f\xfd and more",
    "compressed by LZ4": b"\x04\x22\x4d\x18 and more",
    "compressed by xz": b"\xfd7zXZ\0 and more",
    "compressed by bzip2": b"BZh91AY&SY",
    "a zip archive": b"PK\x03\x04 and more",
    "gzip data within gzip data": gzip.compress(gzip.compress(b"twice")),
    "a capture of snoop, which is not read: convert it first: `editcap -F pcapng FILE NEW`": b"snoop\0\0\0\0\0\0\2",
    "the file is empty, expected a pcap or pcapng file": b"",
    "found no capture, expected a pcap or pcapng file": gzip.compress(b"a text"),
}


@pytest.mark.parametrize("said", REFUSED)
def test_other_capture_formats_are_refused_by_name(said: str, tmp_path: Path) -> None:
    with pytest.raises(DecodeError, match=re.escape(said)):
        decoded(tmp_path, REFUSED[said])


@pytest.mark.parametrize("name", ["a.pcap.gz", "a.pcapng", "a"])
def test_the_command_says_what_it_could_not_read(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    unknown = pcapng(random_frames(16, 2), link_type=127) + block("<", 0x204, b"") + block("<", 6, b"")
    capture = tmp_path / name
    capture.write_bytes(gzip.compress(unknown))
    assert main(["decode", str(capture)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{tmp_path}/a.parquet: 2 packets of 0 flows",
        "  2 not decoded: link type 127",
        f"warning {capture}: a packet whose block is too short at byte {len(unknown)} of the decompressed capture",
        f"warning {capture}: blocks of type 0x204 (Sysdig event) were skipped (1 in all): "
        "packets are read from blocks of types 1, 2, 3 and 6 only",
    ]


def test_every_reason_is_counted_as_often_as_it_is_given(tmp_path: Path) -> None:
    totals, packets = decoded(tmp_path, pcap(random_frames(21, 2000)))
    given_ = Counter(packet["undecoded"] for packet in packets)
    assert (given_["truncated"], given_["malformed"]) == (totals.truncated, totals.malformed)
    assert given_["not IP"] == totals.not_ip
    assert min(totals.truncated, totals.malformed, totals.not_ip) > 50


def test_own_addresses_determine_the_direction(tmp_path: Path) -> None:
    captured = [ethernet_frame(ipv4(6, tcp(b"12345"), source, destination)) for source, destination in PAIRS]
    _, packets = decoded(tmp_path, pcap(captured), own=("10.0.0.1", "10.0.0.9"))
    assert [packet["direction"] for packet in packets] == ["out", "in", None, None]


PAIRS = [("10.0.0.1", "10.0.0.2"), ("10.0.0.2", "10.0.0.1"), ("10.0.0.2", "10.0.0.3"), ("10.0.0.1", "10.0.0.9")]
# Opcode, bytes of its extended headers (InfiniBand specification, volume 1, section 9.2).
OPCODES = [(0, 0), (4, 0), (5, 4), (6, 16), (7, 0), (10, 16), (11, 20), (12, 16), (13, 4), (14, 0), (17, 4), (18, 12),
           (19, 28), (100, 8), (101, 12), (0xA6, 20), (0xB1, 4)]  # fmt: skip


@pytest.mark.parametrize(("opcode", "extended"), OPCODES)
@pytest.mark.parametrize("padding", [0, 3])
def test_data_of_roce_is_without_headers_padding_and_checksum(
    opcode: int, extended: int, padding: int, tmp_path: Path
) -> None:
    bth = struct.pack("!BBHII", opcode, padding << 4, 0xFFFF, 77, 1234)
    inside = bth + bytes(extended) + bytes(1021) + bytes(padding) + bytes(4)
    udp = struct.pack("!HHHH", 50000, 4791, 8 + len(inside), 0)
    _, [packet] = decoded(tmp_path, pcap([ethernet_frame(ipv4(17, udp + inside))]))
    assert (packet["bth_opcode"], packet["destination_qp"], packet["psn"]) == (opcode, 77, 1234)
    assert packet["payload_bytes"] == 1021
    assert packet["cnp"] is False


def test_a_cnp_is_one_and_carries_no_data(tmp_path: Path) -> None:
    udp = struct.pack("!HHHH", 50000, 4791, 40, 0)
    bth = struct.pack("!BBHII", 0x81, 0, 0xFFFF, 5, 0) + bytes(20)
    _, [packet] = decoded(tmp_path, pcap([ethernet_frame(ipv4(17, udp + bth))]))
    assert (packet["cnp"], packet["payload_bytes"]) == (True, 0)


def test_a_segment_that_the_nic_has_still_to_cut_has_the_frames_length(tmp_path: Path) -> None:
    packet = ipv4(6, tcp(bytes(9000)))
    _, [found] = decoded(tmp_path, pcap([ethernet_frame(packet[:2] + b"\0\0" + packet[4:])]))
    assert found["payload_bytes"] == 9000


def ethernet_frame(packet: bytes) -> Frame:
    frame = bytes(12) + b"\x08\x00" + packet
    return Frame(frame, len(frame), START_NS)


def ipv4(protocol: int, inside: bytes, source: str = "10.0.0.1", destination: str = "10.0.0.2") -> bytes:
    head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(inside), 0, 0, 64, protocol, 0)
    return head + socket.inet_aton(source) + socket.inet_aton(destination) + inside


def tcp(data: bytes) -> bytes:
    return struct.pack("!HHIIHHHH", 40000, 5000, 1, 2, 0x5010, 512, 0, 0) + data
