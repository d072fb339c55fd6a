# SPDX-License-Identifier: Apache-2.0
"""The packet-level engine: packet-hops a second, and time and memory as the network grows.

    python benchmarks/packet_engine.py [--hosts N,...] [--hops MILLIONS] [--features all] [--short] [--json]
    python benchmarks/packet_engine.py --peer HTSIM_ROCE [--hosts N] [--repeats N]

The dumbbell is `unfair-vgg19`'s, variant fair. Other networks are two levels of switches, 2:1 over-subscribed, with
eight hosts a switch. Every host is in a job of two workers, the other of which is in the far half, over four flows, so
that packets cross four links and most ports mark. Jobs send as many bytes as make the requested packet-hops. DCQCN,
marks, PFC, and samples each 10 ms are on. `--features all` gives switches a shared buffer with dynamic thresholds for
PFC, half of the jobs a priority that shares ports with the others by DWRR, and ports RED queues. Each network is
played in a process of its own; times are CPU seconds of one processor, without that for making the network, and memory
is the process's peak.

`--peer` plays the same flows over the same tree in csg-htsim's program `htsim_roce`, in turns with the engine. That
program acknowledges each packet, so the engine does here, too: both carry the same packets, and all of them count. The
ratio of packet-hops a second is of one round.
"""

import resource
import statistics
import sys
import time
from argparse import Namespace
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


def experiment(hosts: int, hops: float) -> TrialSpec:
    """Return a trial whose jobs together make about so many packet-hops."""
    size = round(hops / LINKS / hosts * PACKET_BYTES)
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
        "topologies": {"tree": topology(hosts)},
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


def measure(hosts: int, hops: float, features: str, ack_bytes: int = Fabric().ack_bytes) -> dict[str, Any]:
    """Return the figures of one network, in which a message is acknowledged each `ack_bytes`."""
    spec = dumbbell(hops) if hosts == DUMBBELL else experiment(hosts, hops)
    if features == "all":
        spec = with_all_features(spec)
    begin = time.process_time()
    engine, *_ = open_trial(spec, 1, Fabric(ack_bytes=ack_bytes))
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


def measure_beside_peer(program: str, hosts: int, hops: float) -> dict[str, Any]:
    """Return packet-hops a second of the engine by features and of csg-htsim, in one round."""
    packets = round(hops / 2 / LINKS / hosts / FLOWS)
    peer = htsim.measure(program, htsim.Traffic(hosts, BELOW, FLOWS, packets, PACKET_BYTES, RATE_GBPS))
    ours = {each: measure_in_process(measure, hosts, hops / 2, each, PACKET_BYTES)["per_s"] for each in FEATURES}
    return {"peer": peer["per_s"], **ours}


def compare_with_peer(options: Namespace, sizes: list[int]) -> None:
    """Print the ratios of all rounds."""
    found = {
        hosts: [measure_beside_peer(options.peer, hosts, options.hops * 1e6) for _ in range(options.repeats)]
        for hosts in sizes
    }
    lines = [f"{'hosts':>6}{'features':>10}{'M hops/s':>10}{'htsim':>7}{'ratio':>7}  of rounds"]
    for hosts, rounds in found.items():
        for each in FEATURES:
            ratios = sorted(one[each] / one["peer"] for one in rounds)
            rate, peer = (statistics.median(one[name] for one in rounds) / 1e6 for name in (each, "peer"))
            reported = f"{rate:10.2f}{peer:7.2f}{statistics.median(ratios):7.2f}  {ratios[0]:.2f} to {ratios[-1]:.2f}"
            lines.append(f"{hosts:6}{each:>10}{reported}")
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
        measure(DUMBBELL, options.hops * 1e6, FEATURES[1])
    apart = measure if options.short else partial(measure_in_process, measure)
    found = [apart(hosts, options.hops * 1e6, options.features) for hosts in sizes]
    lines = [f"{'hosts':>6}{'jobs':>6}{'M hops':>9}{'s':>8}{'M hops/s':>10}{'M marks':>9}{'MB':>7}{'made, s':>9}"]
    lines += map(format_network, found)
    last, first = found[-1], found[0]
    ratio = last["per_s"] / first["per_s"]
    lines.append(f"packet-hops a second, {last['hosts']} hosts / {first['hosts']} hosts: {ratio:.2f}")
    print_result(options, found, lines)


if __name__ == "__main__":
    main()
