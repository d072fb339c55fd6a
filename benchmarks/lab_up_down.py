# SPDX-License-Identifier: Apache-2.0
"""Lab up and down against mininet with the same graph, shaped links and Linux bridges. Needs root and Debian's mininet.

    python benchmarks/lab_up_down.py [--rounds N] [--short] [--json]

mininet runs in a process of its own under the system's Python, as `mn --switch lxbr --link tc` would, and times itself
from before the graph is built until the network has started, and again until it is gone; Python's start counts for
neither. Ours is timed the same, without and with what mininet does not do: measuring each link. `down` is until the
kernel has freed the lab's eBPF objects, and with them its namespaces.
"""

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.shared.command import print_result, read_options, take_turns
from benchmarks.shared.machine import hold_machine
from roundabout.runner.machine.process_leftovers import process_name
from roundabout.spec import Topology, load_topology
from roundabout.testbeds.lab import Lab

NAME = process_name("bench-up-down")

# Reads {"hosts", "switches", "links"} on stdin, prints {"up_s", "down_s"}.
MININET = """
import json, sys, time
from mininet.link import TCLink
from mininet.net import Mininet
from mininet.nodelib import LinuxBridge
graph = json.load(sys.stdin)
begin = time.monotonic()
net = Mininet(switch=LinuxBridge, link=TCLink, controller=None)
nodes = {name: net.addHost(name) for name in graph["hosts"]}
nodes.update({name: net.addSwitch(name) for name in graph["switches"]})
for one, other, mbps in graph["links"]:
    net.addLink(nodes[one], nodes[other], bw=mbps)
net.start()
up = time.monotonic()
net.stop()
print(json.dumps({"up_s": up - begin, "down_s": time.monotonic() - up}))
"""


def measure_ours(topology: Topology, scale: float, *, verify: bool) -> dict[str, float]:
    """Return the seconds that our lab takes to be created and removed."""
    begin = time.monotonic()
    Lab.create(topology, NAME, scale=scale, verify=verify)
    up = time.monotonic()
    Lab.remove(NAME)
    return {"up_s": up - begin, "down_s": time.monotonic() - up}


def measure_mininet(topology: Topology, scale: float) -> dict[str, float]:
    """Return the seconds that mininet takes to start and stop."""
    # mininet wants its switches' names to end in a number.
    names = {name: f"s{number}" for number, name in enumerate(topology.switches, start=1)}
    names |= {name: f"h{number}" for number, name in enumerate(topology.hosts, start=1)}
    graph = {
        "hosts": [names[host] for host in topology.hosts],
        "switches": [names[switch] for switch in topology.switches],
        "links": [
            [*(names[end] for end in link.ends), link.payload_rate_gbps * 1000 / scale] for link in topology.links
        ],
    }
    command = ["/usr/bin/python3", "-c", MININET]
    done = subprocess.run(command, input=json.dumps(graph), capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(
            f"error: mininet failed: {done.stderr.strip().splitlines()[-1]}\n  apt-get install mininet bridge-utils"
        )
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def compare(topology: Topology, scale: float, rounds: int, *, measured: bool) -> dict[str, Any]:
    """Return medians over `rounds`, in which contenders take turns."""
    contenders: dict[str, Callable[[], dict[str, float]]] = {
        "ours": lambda: measure_ours(topology, scale, verify=False),
        **({"ours, measured": lambda: measure_ours(topology, scale, verify=True)} if measured else {}),
        "mininet": lambda: measure_mininet(topology, scale),
    }
    taken = take_turns(contenders, rounds)
    medians = {
        name: {key: statistics.median(each[key] for each in results) for key in ("up_s", "down_s")}
        for name, results in taken.items()
    }
    totals = {name: sum(median.values()) for name, median in medians.items()}
    ratios = {name: totals[name] / totals["mininet"] for name in contenders if name != "mininet"}
    graph = {"hosts": len(topology.hosts), "switches": len(topology.switches), "links": len(topology.links)}
    return {"graph": graph, "rounds": rounds, "medians": medians, "of_mininets_time": ratios}


def main() -> None:
    """Compare the lab with mininet on both graphs, and print the figures."""
    options = read_options(__doc__, {"rounds": 1}, rounds=5)
    graphs = {"dumbbell-2x2": 100} if options.short else {"dumbbell-2x2": 100, "cluster-24": 1000}
    with hold_machine():
        results = [
            compare(load_topology(name), scale, options.rounds, measured=not options.short)
            for name, scale in graphs.items()
        ]
    print_result(options, results, (line for each in results for line in format_result(each)))


def format_result(result: dict[str, Any]) -> Iterator[str]:
    yield "{hosts} hosts, {switches} switches, {links} links".format(**result["graph"])
    for name, median in result["medians"].items():
        ratio = result["of_mininets_time"].get(name)
        note = "" if ratio is None else f"   {ratio:.2f} of mininet's"
        up_s, down_s = median["up_s"], median["down_s"]
        yield f"  {name:15} up {up_s:6.3f} s   down {down_s:6.3f} s   both {up_s + down_s:6.3f} s{note}"


if __name__ == "__main__":
    main()
