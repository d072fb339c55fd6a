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


def rails(servers: int = 2, nics: int = 2, pxn: bool = False) -> Topology:
    """Return servers with a NIC on each rail, whose switches one spine joins. NIC 1 of s0 has the link s0-1."""
    hosts = [f"s{number}" for number in range(servers)]
    links = [{"name": f"{host}-{nic}", "ends": [host, f"rail{nic}"]} for host in hosts for nic in range(nics)]
    links += [{"name": f"up{nic}", "ends": [f"rail{nic}", "spine"]} for nic in range(nics)]
    return Topology.model_validate(
        {
            "name": "rails",
            "about": "servers with several NICs",
            "line_rate_gbps": 50,
            "payload_rate_gbps": 43,
            "queue": "lossless",
            "hosts": hosts,
            "switches": [*(f"rail{nic}" for nic in range(nics)), "spine"],
            "gpus_per_host": nics,
            "links": links,
            "routing": {"name": "rail", "pxn": pxn},
        }
    )
