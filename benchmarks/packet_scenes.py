# SPDX-License-Identifier: Apache-2.0
"""Flow completion times of the packet-level model beside reference outputs of other packet simulators.

    python benchmarks/packet_scenes.py [--scenes NAME,...] [--seeds N] [--short] [--json]

- `uet`: validation outputs of ultraethernet/uet-htsim (40ccb05, htsim/sim/datacenter/validate_outputs): single flows,
  incasts and permutations over one path each, on the fat trees that its program makes by default.
- `spray`: its permutation of 1,024 hosts over many paths.
- `csg`: Broadcom/csg-htsim (841d9e7): two lossless flows (sim/tests/htsim-tests/dumbell_roce), and a permutation of
  DCTCP with a slow link (sim/EXAMPLES/failure/dctcp.rates).
- `nscc`: the same of uet-htsim with the model's own NSCC, and what its program prints for other incasts.
- `failed`: its permutation of 8,192 hosts at 400 Gbit/s with a failed link at each switch, which is one at a quarter
  of its rate. Figures are its program's today; results/400g_nscc_fail1.txt has 41.97 us of an older one.
- `one-way`: its permutations of 16 and 1,024 hosts in fat trees of three tiers, where links from the core to the first
  pod have a quarter of their rate, in this direction alone (validate_load_balancing_failed_snd.out, and
  validate_uec_sender.out for 16 hosts).
- `swift`: csg-htsim's Swift (sim/swift.cpp) on a star, by a driver that prints ends and a port's queue each us. There
  its window has its fraction where its square root is taken, and no scaling by hops: it loses the count of a copied
  route. Packets of 4,185 bytes stand for 4,096 of payload at 97.88 Gbit/s.
- `hpcc`, `web`: DCQCN in HPCC's ns-3 (alibaba-edu/High-Precision-Congestion-Control, 9f4be2a) with its run.py's
  parameters (--cc dcqcn --bw 100), on mix/topology.txt and mix/fat.txt. It has no outputs: the program was run.
- `dctcp`: bounds that NASA-NJU/UNISON-for-ns-3 (1d5c383, examples/tcp/tcp-validation.cc) checks. Its logs are empty.

Inputs are written here in the simulators' formats and read as `roundabout new --from` reads them. Permutations and
paths are drawn, because theirs depend on their programs' random numbers. Times are in us, with the last ACK.
"""

import random
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count, islice, pairwise
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.shared.command import print_result, read_options
from roundabout.api import load_experiment
from roundabout.models.packets import Fabric
from roundabout.models.packets.network import Ports, number_trial_ports
from roundabout.models.packets.trial import PlayedTrial, play_trial
from roundabout.spec import TrialSpec
from roundabout.spec.fabrics import write_topology
from roundabout.spec.flow_readers import read_scene
from roundabout.spec.topology import RATES, Link

MESSAGE = 2_000_000
UNMARKED = {"Kmin_bytes": 100_000_000, "Kmax_bytes": 100_000_001, "Pmax": 1}
PFC = {"transport": {"name": "dcqcn", "ecn": UNMARKED}}
"""RoCE without congestion control: no queue reaches the marking thresholds."""
DCTCP = {"transport": {"name": "dctcp"}, "queue": "step"}
SPREAD: dict[str, dict[str, Any]] = {
    "PFC": {"transport": {**PFC["transport"], "retransmission": "selective_repeat"}},
    "NSCC": {"transport": {"name": "nscc", "reordering": 0}},
    "DCQCN": {"transport": {"name": "dcqcn", "retransmission": "selective_repeat"}},
}
"""Transports for packets that overtake each other, with the model's own thresholds and parameters."""
HPCC = {
    "transport": {
        "name": "dcqcn",
        "set": "hpcc",
        "R_AI_mbps": 20,
        "R_HAI_mbps": 200,
        "ecn": {"Kmin_bytes": 400_000, "Kmax_bytes": 1_600_000, "Pmax": 0.2},
    }
}
"""run.py's values for 100 Gbit/s; the set has those for 50."""
NSCC = {
    "transport": {
        "name": "nscc",
        "network_rtt_us": 14,
        "target_us": 10.5,
        "ecn": {"Kmin_bytes": 37_350, "Kmax_bytes": 145_250, "Pmax": 1},
    }
}
"""uet-htsim's values for its fat tree at 100 Gbit/s. Its target is 0.75 of the round trip, because it trims."""
SINGLE_PATHS = ((4, 3, 527.755), (16, 5, 889.92))
"""Ports of a switch, flows on the busiest link, and last completion in us of uet-htsim's permutations."""
TRIMMING = 178_450
"""Bytes that a port queues in uet-htsim's fat tree at 100 Gbit/s before it trims packets."""
FAILED = {"bitmap": 40.787, "reps": 45.839, "spray": 47.218}
"""Last completion in us of 8,192 flows of 1 MB with a failed link at each switch, over 32 entropies."""
NSCC_400 = {
    "transport": {
        "name": "nscc",
        "network_rtt_us": 8.34,
        "target_us": 6.25,
        "initial_cwnd": 150,
        "ecn": {"Kmin_bytes": 103_750, "Kmax_bytes": 311_250, "Pmax": 1},
    }
}
"""The values of those flows, in a leaf-spine of 128 leaves at 400 Gbit/s whose ports queue 415 kB."""
SLOW_SHARE = 0.25
"""Of rates, queues and marking thresholds of a failed link in uet-htsim."""
ONE_WAY = (
    (4, 1, "bitmap", 238.218),
    (16, 8, "spray", 280.775),
    (16, 8, "bitmap", 220.269),
    (16, 8, "reps", 206.684),
)
"""Ports of a switch, slow links from the core to the first pod, routing, and last completion in us of uet-htsim."""
SPRAYED = {"spray": 212.794, "bitmap": 200.507, "reps": 198.246}
"""Last completion in us of uet-htsim's permutation of 1,024 hosts: oblivious, bitmap, and REPS."""
SWIFT = {"transport": {"name": "swift", "hop_us": 0}}
SWIFT_INCASTS = {
    2: (339.1, 129.9, 209.3),
    8: (1343.5, 277.2, 284.6),
    16: (2682.7, 334.9, 602.6),
    32: (5361.1, 409.6, 979.3),
}
"""Last completion in us, and mean and 99th percentile of the queue in kB, by senders of 500 packets each."""
SWIFT_LATE = (2101.4, 1032.6)
"""Completion in us of 5,000 packets, and of 1,250 that begin 0.5 ms later."""
WEB_SEARCH = (
    *((0, 0), (10_000, 15), (20_000, 20), (30_000, 30), (50_000, 40), (80_000, 53), (200_000, 60)),
    *((1_000_000, 70), (2_000_000, 80), (5_000_000, 90), (10_000_000, 97), (30_000_000, 100)),
)
"""Sizes in bytes and percent of flows up to them: traffic_gen/WebSearch_distribution.txt, after SIGCOMM'10 (DCTCP)."""

WEB_SLOWDOWNS = ((1.128, 3.629), (1.191, 2.662), (1.605, 4.435), (1.658, 3.18))
"""Mean and 99th percentile of slowdowns in HPCC's ns-3, by flows' sizes."""

Pairs = list[tuple[int, int]]


class Row(NamedTuple):
    """A figure of a scene: the reference's, and the model's, one for each seed."""

    scene: str
    figure: str
    theirs: float
    ours: list[float]

    def __str__(self) -> str:
        mean = float(np.mean(self.ours))
        values = " ".join(f"{each:.4g}" for each in self.ours)
        return f"{self.scene}: {self.figure}: {self.theirs:.4g}, here {values}: {mean / self.theirs - 1:+.1%}"


def tree(ports: int, gbps: int = 100) -> str:
    """Return htsim's default fat tree of switches with that many ports: a latency of 1 us a link, and none else."""
    half = ports // 2
    lines = [f"Nodes {ports**3 // 4}", "Tiers 3", f"Podsize {half * half}"]
    for tier, down in enumerate((half, half, ports)):
        lines += [f"Tier {tier}", f"Downlink_speed_Gbps {gbps}", f"Radix_Down {down}", "Downlink_Latency_ns 1000"]
        lines += [f"Radix_Up {half}"] if tier < 2 else []
    return "\n".join(lines)


LEAF_SPINE = """Nodes 8192
Tiers 2
Podsize 8192
Tier 0
Downlink_speed_Gbps 400
Radix_Down 64
Downlink_Latency_ns 1000
Radix_Up 64
Tier 1
Downlink_speed_Gbps 400
Radix_Down 128
Downlink_Latency_ns 1000"""
"""uet-htsim's topologies/leaf_spine_8192_400g.topo."""


def matrix(hosts: int, pairs: Pairs, size: int = MESSAGE) -> str:
    """Return a connection matrix whose flows begin at once."""
    flows = [f"{one}->{other} start 0 size {size}" for one, other in pairs]
    return "\n".join([f"Nodes {hosts}", f"Connections {len(pairs)}", *flows])


def star(senders: int, gbps: int, delay_us: float) -> str:
    """Return a star in HPCC's format. Node 0 is the switch, and node 1 receives."""
    links = [f"0 {node} {gbps}Gbps {delay_us}us 0" for node in range(1, senders + 2)]
    return "\n".join([f"{senders + 2} 1 {senders + 1}", "0", *links])


def into_one(sizes: list[int]) -> str:
    """Return flows in HPCC's format from nodes 2, 3, ... to node 1."""
    return "\n".join([str(len(sizes)), *(f"{node} 1 3 100 {size} 2" for node, size in enumerate(sizes, start=2))])


def build(
    flows: str, topology: str, changes: dict[str, Any], seed: int = 1, edit: Callable[[str], str] = str
) -> TrialSpec:
    """Return the trial of flows on a topology, over ECMP of this seed unless `changes` have another routing.

    `edit` changes the topology's YAML.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "flows").write_text(flows)
        (folder / "topology").write_text(topology)
        scene = read_scene(folder / "flows", folder / "topology", "fabric")
        (folder / "fabric.yaml").write_text(edit(write_topology(scene.topology)))
        (folder / "scene.yaml").write_text(scene.experiment("scene").replace("topology: scene", "topology: fabric"))
        routing = {} if scene.topology.is_tree else {"routing": {"name": "ecmp", "seed": seed}}
        return load_experiment(folder / "scene.yaml", set=routing | changes).cells[0].spec


def times_us(spec: TrialSpec, seed: int = 1) -> list[float]:
    """Play a trial and return the completion times of its flows, in their order. The seed draws the model's numbers."""
    return _ended_us(play_trial(spec, seed, Fabric()))


def _ended_us(trial: PlayedTrial) -> list[float]:
    return [float(sender[0]["end_ps"] - sender[0]["start_ps"]) / 1e6 for sender, _ in trial.iterations.values()]


def most_flows(spec: TrialSpec) -> int:
    """Return the number of flows on the busiest link."""
    return max(Counter(link for job in spec.jobs for route in spec.routes_of(job) for link in route).values())


def draw_permutation(hosts: int, seed: int) -> Pairs:
    """Return hosts and their receivers: each receives from one other."""
    generator = random.Random(seed)
    receivers = list(range(hosts))
    while any(one == other for one, other in enumerate(receivers)):
        generator.shuffle(receivers)
    return list(enumerate(receivers))


def uet(seeds: range) -> Iterator[Row]:
    """Yield the figures of uet-htsim. Theirs are of NSCC (validate_uec_sender.out, validate_uec_connreuse.out)."""
    for title, ports, pairs, size, theirs in (
        ("10 packets, six links", 2, [(0, 1)], 40_860, 17.0107),
        ("100 packets, six links", 2, [(0, 1)], 408_600, 46.8907),
        ("2 MB, six links", 4, [(0, 13)], MESSAGE, 176.2),
        ("2 MB both ways", 4, [(0, 13), (13, 0)], MESSAGE, 176.804),
    ):
        flows = matrix(ports**3 // 4, pairs, size)
        yield Row(title, "PFC", theirs, [max(times_us(build(flows, tree(ports), PFC)))])
    apart = [(1, 0), *((2, other) for other in (0, *range(4, 13))), *((3, other) for other in (0, *range(13, 22)))]
    for name, changes in (("PFC", PFC), ("DCTCP", DCTCP)):
        mixed = times_us(build(matrix(128, apart), tree(8), changes))
        yield Row("outcast and incast, flow 1 to 0", name, 208.019, [mixed[0]])
        yield Row("outcast and incast, last", name, 1638.08, [max(mixed)])
        for ports, theirs in ((4, 2478.53), (8, 21029.3)):
            last = ports**3 // 4 - 1
            flows = matrix(last + 1, [(host, last) for host in range(last)])
            yield Row(f"incast of {last}, last", name, theirs, [max(times_us(build(flows, tree(ports), changes)))])
        for ports, busiest, theirs in SINGLE_PATHS:
            found = [max(times_us(each)) for each in _permutations(ports, busiest, changes, len(seeds))]
            title = f"permutation of {ports**3 // 4}, {busiest} flows on the busiest link, last"
            yield Row(title, name, theirs, found)


def spray(seeds: range) -> Iterator[Row]:
    """Yield uet-htsim's tail of the permutation of 1,024 hosts under oblivious spraying, with NSCC.

    It prints none for the shortest queue, which is beside the same figure (validate_load_balancing_snd.out).
    """
    for routing, names in (("spray", tuple(SPREAD)), ("adaptive", ("PFC",))):
        for name in names:
            changes = SPREAD[name] | {"routing": {"name": routing}}
            drawn = {seed: matrix(1024, draw_permutation(1024, seed)) for seed in seeds}
            found = [max(times_us(build(flows, tree(16), changes), seed)) for seed, flows in drawn.items()]
            yield Row(f"permutation of 1024, {routing}, last", name, 212.794, found)


def _permutations(
    ports: int, busiest: int, changes: dict[str, Any], number: int, edit: Callable[[str], str] = str
) -> Iterator[TrialSpec]:
    """Yield the first permutations whose busiest link has as many flows as the reference's."""
    hosts = ports**3 // 4
    drawn = (build(matrix(hosts, draw_permutation(hosts, seed)), tree(ports), changes, seed, edit) for seed in count(1))
    return islice((spec for spec in drawn if most_flows(spec) == busiest), number)


def csg(seeds: range) -> Iterator[Row]:
    """Yield the figures of csg-htsim. Its log has what arrived every 100 us; the end is between, at the last rate."""
    switch = "4 1 3\n3\n0 3 100Gbps 0us 0\n1 3 100Gbps 0us 0\n2 3 100Gbps 1us 0"
    flows = "2\n0 2 3 100 20000000 0\n1 2 3 100 20000000 0"

    def edit(text: str) -> str:
        return re.sub(
            "payload_rate_gbps: .*", "payload_rate_gbps: 97.8", text.replace("mtu_bytes: 1280", "mtu_bytes: 4200")
        )

    ended = [max(times_us(build(flows, switch, PFC, seed, edit), seed)) for seed in seeds]
    yield Row("two lossless flows, last", "PFC", 3225.0, ended)
    rates = [_degraded_rates(seed) for seed in seeds]
    yield Row("permutation with a slow link, mean Gbit/s", "DCTCP", 4.745, [float(np.mean(each)) for each in rates])
    for percent, gbps in ((10, 1.754), (50, 4.529), (90, 8.171)):
        found = [float(np.percentile(each, percent)) for each in rates]
        yield Row(f"permutation with a slow link, {percent}th percentile, Gbit/s", "DCTCP", gbps, found)


def _degraded_rates(seed: int) -> list[float]:
    """Return Gbit/s of 128 flows without end, over 30 ms. A link between pod and core has a tenth of the rate."""
    packets = {"Kmin_bytes": 15 * 9000, "Kmax_bytes": 15 * 9000, "Pmax": 1}
    slow = "{name: agg0-core0, "

    def edit(text: str) -> str:
        text = text.replace("mtu_bytes: 4200", "mtu_bytes: 9000").replace("queue: lossless", "queue: lossy")
        return text.replace(slow, f"{slow}line_rate_gbps: 1, payload_rate_gbps: 0.97, ")

    flows = matrix(128, draw_permutation(128, seed), 50_000_000)
    changes = {"transport": {"name": "dctcp", "ecn": packets}, **{f"jobs.f{n}.departs_ms": 30 for n in range(1, 129)}}
    trial = play_trial(build(flows, tree(8, 10), changes, seed, edit), seed, Fabric())
    pairs = [pair for by_key in trial.pairs.values() for pair in by_key.values()]
    return [(pair.packets - pair.resent) * 8948 * 8 / 0.03 / 1e9 for pair in pairs]


def single_paths(seeds: range, cases: tuple[tuple[int, int, float], ...] = SINGLE_PATHS) -> Iterator[Row]:
    """Yield the tails of permutations under NSCC, whose flows have a path each, over ports that pause or trim."""
    for ports, busiest, theirs in cases:
        title = f"permutation of {ports**3 // 4}, {busiest} flows on the busiest link, last"
        for name, edit in (("NSCC", str), ("NSCC, trimming", trims(TRIMMING))):
            found = [max(times_us(spec)) for spec in _permutations(ports, busiest, NSCC, len(seeds), edit)]
            yield Row(title, name, theirs, found)


def trims(queue_bytes: int) -> Callable[[str], str]:
    """Return the edit of a topology by which its ports trim packets beyond so many bytes."""
    lossy = f"queue: lossy\nqueue_bytes: {queue_bytes}\ntrimming: true"
    return lambda text: text.replace("queue: lossless", lossy)


def failed(_seeds: range) -> Iterator[Row]:
    """Yield the tails of 8,192 flows where the first spine has a quarter of its rate and of its queues."""
    rates = "line_rate_gbps: 100, payload_rate_gbps: 97.87, queue_share: 0.25, "

    def edit(text: str) -> str:
        return trims(415_000)(re.sub(r"name: tor\d+-agg0, ", lambda found: found[0] + rates, text))

    flows = matrix(8192, draw_permutation(8192, 1), 1_000_000)
    for routing, theirs in FAILED.items():
        entropies = {} if routing == "spray" else {"entropies": 32}
        spec = build(flows, LEAF_SPINE, NSCC_400 | {"routing": {"name": routing, **entropies}}, edit=edit)
        yield Row(
            f"permutation of 8192, failed links, {routing}, last", "NSCC, trimming", theirs, [max(times_us(spec))]
        )


def one_way(seeds: range, cases: tuple[tuple[int, int, str, float], ...] = ONE_WAY) -> Iterator[Row]:
    """Yield the tails of permutations where links from the core to the first pod are slow, over ports that trim."""
    for ports, slow, routing, theirs in cases:
        hosts = ports**3 // 4
        changes = {**NSCC, "routing": {"name": routing}}
        drawn = {seed: matrix(hosts, draw_permutation(hosts, seed)) for seed in seeds}
        specs = {seed: build(flows, tree(ports), changes, edit=trims(TRIMMING)) for seed, flows in drawn.items()}
        found = [max(_times_one_way_us(spec, seed, slow)) for seed, spec in specs.items()]
        yield Row(f"permutation of {hosts}, {slow} links slow in one direction, {routing}, last", "NSCC", theirs, found)


def _times_one_way_us(spec: TrialSpec, seed: int, slow: int) -> list[float]:
    """Return completion times where so many links are slow from the core to the first pod.

    A link of a topology has one rate, so the rates of ports are changed.
    """
    ends = {(f"core{core}", "agg0") for core in range(slow)}
    with patch("roundabout.models.packets.trial.number_trial_ports", lambda spec: _slow_down(spec, ends)):
        return _ended_us(play_trial(spec, seed, Fabric()))


def _slow_down(spec: TrialSpec, slow: set[tuple[str, str]]) -> Ports:
    ports = number_trial_ports(spec)

    def change(link: Link) -> Link:
        rates = {name: getattr(link, name) * SLOW_SHARE for name in RATES}
        return link.model_copy(update={**rates, "queue_share": SLOW_SHARE})

    directions = ((ends, change(link) if ends in slow else link) for ends, link in ports.directions)
    return replace(ports, directions=tuple(directions))


def nscc(seeds: range) -> Iterator[Row]:
    """Yield the figures of uet-htsim beside the model's NSCC, over ports that pause, and of single paths that trim."""
    apart = [(1, 0), *((2, other) for other in (0, *range(4, 13))), *((3, other) for other in (0, *range(13, 22)))]
    for title, ports, pairs, theirs in (
        ("2 MB, six links", 4, [(0, 13)], 176.2),
        ("2 MB both ways", 4, [(0, 13), (13, 0)], 176.804),
        ("incast of 8, last", 8, [(20 + host, 0) for host in range(8)], 1322.31),
        ("incast of 16, last", 8, [(20 + host, 0) for host in range(16)], 2635.17),
        ("incast of 15, last", 4, [(host, 15) for host in range(15)], 2478.53),
        ("outcast and incast, last", 8, apart, 1638.08),
    ):
        spec = build(matrix(ports**3 // 4, pairs), tree(ports), NSCC)
        yield Row(title, "NSCC", theirs, [max(times_us(spec))])
    yield from single_paths(seeds)
    for routing, theirs in SPRAYED.items():
        changes = {**NSCC, "routing": {"name": routing}}
        drawn = {seed: matrix(1024, draw_permutation(1024, seed)) for seed in seeds}
        found = [max(times_us(build(flows, tree(16), changes), seed)) for seed, flows in drawn.items()]
        yield Row(f"permutation of 1024, {routing}, last", "NSCC", theirs, found)


def swift(_seeds: range) -> Iterator[Row]:
    """Yield completion times and the queue of Swift at one port."""
    for senders, (last, mean, p99) in SWIFT_INCASTS.items():
        ends, queue = _play_swift([(500, 0.0)] * senders)
        yield Row(f"incast of {senders}", "last, us", last, [max(ends)])
        yield Row(f"incast of {senders}", "mean queue, kB", mean, [float(np.mean(queue)) / 1e3])
        yield Row(f"incast of {senders}", "99th percentile, kB", p99, [float(np.percentile(queue, 99)) / 1e3])
    ends, _ = _play_swift([(5000, 0.0), (1250, 500e-6)])
    for figure, theirs, ours in zip(("long flow, us", "late flow, us"), SWIFT_LATE, ends, strict=True):
        yield Row("late starter", figure, theirs, [ours])


def _play_swift(flows: list[tuple[int, float]]) -> tuple[list[float], np.ndarray[Any, Any]]:
    """Play flows of so many packets from such an instant into one port; return their us, and the port's queue."""

    def edit(text: str) -> str:
        text = text.replace("mtu_bytes: 1280", "mtu_bytes: 4200")
        return re.sub("payload_rate_gbps: .*", "payload_rate_gbps: 97.8", text)

    lines = [f"{node} 1 3 100 {packets * 4096} {at_s}" for node, (packets, at_s) in enumerate(flows, start=2)]
    spec = build("\n".join([str(len(flows)), *lines]), star(len(flows), 100, 1), SWIFT, edit=edit)
    trial = play_trial(spec, 1, Fabric(), sample_ms=1e-3)
    ends = [float(sender[0]["end_ps"] - sender[0]["start_ps"]) / 1e6 for sender, _ in trial.iterations.values()]
    backlog = trial.samples.ports["backlog_bytes"][: int(max(ends))]
    return ends, backlog[:, int(np.argmax(backlog.sum(axis=0)))]


def hpcc(seeds: range) -> Iterator[Row]:
    """Yield the figures of HPCC's ns-3, as multiples of the time alone: their frames have other headers."""
    for title, sizes, theirs in (
        ("2 flows of 200 MB", [200_000_000] * 2, {"first": 33674.253 / 16772.16, "last": 34493.27 / 16772.16}),
        (
            "10 flows of 5 to 200 MB",
            [200_000_000] * 2 + [150_000_000] + [5_000_000] * 7,
            {"mean of 5 MB": 4822.6 / 423.36, "150 MB": 51632.8 / 12580.2, "last": 63709.5 / 16772.16},
        ),
    ):
        alone = {size: times_us(build(into_one([size]), star(65, 100, 1), PFC))[0] for size in set(sizes)}
        played = [times_us(build(into_one(sizes), star(65, 100, 1), HPCC), seed) for seed in seeds]
        slower = [[each / alone[size] for each, size in zip(times, sizes, strict=True)] for times in played]
        for figure, value in theirs.items():
            yield Row(title, figure, value, [_pick(figure, each) for each in slower])


def _pick(figure: str, slower: list[float]) -> float:
    if figure == "mean of 5 MB":
        return float(np.mean(slower[3:]))
    return {"first": min(slower[:2]), "last": max(slower[:2]), "150 MB": slower[2] if len(slower) > 2 else 0.0}[figure]


def fat() -> str:
    """Return mix/fat.txt: 320 hosts, 20 switches of racks with 16 each, 5 pods, 16 core switches, 1000 ns a link."""
    tors, aggs, cores = range(320, 340), range(340, 360), range(360, 376)
    links = [(host, tors[host // 16], 100) for host in range(320)]
    links += [(tor, agg, 400) for place, tor in enumerate(tors) for agg in aggs[place // 4 * 4 :][:4]]
    links += [(agg, core, 400) for place, agg in enumerate(aggs) for core in cores[place % 4 * 4 :][:4]]
    heading = [f"376 56 {len(links)}", " ".join(map(str, (*tors, *aggs, *cores)))]
    return "\n".join([*heading, *(f"{one} {other} {gbps}Gbps 1000ns 0" for one, other, gbps in links)])


def web_search(load: float, duration_s: float) -> list[tuple[int, int, int, float]]:
    """Return flows (sender, receiver, bytes, start in s) that load hosts' links of 100 Gbit/s, of seed 1."""
    generator = random.Random(1)
    steps = list(pairwise(WEB_SEARCH))
    mean = sum((low + high) / 2 * (upto - below) / 100 for (low, below), (high, upto) in steps)
    at_s = 2.0
    flows: list[tuple[int, int, int, float]] = []
    while True:
        at_s += generator.expovariate(320 * load * 100e9 / 8 / mean)
        if at_s > 2.0 + duration_s:
            return flows
        one, other = generator.sample(range(320), 2)
        percent = 100 * generator.random()
        (low, below), (high, upto) = next(each for each in steps if percent <= each[1][1])
        flows.append((one, other, max(int(low + (high - low) * (percent - below) / (upto - below)), 1), at_s))


def web(seeds: range) -> Iterator[Row]:
    """Yield slowdowns of web-search flows at 30 % load in HPCC's ns-3, which prints the time alone of each flow."""
    flows = web_search(0.3, 1e-3)
    text = "\n".join([str(len(flows)), *(f"{one} {other} 3 100 {size} {at:.9f}" for one, other, size, at in flows)])
    specs = [build(text, fat(), HPCC, seed) for seed in seeds]
    slowdowns = [
        np.array(times_us(spec, seed)) / [_alone_us(spec, name) for name in spec.jobs]
        for seed, spec in zip(seeds, specs, strict=True)
    ]
    sizes = np.array([size for _, _, size, _ in flows])
    edges = (0, 30_000, 300_000, 3_000_000, np.inf)
    for (low, high), (mean, p99) in zip(pairwise(edges), WEB_SLOWDOWNS, strict=True):
        chosen = (sizes >= low) & (sizes < high)
        slower = [each[chosen] for each in slowdowns]
        title = f"web search, {np.count_nonzero(chosen)} flows from {low / 1e3:g} kB"
        yield Row(title, "mean slowdown", mean, [float(np.mean(each)) for each in slower])
        yield Row(title, "99th percentile", p99, [float(np.percentile(each, 99)) for each in slower])


def _alone_us(spec: TrialSpec, job: str) -> float:
    """Return a flow's time alone, with its acknowledgement."""
    (hops,) = spec.routes_of(job)
    forth = sum(map(spec.topology.hop_delay_us, hops))
    packet_us = [1106 * 8 / hop.link.line_rate_gbps / 1e3 for hop in hops]
    packets = -(-spec.jobs[job].profile.comm_bytes // 1024)
    return 2 * forth + packets * max(packet_us) + sum(packet_us)


WAN = """\
schema: 1
name: wan
about: A flow over 50 Mbit/s, marked behind 5 packets of 0.24 ms, the first that wait more than 1 ms
topology: wan
topologies:
  wan:
    about: A server and a client behind two routers
    line_rate_gbps: 1
    payload_rate_gbps: 0.94
    queue: lossy
    queue_bytes: 15_000_000
    hosts: [server, client]
    switches: [wr, lr]
    delays: {link_us: 1, switch_us: 0, nic_us: 0}
    links:
      - {name: server, ends: [server, wr]}
      - {name: client, ends: [lr, client]}
      - {name: slow, ends: [wr, lr], line_rate_gbps: 0.0512, payload_rate_gbps: 0.0482, delay_us: DELAY}
profiles:
  bulk: {model: a flow, phases: [{name: send, bytes: 300_000_000, alone_ms: 50_000, pattern: pipeline, source: none}]}
jobs:
  f1: {profile: bulk, workers: [server, client], departs_ms: 36_000}
iterations: 1
transport: {name: dctcp, ecn: {Kmin_bytes: 7570, Kmax_bytes: 7570, Pmax: 1}}
"""
SAMPLE_S = 0.5


class Bound(NamedTuple):
    """A range that a test of ns-3 allows from `begin_s` to `end_s` after the flow's start, and what was found."""

    rtt_ms: int
    figure: str
    begin_s: float
    end_s: float
    least: float
    most: float
    found: tuple[float, ...] = ()

    def __str__(self) -> str:
        low, high = min(self.found), max(self.found)
        holds = "holds" if self.least <= low and high <= self.most else "does not hold"
        where = f"DCTCP, {self.rtt_ms} ms, {self.begin_s:g} to {self.end_s:g} s"
        return f"{where}: {self.figure} from {self.least:g} to {self.most:g}, here {low:.4g} to {high:.4g}: {holds}"


BOUNDS = (
    Bound(10, "Mbit/s", 1.0, 9.0, 48, 49),
    Bound(10, "marked share", 2.0, 9.0, 0.055, 0.09),
    Bound(80, "Mbit/s", 0.0, 9.0, 0, 20),
    Bound(80, "Mbit/s", 9.0, 25.0, 0, 48),
    Bound(80, "Mbit/s", 27.0, 35.0, 47.5, 48.5),
    Bound(80, "marked share", 6.0, 25.0, 0, 0.01),
)
"""tcp-validation.cc, dctcp-10ms and dctcp-80ms. It bounds alpha, whose mean is the share of marked packets."""


def dctcp(_seeds: range) -> Iterator[Bound]:
    """Yield the bounds with what was found. The share of marked packets is that of the whole time."""
    samples = {rtt_ms: _sampled(rtt_ms) for rtt_ms in (10, 80)}
    for bound in BOUNDS:
        mbps, marked = samples[bound.rtt_ms]
        span = slice(round(bound.begin_s / SAMPLE_S), round(bound.end_s / SAMPLE_S))
        found = mbps[span].tolist() if bound.figure == "Mbit/s" else [float(marked[span].mean())]
        yield bound._replace(found=tuple(found))


def _sampled(rtt_ms: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return Mbit/s of payload and the share of marked packets at the slow link, by half second."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "wan.yaml")
        path.write_text(WAN.replace("DELAY", str(rtt_ms * 500)))
        spec = load_experiment(path).cells[0].spec
    played = play_trial(spec, 1, Fabric(), sample_ms=1e3 * SAMPLE_S)
    port = played.ports.numbers["wr", "lr"]
    sent, packets, marks = (
        np.diff(played.samples.ports[name][:, port], prepend=0) for name in ("tx_bytes", "tx_packets", "marks")
    )
    mbps = sent * 8 / SAMPLE_S / 1e6 * 1448 / 1514
    return mbps, marks / np.maximum(packets, 1)


SCENES: dict[str, Callable[[range], Iterator[Row] | Iterator[Bound]]] = {
    "uet": uet,
    "spray": spray,
    "csg": csg,
    "nscc": nscc,
    "failed": failed,
    "one-way": one_way,
    "swift": swift,
    "hpcc": hpcc,
    "web": web,
    "dctcp": dctcp,
}


def main() -> None:
    options = read_options(__doc__, {"scenes": "hpcc", "seeds": 1}, scenes=",".join(SCENES), seeds=3)
    rows = [row for name in options.scenes.split(",") for row in SCENES[name](range(1, options.seeds + 1))]
    apart = [abs(float(np.log(np.mean(row.ours) / row.theirs))) for row in rows if isinstance(row, Row)]
    lines = list(map(str, rows))
    if apart:  # `dctcp` has bounds alone
        lines.append(f"figures differ by a factor of at most {np.exp(max(apart)):.2f}")
    print_result(options, [row._asdict() for row in rows], lines)


if __name__ == "__main__":
    main()
