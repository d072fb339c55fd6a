# SPDX-License-Identifier: Apache-2.0
"""Small topologies with several paths."""

from roundabout.spec.routing import Routing
from roundabout.spec.topology import Topology

ECMP = Routing(name="ecmp")


def leaf_spine(leaves: int = 2, spines: int = 2, below: int = 2, routing: Routing = ECMP) -> Topology:
    """Return a leaf-spine whose hosts are s0, s1 and so on, `below` of them at each leaf, with equal links."""
    hosts = [f"s{number}" for number in range(leaves * below)]
    links = [{"name": host, "ends": [host, f"leaf{number // below}"]} for number, host in enumerate(hosts)]
    links += [
        {"name": f"l{leaf}-p{spine}", "ends": [f"leaf{leaf}", f"spine{spine}"], "bottleneck": leaf == spine == 0}
        for leaf in range(leaves)
        for spine in range(spines)
    ]
    return Topology.model_validate(
        {
            "name": "leaf-spine",
            "about": "a small leaf-spine",
            "line_rate_gbps": 50,
            "payload_rate_gbps": 43,
            "queue": "lossless",
            "hosts": hosts,
            "switches": [
                *(f"leaf{number}" for number in range(leaves)),
                *(f"spine{number}" for number in range(spines)),
            ],
            "links": links,
            "routing": routing,
        }
    )
