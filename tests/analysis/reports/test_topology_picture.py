# SPDX-License-Identifier: Apache-2.0
"""Pictures of topologies: each node once, equal nodes in one box if there are many, and links with their rates."""

import pytest

from analysis.render.topology_groups import MAX_LETTERS, box_letters, group_topology
from analysis.render.topology_picture import describe_grouping, draw_topology
from roundabout.cli.main import main
from roundabout.spec.fabrics import generators
from roundabout.spec.loader import load_topology

pytestmark = pytest.mark.unit


def labels(name):
    """All text of a topology's picture."""
    return {text.get_text() for text in draw_topology(load_topology(name)).axes[0].texts}


def boxes(topology):
    """The number of nodes in each box, by tier from the hosts upwards."""
    return [[len(group.names) for group in tier] for tier in group_topology(topology).tiers]


def test_a_small_topology_has_a_box_for_each_node_and_names_its_bottleneck():
    assert {"s0", "s1", "s2", "s3", "tor0", "tor1", "L1: 50 Gbit/s\nbottleneck", "50 Gbit/s"} <= labels("dumbbell-2x2")


def test_hosts_with_equal_links_share_a_box_before_switches_do():
    topology = load_topology("cluster-24")
    assert boxes(topology) == [[3] * 8, [1] * 8, [1] * 4, [1]]
    assert describe_grouping(topology, group_topology(topology)) == "Equal nodes share a box: 24 hosts in 8 boxes."
    assert {"s0 … s2", "3 hosts", "100 Gbit/s", "agg0: 100 Gbit/s\nbottleneck"} <= labels("cluster-24")


def test_a_fat_tree_of_1024_hosts_becomes_one_box_a_tier():
    topology = generators.fat_tree(1024, 1).topology("fat-tree")
    assert boxes(topology) == [[1024], [128], [128], [64]]  # k = 16: Al-Fares et al., SIGCOMM 2008


def test_a_marked_bottleneck_keeps_equal_nodes_together():
    assert boxes(load_topology("three-tier-1024")) == [[128], [16], [64], [16]]


def test_nodes_with_unequal_links_stay_apart():
    topology = load_topology("leaf-spine-1024")
    fields = topology.model_dump()
    fields["links"][0]["line_rate_gbps"] *= 2
    assert boxes(type(topology).model_validate(fields)) == [[1, 7, 120], [1, 15], [16]]


@pytest.mark.parametrize("fabric", [generators.leaf_spine, generators.rail_optimized])
@pytest.mark.parametrize("servers", [16, 64, 256])
def test_each_node_and_link_is_drawn_once_and_tiers_fit(fabric, servers):
    topology = fabric(servers, 1).topology("fabric")
    grouped = group_topology(topology)
    names = [name for tier in grouped.tiers for group in tier for name in group.names]
    assert sorted(names) == sorted((*topology.hosts, *topology.switches))
    assert sorted(link.name for group in grouped.links for link in group.links) == sorted(
        link.name for link in topology.links
    )
    assert all(sum(map(box_letters, tier)) <= MAX_LETTERS for tier in grouped.tiers)


def test_the_command_writes_the_picture_and_prints_its_path(tmp_path, capsys):
    path = tmp_path / "network.svg"
    assert main(["draw", "dumbbell-2x2", "--output", str(path)]) == 0
    assert capsys.readouterr().out == f"{path}\n"
    assert path.read_text().startswith("<?xml")


def test_the_command_refuses_another_kind_of_file(tmp_path, capsys):
    assert main(["draw", "dumbbell-2x2", "--output", str(tmp_path / "network.txt")]) != 0
    assert "--output: found" in capsys.readouterr().err
