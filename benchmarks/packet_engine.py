# SPDX-License-Identifier: Apache-2.0
"""The packet-level engine: packet-hops a second, and time and memory as the network grows.

    python benchmarks/packet_engine.py [--hosts N,...] [--hops MILLIONS] [--features all] [--short] [--json]
    python benchmarks/packet_engine.py --peer HTSIM_ROCE [--hosts N,...] [--hops MILLIONS] [--repeats N]

The dumbbell is `unfair-vgg19`'s, variant fair. Other networks are two levels of switches, 2:1 over-subscribed, with
eight hosts a switch. Every host is in a job of two workers, the other of which is in the far half, over four flows, so
that packets cross four links and most ports mark. Jobs send as many bytes as make the requested packet-hops. DCQCN,
marks, PFC, and samples each 10 ms are on. `--features all` gives switches a shared buffer with dynamic thresholds for
PFC, half of the jobs a priority that shares ports with the others by DWRR, and ports RED queues. Each network is
played in a process of its own; times are CPU seconds of one processor, and memory is the process's peak. Set-up is
separate: reading and checking the trial, and making the network.

`--peer` plays the same flows over the same fat tree in csg-htsim's program `htsim_roce`, whose path it takes, in turns
with the engine. Each host sends four flows to one in another pod, over six links. That program acknowledges each
packet, so the engine does here, too: both carry the same packets, and all of them count. The ratio of packet-hops a
second is of one round.
"""

import resource
import statistics
import sys
import time
from argparse import Namespace
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.shared import htsim
from benchmarks.shared.command import measure_in_process, print_result, read_options
from roundabout import build_experiment
from roundabout.models.packets import Fabric, open_trial
from roundabout.spec import TrialSpec, load_experiment
from roundabout.spec.priority_queues import WeightedQueues
from roundabout.spec.shared_buffer import SharedBuffer

DUMBBELL = 4
FEATURES = ("default", "all")
BELOW = 8
PACKET_BYTES = 1024
LINKS = 4
"""That a packet crosses."""
FLOWS = 4
"""Of a job in each direction."""
COMPUTE_MS, ALONE_SHARE = 1.0, 0.75
RATE_GBPS, PAYLOAD_GBPS = 50.0, 43.0


def topology(hosts: int) -> dict[str, Any]:
    names = [f"h{place}" for place in range(hosts)]
    switches = [f"t{place}" for place in range(hosts // BELOW)]
    up = {"line_rate_gbps": RATE_GBPS * BELOW / 2, "payload_rate_gbps": PAYLOAD_GBPS * BELOW / 2}
    return {
        "about": "two levels",
        "line_rate_gbps": RATE_GBPS,
        "payload_rate_gbps": PAYLOAD_GBPS,
        "queue": "lossless",
        "hosts": names,
        "switches": [*switches, "core"],
        "links": [
            *({"name": name, "ends": [name, f"t{place // BELOW}"]} for place, name in enumerate(names)),
            *({"name": name, "ends": [name, "core"], **up} for name in switches),
        ],
    }


def fat_tree(tree: htsim.FatTree) -> dict[str, Any]:
    links = tree.list_links()
    names = dict.fromkeys(end for ends in links for end in ends)
    return {
        "about": "a fat tree",
        "line_rate_gbps": RATE_GBPS,
        "payload_rate_gbps": PAYLOAD_GBPS,
        "queue": "lossless",
        "routing": {"name": "ecmp"},
        "hosts": [name for name in names if name.startswith("h")],
        "switches": [name for name in names if not name.startswith("h")],
        "links": [{"name": f"{one}-{other}", "ends": [one, other]} for one, other in links],
    }


def grow_tree(hosts: int, hops: float) -> TrialSpec:
    return experiment(topology(hosts), hosts, hops / LINKS / hosts)


def grow_fat_tree(hosts: int, hops: float) -> TrialSpec:
    return experiment(fat_tree(htsim.smallest_tree(hosts)), hosts, hops / htsim.LINKS / hosts)


def experiment(network: dict[str, Any], hosts: int, packets: float) -> TrialSpec:
    """Return a trial in which each host sends so many packets to one in the other half."""
    size = round(packets * PACKET_BYTES)
    alone_ms = size * 8 / (ALONE_SHARE * PAYLOAD_GBPS * 1e6)
    phases = [
        {"name": "compute", "compute_ms": COMPUTE_MS, "guess": "any"},
        {"name": "send", "bytes": size, "alone_ms": alone_ms, "guess": "any"},
    ]
    jobs = {
        f"j{place}": {"profile": "any", "workers": [f"h{place}", f"h{place + hosts // 2}"], "flows": FLOWS}
        for place in range(hosts // 2)
    }
    fields = {
        "schema": 1,
        "name": "grown",
        "about": "a network of many hosts",
        "topology": "tree",
        "topologies": {"tree": network},
        "profiles": {"any": {"model": "any", "phases": phases}},
        "jobs": jobs,
        "transport": {"name": "dcqcn", "set": "hpcc-paper", "T_us": 55},
        "iterations": 1,
    }
    return build_experiment(fields).cells[0].spec


def dumbbell(hops: float) -> TrialSpec:
    spec = load_experiment("unfair-vgg19").cells[1].spec
    [size] = [phase.bytes for phase in spec.jobs["j1"].profile.phases if phase.bytes]
    a_round = 3 * len(spec.topology.hosts) * size / PACKET_BYTES
    return spec.model_copy(update={"iterations": max(round(hops / a_round), 1)})


def with_all_features(spec: TrialSpec) -> TrialSpec:
    """Return the trial with everything on that switches can do."""
    topology = spec.topology.model_copy(update={"buffer": SharedBuffer(bytes=16_000_000, alpha=1 / 8)})
    jobs = {
        name: job.model_copy(update={"priority": 10} if place % 2 else {})
        for place, (name, job) in enumerate(spec.jobs.items())
    }
    features = {"queue": "red", "dwrr": WeightedQueues(weights=(1, 3))}
    return spec.model_copy(update={"topology": topology, "jobs": jobs, **features})


def measure(
    grow: Callable[[int, float], TrialSpec], hosts: int, hops: float, features: str, fabric: Fabric
) -> dict[str, Any]:
    """Return the figures of the network of so many hosts that `grow` makes."""
    begin = time.process_time()
    spec = dumbbell(hops) if hosts == DUMBBELL else grow(hosts, hops)
    if features == "all":
        spec = with_all_features(spec)
    engine, *_ = open_trial(spec, 1, fabric)
    made = time.process_time()
    engine.run()
    spent = time.process_time() - made
    samples = engine.samples()
    return {
        "hosts": hosts,
        "jobs": len(spec.jobs),
        "made_s": made - begin,
        "s": spent,
        "packet_hops": engine.packet_hops,
        "per_s": engine.packet_hops / spent,
        "simulated_ms": engine.now_ps / 1e9,
        "marks": int(samples.ports["marks"][-1].sum()),
        "pauses": int(samples.ports["pauses"][-1].sum()),
        "memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3,
    }


def measure_beside_peer(program: str, hosts: int, hops: float, features: str) -> dict[str, dict[str, Any]]:
    """Return the figures of the engine and of csg-htsim, in one round."""
    tree, packets = htsim.smallest_tree(hosts), round(hops / 2 / htsim.LINKS / hosts / FLOWS)
    peer = htsim.measure(program, htsim.Traffic(tree, FLOWS, packets, PACKET_BYTES, RATE_GBPS))
    each = Fabric(ack_bytes=PACKET_BYTES)
    return {"ours": measure_in_process(measure, grow_fat_tree, hosts, hops / 2, features, each), "peer": peer}


def compare_with_peer(options: Namespace, sizes: list[int]) -> None:
    """Print medians of all rounds, and the least and the largest ratio."""
    play = partial(measure_beside_peer, options.peer, hops=options.hops * 1e6, features=options.features)
    found = {hosts: [play(hosts) for _ in range(options.repeats)] for hosts in sizes}
    lines = [f"{'':6}{'M hops/s':^16}{'ratio':^22}{'set-up, s':^16}{'MB':^14}"]
    lines.append(f"{'hosts':>6}{'ours':>8}{'htsim':>8}{'of rounds':>22}" + f"{'ours':>8}{'htsim':>8}" * 2)
    for hosts, rounds in found.items():
        ratios = sorted(one["ours"]["per_s"] / one["peer"]["per_s"] for one in rounds)
        ratio = f"{statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})"
        rate, made, memory = (
            [statistics.median(one[side][name] for one in rounds) for side in ("ours", "peer")]
            for name in ("per_s", "made_s", "memory_mb")
        )
        rates = "".join(f"{each / 1e6:8.2f}" for each in rate)
        lines.append(f"{hosts:6}{rates}{ratio:>22}" + "".join(f"{each:8.2f}" for each in made))
        lines[-1] += "".join(f"{each:8.0f}" for each in memory)
    print_result(options, found, lines)


def format_network(found: dict[str, Any]) -> str:
    hops, marks, rate = (found[name] / 1e6 for name in ("packet_hops", "marks", "per_s"))
    reported = f"{hops:9.1f}{found['s']:8.2f}{rate:10.2f}{marks:9.2f}{found['memory_mb']:7.0f}{found['made_s']:9.2f}"
    return f"{found['hosts']:6}{found['jobs']:6}{reported}"


def main() -> None:
    own = {"hosts": "4,16,64,256,1024", "hops": 30.0, "features": FEATURES, "peer": "", "repeats": 3}
    options = read_options(__doc__, {"hosts": "4,16", "hops": 1.0}, **own)
    sizes = [int(hosts) for hosts in options.hosts.split(",")]
    if options.peer:
        compare_with_peer(options, sizes)
        return
    if options.short:
        measure(grow_tree, DUMBBELL, options.hops * 1e6, FEATURES[1], Fabric())
    apart = measure if options.short else partial(measure_in_process, measure)
    found = [apart(grow_tree, hosts, options.hops * 1e6, options.features, Fabric()) for hosts in sizes]
    lines = [f"{'hosts':>6}{'jobs':>6}{'M hops':>9}{'s':>8}{'M hops/s':>10}{'M marks':>9}{'MB':>7}{'made, s':>9}"]
    lines += map(format_network, found)
    last, first = found[-1], found[0]
    ratio = last["per_s"] / first["per_s"]
    lines.append(f"packet-hops a second, {last['hosts']} hosts / {first['hosts']} hosts: {ratio:.2f}")
    print_result(options, found, lines)


if __name__ == "__main__":
    main()
