# SPDX-License-Identifier: Apache-2.0
"""Samples of the files in which schedulers describe a cluster's switches.

Slurm's are from its man pages topology.conf(5) and topology.yaml(5) and its Topology Guide (doc/html/topology.shtml),
Volcano's from "Network Topology Aware Scheduling" (volcano.sh/en/docs/network_topology_aware_scheduling).
"""

TWO_LEVELS = """\
# topology.conf
# Switch Configuration
SwitchName=s0 Nodes=tux[0-3]   LinkSpeed=900
SwitchName=s1 Nodes=tux[4-7]   LinkSpeed=900
SwitchName=s2 Nodes=tux[8-11]  LinkSpeed=900
SwitchName=s3 Nodes=tux[12-15] LinkSpeed=1800
SwitchName=s4 Switches=s[0-3]  LinkSpeed=1800
"""
PARALLEL_SPINES = TWO_LEVELS + "SwitchName=s5 Switches=s[0-3]  LinkSpeed=1800\n"
ONE_ROOT = """\
SwitchName=s0 Nodes=dev[0-5]
SwitchName=s1 Nodes=dev[6-11]
SwitchName=s2 Nodes=dev[12-17]
SwitchName=s3 Switches=s[0-2]
"""
BLOCKS = "BlockName=block1 Nodes=node[1-32]\nBlockName=block2 Nodes=node[33-64]\nBlockSizes=30\n"
SLURM_YAML = "- topology: topo1\n  cluster_default: True\n  tree:\n    switches:\n    - switch: sw_root\n"


def hypernode(name, tier, *members):
    spec = f"spec:\n  tier: {tier} # {name} is at tier{tier}\n  members:\n" + "".join(members)
    return f"apiVersion: topology.volcano.sh/v1alpha1\nkind: HyperNode\nmetadata:\n  name: {name}\n{spec}"


def member(name, kind="Node"):
    return f'  - type: {kind}\n    selector:\n      exactMatch:\n        name: "{name}"\n'


PATTERN = "  - type: Node\n    selector:\n      regexMatch:\n        pattern: node-[01]\n"
LABEL = '  - type: Node\n    selector:\n      labelMatch:\n        matchLabels:\n          topology-rack: "rack-0"\n'
LEAVES = [hypernode(f"s{leaf}", 1, member(f"node-{2 * leaf}"), member(f"node-{2 * leaf + 1}")) for leaf in range(4)]
UPPER = [hypernode(f"s{4 + at}", 2, *(member(f"s{2 * at + leaf}", "HyperNode") for leaf in (0, 1))) for at in (0, 1)]
HYPERNODES = "---\n".join([*LEAVES, *UPPER, hypernode("s6", 3, member("s4", "HyperNode"), member("s5", "HyperNode"))])
