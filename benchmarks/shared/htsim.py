# SPDX-License-Identifier: Apache-2.0
"""csg-htsim's RoCE simulator (github.com/Broadcom/csg-htsim, program `htsim_roce`) on a tree of two levels."""

import subprocess
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.shared.command import children_cpu_s

UPLINKS = 4
"""Links that a switch has to the core, each as fast as a host's: the program has no faster ones below its top."""
LINKS = 4
"""That a packet crosses, as its acknowledgement does."""
LINK_NS = 600  # of a cable and of a switch's forwarding, as the model has by default
QUEUE_PACKETS = 1000
PFC_PACKETS = (60, 80)
"""Packets of a link in a switch at which it may go on, and must pause.

With the program's own 12 and 15, four flows of a host end in an assertion of its queue (queue.cpp, beginService)."""
END_US = 100_000_000  # of simulated time: far beyond the last flow
_TOPOLOGY = """Nodes {hosts}
Tiers 2
Podsize {hosts}

Tier 0
Downlink_speed_Gbps {gbps:.0f}
Radix_Down {below}
Radix_Up {up}
Oversubscribed {oversubscribed}
Downlink_Latency_ns {ns}
Switch_Latency_ns 0

Tier 1
Downlink_speed_Gbps {gbps:.0f}
Radix_Down {down}
Bundle {up}
Downlink_Latency_ns {ns}
Switch_Latency_ns 0
"""


class Traffic(NamedTuple):
    """Flows of each host to the one in the other half, where `below` hosts are at a switch."""

    hosts: int
    below: int
    flows: int
    packets: int  # of a flow
    packet_bytes: int
    gbps: float  # of a host's link


def measure(program: str, traffic: Traffic) -> dict[str, Any]:
    """Return the packet-hops and CPU seconds of a run.

    The program acknowledges each packet. It has PFC, and no congestion control. Raise ValueError if its topology cannot
    have so many hosts, and RuntimeError if a flow did not finish or a lossless queue had no room.
    """
    hosts, below, flows, packets, packet_bytes, gbps = traffic
    if hosts % below or hosts < 2 * below or below % UPLINKS:
        msg = f"htsim_roce: found {hosts} hosts, expected a multiple of {below} that is at least {2 * below}"
        raise ValueError(msg)
    pairs = [(host, (host + hosts // 2) % hosts) for host in range(hosts) for _ in range(flows)]
    size = packets * packet_bytes
    rows = [f"{source}->{to} id {row} start 0 size {size}" for row, (source, to) in enumerate(pairs, start=1)]
    topology = _TOPOLOGY.format(
        hosts=hosts,
        gbps=gbps,
        below=below,
        up=UPLINKS,
        oversubscribed=below // UPLINKS,
        down=hosts // below * UPLINKS,
        ns=LINK_NS,
    )
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "topology").write_text(topology, encoding="ascii")
        matrix = [f"Nodes {hosts}", f"Connections {len(rows)}", *rows, ""]
        Path(folder, "matrix").write_text("\n".join(matrix), encoding="ascii")
        argv = [str(Path(program).resolve()), "-topo", "topology", "-tm", "matrix", "-nodes", str(hosts)]
        argv += ["-queue_type", "lossless_input", "-q", str(QUEUE_PACKETS), "-mtu", str(packet_bytes)]
        argv += ["-pfc_thresholds", *map(str, PFC_PACKETS), "-strat", "ecmp_host", "-paths", str(UPLINKS)]
        argv += ["-end", str(END_US), "-o", "log"]
        before_s = children_cpu_s()
        ended = subprocess.run(argv, cwd=folder, check=True, capture_output=True, text=True)
        spent = children_cpu_s() - before_s
    finished = ended.stdout.count(f"total bytes {size}")
    if finished != len(rows) or "LOSSLESS not working" in ended.stdout:
        msg = f"htsim_roce: {finished} of {len(rows)} flows finished without a loss, expected all"
        raise RuntimeError(msg)
    data_hops = LINKS * len(rows) * packets
    return {"data_hops": data_hops, "packet_hops": 2 * data_hops, "s": spent, "per_s": 2 * data_hops / spent}
