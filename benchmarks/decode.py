# SPDX-License-Identifier: Apache-2.0
"""Decoding captures: ours, to Parquet, against tshark -T fields and pyshark, in packets a second of one capture.

    python benchmarks/decode.py [--megabytes N] [--tshark-packets N] [--pyshark-packets N] [--folder PATH]
                               [--snap-bytes N] [--short] [--json]

The capture is made here: TCP and RoCEv2 between eight hosts, headers only (128 bytes a packet) unless --snap-bytes
gives another length, as the lab and a rack capture them. Ours decodes all of it, Parquet written included. The others
get its first packets, because they would take minutes, and so does ours beside them, so that start-up counts for all
alike. Needs tshark.
"""

import random
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.shared.command import print_result, read_options

TEMPLATES = 4096
FIELDS = """
frame.time_epoch frame.len vlan.id ip.version ip.src ip.dst ip.proto ip.dsfield.dscp ip.dsfield.ecn ip.frag_offset
ipv6.src ipv6.dst tcp.srcport tcp.dstport udp.srcport udp.dstport udp.length tcp.len tcp.flags tcp.seq_raw tcp.ack_raw
tcp.stream infiniband.bth.opcode infiniband.bth.destqp infiniband.bth.psn
"""
OURS = """
import resource
import sys
from pathlib import Path
from roundabout.runner.tables.packets import write_parquet
packets = write_parquet([Path(sys.argv[1])], Path(sys.argv[2])).packets
kib = sum(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
print(packets, kib / 1024)
"""


class Template(NamedTuple):
    """A packet without its number, which is TCP's sequence number or RoCE's packet number."""

    captured: bytes
    frame_bytes: int
    number_at: int
    step: int  # increase of the number from one packet of the flow to the next
    flow: tuple[int, int, int]


def template(rng: random.Random, snap_bytes: int) -> Template:
    """Return a random packet of TCP or RoCEv2 between two of eight hosts."""
    hosts = rng.sample(range(1, 9), 2)
    ethernet = b"\x02\0\0\0\0" + bytes([hosts[1]]) + b"\x02\0\0\0\0" + bytes([hosts[0]]) + b"\x08\x00"
    if rng.random() < 0.5:
        protocol, number_at, size = 6, 38, rng.choice((0, 1448, 1448, 4344))
        inside = struct.pack("!HHIIHHHH", 40000 + hosts[0], 5000 + hosts[1], 0, 1, 0x8010, 512, 0, 0) + bytes(12)
    else:
        protocol, number_at, size = 17, 50, rng.choice((1024, 4096, 4096))
        bth = struct.pack("!BBHII", rng.choice((7, 7, 7, 0x81)), 0, 0xFFFF, 100 + hosts[1], 0)
        inside = struct.pack("!HHHH", 49152 + hosts[0], 4791, 24 + size, 0) + bth + bytes(4)
    length = 20 + len(inside) + size
    ip = struct.pack("!BBHHHBBH", 0x45, rng.choice((0x68, 0x6A, 0x6B)), length, 0, 0, 64, protocol, 0)
    addresses = b"".join(b"\x0a\0\0" + bytes([host]) for host in hosts)
    captured = (ethernet + ip + addresses + inside + bytes(min(size, snap_bytes)))[:snap_bytes]
    return Template(captured, 14 + length, number_at, size if protocol == 6 else 1, (*hosts, protocol))


def make_capture(path: Path, megabytes: int, snap_bytes: int) -> int:
    """Write a pcap with nanosecond stamps, and return the number of its packets."""
    rng = random.Random(7)
    templates = [template(rng, snap_bytes) for _ in range(TEMPLATES)]
    numbers: Counter[tuple[int, int, int]] = Counter()
    packets, time_ns = 0, 1_700_000_000 * 10**9
    with path.open("wb") as file:
        file.write(struct.pack("=IHHIIII", 0xA1B23C4D, 2, 4, 0, 0, snap_bytes, 1))
        while file.tell() < megabytes * 1_000_000:
            for captured, frame_bytes, number_at, step, flow in templates:
                time_ns += rng.randrange(200, 4000)
                number = struct.pack("!I", numbers[flow] & (0xFFFFFF if step == 1 else 0xFFFFFFFF))
                numbers[flow] += step
                kept = captured[:number_at] + number + captured[number_at + 4 :]
                file.write(struct.pack("=IIII", *divmod(time_ns, 10**9), len(kept), frame_bytes) + kept)
            packets += len(templates)
    return packets


def first_packets(path: Path, count: int) -> Path:
    """Write a capture of the first packets of another, and return its path."""
    part = path.with_name(f"first-{count}.pcap")
    with path.open("rb") as whole, part.open("wb") as file:
        file.write(whole.read(24))
        for _ in range(count):
            header = whole.read(16)
            file.write(header + whole.read(struct.unpack("=IIII", header)[2]))
    return part


def ours(path: Path) -> dict[str, Any]:
    """Return packets, seconds and memory of our decoding, in a process of its own; memory includes Python's."""
    target = path.with_suffix(".parquet")
    begin = time.monotonic()
    done = subprocess.run([sys.executable, "-c", OURS, path, target], check=True, capture_output=True, text=True)
    spent_s = time.monotonic() - begin
    packets, peak_mb = done.stdout.split()
    figures = {"peak_mb": float(peak_mb), "parquet_mb": target.stat().st_size / 1e6}
    return {"packets": int(packets), "s": spent_s, **figures}


def tshark(path: Path) -> dict[str, Any]:
    """Return the number of packets, and the seconds of decoding them with tshark."""
    fields = [word for field in FIELDS.split() for word in ("-e", field)]
    begin = time.monotonic()
    done = subprocess.run(["tshark", "-n", "-r", path, "-T", "fields", *fields], check=True, capture_output=True)
    return {"packets": done.stdout.count(b"\n"), "s": time.monotonic() - begin}


def pyshark(path: Path) -> dict[str, Any]:
    """Return the number of packets, and the seconds of decoding them with pyshark."""
    import pyshark as library  # noqa: PLC0415

    begin = time.monotonic()
    packets = 0
    with library.FileCapture(str(path), keep_packets=False, use_json=True, include_raw=False) as capture:
        for each in capture:
            packets += int(each.length) > 0
    return {"packets": packets, "s": time.monotonic() - begin}


def measure_contenders(capture: Path, slices: dict[str, int]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the name and the figures of each decoder."""
    yield "ours, whole capture", ours(capture)
    contenders: dict[str, Callable[[Path], dict[str, Any]]] = {"tshark": tshark, "pyshark": pyshark}
    for name, packets in slices.items():
        part = first_packets(capture, packets)
        yield name, contenders[name](part)
        yield f"ours, {name}'s packets", ours(part)


def main() -> None:
    """Measure decoders on one capture, and print the figures."""
    short = {"megabytes": 1, "tshark_packets": 1000, "pyshark_packets": 0}
    sizes = {"megabytes": 1000, "snap_bytes": 128, "tshark_packets": 500_000, "pyshark_packets": 50_000}
    options = read_options(__doc__, short, **sizes, folder=tempfile.gettempdir())
    slices = {"tshark": options.tshark_packets, "pyshark": options.pyshark_packets}
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        capture = Path(folder) / "capture.pcap"
        packets = make_capture(capture, options.megabytes, options.snap_bytes)
        slices = {name: min(count, packets) for name, count in slices.items() if count}
        results = dict(measure_contenders(capture, slices))
    rates = {name: result["packets"] / result["s"] for name, result in results.items()}
    ratios = {name: rates["ours, whole capture"] / rates[name] for name in slices}
    lines = [format_decoder(name, each) for name, each in results.items()]
    lines += [f"ours / {name:10} {ratio:8.1f}" for name, ratio in ratios.items()]
    print_result(options, {"results": results, "packets_per_s": rates, "ratios": ratios}, lines)


def format_decoder(name: str, found: dict[str, Any]) -> str:
    memory = f"   {found['peak_mb']:.0f} MB at most" if "peak_mb" in found else ""
    rate = found["packets"] / found["s"] / 1e3
    return f"{name:24} {found['packets']:9} packets {found['s']:7.2f} s {rate:9.1f} k/s{memory}"


if __name__ == "__main__":
    main()
