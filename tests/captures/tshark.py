# SPDX-License-Identifier: Apache-2.0
"""tshark's word on a capture, in the columns of `packets`."""

import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

PREFERENCES = ("ip.defragment:FALSE", "ipv6.defragment:FALSE")
# Column -> tshark's fields, of which a packet has at most one.
NUMBERS = {
    "frame_bytes": ("frame.len",),
    "vlan_id": ("vlan.id",),
    "vlan_pcp": ("vlan.priority",),
    "dscp": ("ip.dsfield.dscp", "ipv6.tclass.dscp"),
    "ecn": ("ip.dsfield.ecn", "ipv6.tclass.ecn"),
    "source_port": ("tcp.srcport", "udp.srcport"),
    "destination_port": ("tcp.dstport", "udp.dstport"),
    "tcp_flags": ("tcp.flags",),
    "tcp_seq": ("tcp.seq_raw",),
    "tcp_ack": ("tcp.ack_raw",),
    "bth_opcode": ("infiniband.bth.opcode",),
    "destination_qp": ("infiniband.bth.destqp",),
    "psn": ("infiniband.bth.psn",),
}
TEXTS = {"source": ("ip.src", "ipv6.src"), "destination": ("ip.dst", "ipv6.dst")}
# What cannot be compared one to one, by tshark's name.
MORE = ("frame.time_epoch", "frame.protocols", "_ws.malformed", "ip.version", "ip.proto", "ip.flags.mf",
        "ip.frag_offset", "ipv6.fraghdr.offset", "tcp.len", "tcp.stream", "udp.length")  # fmt: skip


def packets(capture: Path) -> list[dict[str, Any]]:
    """One mapping a packet: `packets`' columns that tshark prints one to one, and MORE; None where it is silent.

    Of fields that occur more than once, the outermost counts.
    """
    fields = [*MORE, *(name for names in [*NUMBERS.values(), *TEXTS.values()] for name in names)]
    argv = ["tshark", "-n", "-r", str(capture), "-T", "fields", "-E", "separator=|", "-E", "occurrence=f"]
    argv += [*_each("-o", PREFERENCES), *_each("-e", fields)]
    done = subprocess.run(argv, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    rows = [dict(zip(fields, line.split("|"), strict=True)) for line in done.stdout.splitlines()]
    return [_packet({name: value for name, value in row.items() if value}) for row in rows]


def _each(option: str, values: Iterable[str]) -> list[str]:
    return [word for value in values for word in (option, value)]


def _packet(row: Mapping[str, str]) -> dict[str, Any]:
    numbers = {column: _first(row, names) for column, names in NUMBERS.items()}
    return {
        **{name: row.get(name) for name in MORE},
        **{column: None if value is None else int(value, 0) for column, value in numbers.items()},
        **{column: _first(row, names) for column, names in TEXTS.items()},
    }


def _first(row: Mapping[str, str], names: Iterable[str]) -> str | None:
    return next((row[name] for name in names if name in row), None)
