# SPDX-License-Identifier: Apache-2.0
"""csg-htsim's RoCE simulator (github.com/Broadcom/csg-htsim, program `htsim_roce`) on fat trees of three tiers."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

LINKS = 6
"""Links that a packet crosses between two pods, as its acknowledgement does."""
LINK_NS = 600  # of a cable and of a switch's forwarding, as the model has by default
QUEUE_PACKETS = 1000
PFC_PACKETS = (60, 80)
"""Packets of a link in a switch at which it may go on, and must pause.

With the program's own 12 and 15, four flows of a host end in an assertion of its queue (queue.cpp, beginService)."""
PATHS = 256
"""Entropies of a flow, of which it keeps one: as many as the largest tree has paths between two pods."""
END_US = 100_000_000  # of simulated time: far beyond the last flow
SET_UP_US = 1  # of simulated time, in which hardly a packet arrives: the network and the flows are made
_LAUNCH = """
import json, os, sys
_, status, usage = os.wait4(os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ), 0)
print(json.dumps({"s": usage.ru_utime + usage.ru_stime, "memory_mb": usage.ru_maxrss / 1e3}), file=sys.stderr)
sys.exit(os.waitstatus_to_exitcode(status))
"""
"""A parent for the program that is smaller than it: a process's peak memory begins with that of its parent's."""
_TIER = """Tier {number}
Downlink_speed_Gbps {gbps:.0f}
Radix_Down {down}
{up}Downlink_Latency_ns {ns}
Switch_Latency_ns 0
"""


class FatTree(NamedTuple):
    """Pods of k-ary switches (Al-Fares et al., SIGCOMM 2008), of which there may be fewer than k."""

    hosts: int
    ports: int

    @property
    def half(self) -> int:
        """Return the number of a switch's ports that go down, or up."""
        return self.ports // 2

    @property
    def pods(self) -> int:
        return self.hosts // self.half**2

    def list_links(self) -> list[tuple[str, str]]:
        """Return the ends of each link, from the hosts up."""
        half, switches = self.half, range(self.hosts // self.half)
        links = [(f"h{host}", f"edge{host // half}") for host in range(self.hosts)]
        links += [(f"edge{edge}", f"agg{edge // half * half + up}") for edge in switches for up in range(half)]
        return links + [(f"agg{agg}", f"core{agg % half * half + up}") for agg in switches for up in range(half)]

    def format(self, gbps: float) -> str:
        """Return the tree in csg-htsim's format."""
        up = f"Radix_Up {self.half}\n"
        tiers = ((self.half, up), (self.half, up), (self.pods, ""))
        lines = [
            _TIER.format(number=number, gbps=gbps, down=down, up=up, ns=LINK_NS)
            for number, (down, up) in enumerate(tiers)
        ]
        return "\n".join([f"Nodes {self.hosts}\nTiers 3\nPodsize {self.half**2}\n", *lines])


def smallest_tree(hosts: int) -> FatTree:
    """Return the tree of the smallest switches with an even number of pods. Raises ValueError if there is none."""
    for ports in range(4, hosts + 1, 2):
        tree = FatTree(hosts, ports)
        if hosts == tree.pods * tree.half**2 and 0 < tree.pods <= ports and tree.pods % 2 == 0:
            return tree
    msg = f"--hosts: found {hosts}, expected (k/2)^2 times an even number up to k, for an even k, as 16, 256 or 1024"
    raise ValueError(msg)


class Traffic(NamedTuple):
    """Flows of each host to the one in the other half of a tree."""

    tree: FatTree
    flows: int
    packets: int  # of a flow
    packet_bytes: int
    gbps: float  # of all links

    def format(self) -> str:
        """Return the flows as a connection matrix."""
        hosts, size = self.tree.hosts, self.packets * self.packet_bytes
        pairs = [(host, (host + hosts // 2) % hosts) for host in range(hosts) for _ in range(self.flows)]
        rows = [f"{source}->{to} id {row} start 0 size {size}" for row, (source, to) in enumerate(pairs, start=1)]
        return "\n".join([f"Nodes {hosts}", f"Connections {len(rows)}", *rows, ""])


class _Ended(NamedTuple):
    """The output of a run, its CPU seconds and its peak memory."""

    output: str
    s: float
    memory_mb: float


def measure(program: str, traffic: Traffic) -> dict[str, Any]:
    """Return the packet-hops of a run, its CPU seconds without set-up, those of set-up, and its peak memory.

    The program acknowledges each packet. It has PFC, and no congestion control. Raise RuntimeError if a flow did not
    finish or a lossless queue had no room.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "topology").write_text(traffic.tree.format(traffic.gbps), encoding="ascii")
        (folder / "matrix").write_text(traffic.format(), encoding="ascii")
        made, ended = (_run(program, traffic, folder, end_us) for end_us in (SET_UP_US, END_US))
    flows = traffic.tree.hosts * traffic.flows
    finished = ended.output.count(f"total bytes {traffic.packets * traffic.packet_bytes}")
    if finished != flows or "LOSSLESS not working" in ended.output:
        msg = f"htsim_roce: {finished} of {flows} flows finished without a loss, expected all"
        raise RuntimeError(msg)
    packet_hops, s = 2 * LINKS * flows * traffic.packets, ended.s - made.s
    return {
        "packet_hops": packet_hops,
        "made_s": made.s,
        "s": s,
        "per_s": packet_hops / s,
        "memory_mb": ended.memory_mb,
    }


def _run(program: str, traffic: Traffic, folder: Path, end_us: int) -> _Ended:
    argv = [str(Path(program).resolve()), "-topo", "topology", "-tm", "matrix", "-nodes", str(traffic.tree.hosts)]
    argv += ["-queue_type", "lossless_input", "-q", str(QUEUE_PACKETS), "-mtu", str(traffic.packet_bytes)]
    argv += ["-pfc_thresholds", *map(str, PFC_PACKETS), "-strat", "ecmp_host", "-paths", str(PATHS)]
    argv += ["-end", str(end_us), "-o", "log"]
    launch = [sys.executable, "-S", "-c", _LAUNCH, *argv]
    ended = subprocess.run(launch, cwd=folder, check=True, capture_output=True, text=True)
    return _Ended(ended.stdout, **json.loads(ended.stderr.splitlines()[-1]))
